-- vtq.schedule_add: sends a message at every tick of a cron expression, or changes what such a schedule says.
--   name          name of the schedule: 1 to 100 bytes; one that is there is replaced
--   cron          "minute hour day month weekday"; a sixth field in front is seconds; or @daily and the like
--   queue         queue name
--   message       any JSON but SQL null
--   timezone      in which the expression is read, by its name in the IANA database; default UTC
--   missed        what becomes of ticks that nobody sent in time: skip (default), once: one message for all of them,
--                 or all: a message each
--   missed_cap    the most messages that `all` makes up for, the newest: 1 to 1000, default 100
--   grace         a tick that is sent this late is not missed yet: 1 s to 36500 days, default 1 min
--   headers .. policy   as in vtq.send
--   expires_in    not started later than this long after it was sent
--   returns  true when it is new, false when one of that name was there: it keeps its pause and what it has counted,
--            and, where neither cron nor timezone has changed, the tick that is next
--   writes   vtq._schedule; NOTIFY vtq__schedule
--   raises   VT001, 22023
CREATE OR REPLACE FUNCTION vtq.schedule_add(
    name text,
    cron text,
    queue text,
    message jsonb,
    timezone text DEFAULT 'UTC',
    missed text DEFAULT 'skip',
    missed_cap integer DEFAULT 100,
    grace interval DEFAULT '1 min',
    headers jsonb DEFAULT NULL,
    delay interval DEFAULT NULL,
    priority integer DEFAULT NULL,
    max_attempts integer DEFAULT NULL,
    policy jsonb DEFAULT NULL,
    expires_in interval DEFAULT NULL
)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog
AS $$
#variable_conflict use_variable
DECLARE
    was_there boolean;
    there record;
BEGIN
    PERFORM vtq._check_schedule(name);
    PERFORM vtq._check_cron(cron, timezone);
    IF missed IS NULL OR missed NOT IN ('skip', 'once', 'all') THEN
        RAISE EXCEPTION 'missed % is not allowed: it must be skip, once or all', coalesce('"' || left(missed, 80) || '"', 'null')
            USING ERRCODE = '22023';
    END IF;
    IF missed_cap IS NULL OR missed_cap NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION 'missed_cap % is not allowed: it must be from 1 to 1000', coalesce(missed_cap::text, 'null')
            USING ERRCODE = '22023';
    END IF;
    IF grace IS NULL THEN
        RAISE EXCEPTION 'grace null is not allowed: it must be from 1 s to 36500 days' USING ERRCODE = '22023';
    END IF;
    grace := vtq._check_length('grace', grace, interval '1 s', interval '36500 days');
    delay := vtq._check_length('delay', delay, interval '0', interval '36500 days');
    expires_in := vtq._check_length('expires_in', expires_in, interval '1 ms', interval '36500 days');
    IF expires_in <= delay THEN
        RAISE EXCEPTION 'expires_in % is not more than delay %: its messages could never run', expires_in, delay
            USING ERRCODE = '22023';
    END IF;
    PERFORM vtq._check_send(queue, delay, NULL, priority, max_attempts, policy, NULL);
    PERFORM vtq._check_headers(headers);
    IF message IS NULL THEN
        RAISE EXCEPTION 'message is null: send the JSON ''null'' if that is what you mean' USING ERRCODE = '22023';
    END IF;

    -- A row of the same name that another session is adding is waited for by the insert.
    INSERT INTO vtq._schedule AS s (
        name, cron, timezone, queue, message, headers, delay, priority, max_attempts, policy, expires_in,
        missed, missed_cap, grace
    )
    VALUES (
        name, cron, timezone, queue, message, headers, delay, priority, max_attempts, policy, expires_in,
        missed, missed_cap, grace
    )
    ON CONFLICT ON CONSTRAINT _schedule_pk DO NOTHING;
    was_there := NOT FOUND;
    IF was_there THEN
        SELECT o.cron, o.timezone, o.next_at INTO there
        FROM vtq._schedule AS o WHERE o.name = schedule_add.name FOR UPDATE;
        -- The plan goes on where it is the same, so that adding it again at each start misses no tick.
        IF (there.cron, there.timezone) IS DISTINCT FROM (cron, timezone) THEN
            there.next_at := '-infinity';
        END IF;
        UPDATE vtq._schedule AS s
        SET revision = DEFAULT,
            cron = schedule_add.cron, timezone = schedule_add.timezone, queue = schedule_add.queue,
            message = schedule_add.message, headers = schedule_add.headers, delay = schedule_add.delay,
            priority = schedule_add.priority, max_attempts = schedule_add.max_attempts,
            policy = schedule_add.policy, expires_in = schedule_add.expires_in, missed = schedule_add.missed,
            missed_cap = schedule_add.missed_cap, grace = schedule_add.grace, next_at = there.next_at,
            due_at = CASE WHEN s.paused_until > clock_timestamp() THEN s.paused_until ELSE there.next_at END,
            error = NULL, error_at = NULL
        WHERE s.name = schedule_add.name;
    END IF;
    PERFORM pg_notify('vtq__schedule', '');
    RETURN NOT was_there;
END;
$$;

COMMENT ON FUNCTION vtq.schedule_add(
    text, text, text, jsonb, text, text, integer, interval, jsonb, interval, integer, integer, jsonb, interval
) IS 'Sends a message at every tick of a cron expression: vtq.schedule_add(''nightly'', ''0 3 * * *'', ''reports'', ''{}'', timezone => ''Europe/Berlin''). Replaces a schedule of that name; true when it is new.';
