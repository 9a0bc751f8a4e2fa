-- vtq._default_options: what a queue's options are where nothing was set.
--   returns  every option with its default; lengths as intervals in text, backoff lengths in seconds
CREATE OR REPLACE FUNCTION vtq._default_options()
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
PARALLEL SAFE
AS $$
    SELECT jsonb '{
        "visibility_timeout": "30 s",
        "max_attempts": 5,
        "backoff": {"kind": "exponential", "base": 5, "max": 300, "jitter": 0.15},
        "timeout": "15 min",
        "on_ack": "archive",
        "archive_retention": "7 days",
        "attempts_retention": "30 days",
        "dlq_retention": null,
        "priorities": [0],
        "exclusive_limit": 1,
        "group_on_dead": "continue",
        "max_in_flight": null,
        "rate": null,
        "key_rate": null,
        "aging": "1 hour",
        "unlogged": false
    }'
$$;

COMMENT ON FUNCTION vtq._default_options() IS 'The options of a queue that sets none.';
