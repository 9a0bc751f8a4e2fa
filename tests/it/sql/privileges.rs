//! Who may do what: an owner with nothing but CREATE, a stranger with nothing at all, and names that mislead.

use serde_json::{Value, json};
use vtq::Vtq;

use super::session::Session;

/// A role of this test's own, which goes with what it owns when [`Role::drop`] is called.
pub(super) struct Role(String);

impl Role {
    pub(super) async fn create(s: &Session, kind: &str) -> Self {
        let name = format!("{}_{kind}", s.database());
        s.run(&format!("DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN")).await;
        Self(name)
    }

    pub(super) fn name(&self) -> &str {
        &self.0
    }

    pub(super) async fn drop(self, s: &Session) {
        s.run(&format!("RESET SESSION AUTHORIZATION; DROP OWNED BY {0} CASCADE; DROP ROLE {0}", self.0))
            .await;
    }
}

/// Every verb, on queue `q`, as one statement after the other.
const ALL_VERBS: &str = "
    SELECT vtq.create_queue('q', '{\"max_attempts\": 2}');
    SELECT vtq.set_queue('q', '{\"backoff\": {\"base\": 1}}'), vtq.queue_options('q');
    SELECT vtq.pause('q'), vtq.resume('q');
    SELECT vtq.send('q', '1'), vtq.send('q', '2', delay => '1 h');
    SELECT vtq.send_batch('q', '{3,4,5,6,7,8,9}');
    SELECT vtq.peek('q', 3);
    SELECT vtq.read('q', qty => 10);
    SELECT vtq.extend('q', '{1}', '{1}');
    SELECT vtq.ack('q', '{1}', '{1}');
    SELECT vtq.fail('q', 3, 1, '\"why\"'), vtq.defer('q', 4, 1, '1 h');
    SELECT vtq.dead_letter('q', 5, 1), vtq.dead_letter('q', 6, 1);
    SELECT vtq.release('q', '{7}', '{1}'), vtq.cancel('q', 8), vtq.run_now('q', 2);
    SELECT vtq.dlq_list('q'), vtq.dlq_show('q', 5), vtq.attempts('q', 3);
    SELECT vtq.redrive('q', 5), vtq.redrive_all('q'), vtq.dlq_purge('q', older_than => '0');
    SELECT vtq.sweep('q'), vtq.maintain('q');
    SELECT vtq.schedule_add('s', '0 * * * *', 'q', '10'), vtq.schedule_run('s');
    SELECT vtq.schedule_pause('s'), vtq.schedule_resume('s'), vtq.schedule_list(), vtq._due_schedules(1);
    SELECT vtq._fire('s', (SELECT s.revision FROM vtq._schedule AS s), NULL, '{\"2020-01-01\"}', '2100-01-01', 0);
    SELECT vtq._schedule_failed('s', 1, 'why', '1 s'), vtq.schedule_remove('s');
    SELECT vtq.metrics('q'), vtq.metrics_all(true), vtq.backoff(NULL, 1);
    SELECT vtq._doze('{q}', 'w', '1 min'), vtq._rise('w'), vtq._leave('w')";

/// What [`ALL_VERBS`] leaves behind.
async fn left_behind(s: &Session) -> Value {
    s.row(
        "SELECT (SELECT jsonb_agg(jsonb_build_array(msg_id, read_ct, refunded_ct, vt = ready_at) ORDER BY msg_id)
                FROM vtq.q) AS live,
            (SELECT jsonb_agg(jsonb_build_array(msg_id, outcome) ORDER BY msg_id) FROM vtq.q_attempts) AS attempts,
            (SELECT jsonb_agg(msg_id) FROM vtq.q_archive) AS archived,
            (SELECT count(*) FROM pg_inherits WHERE inhparent = 'vtq.q_archive'::regclass) AS days",
    )
    .await
}

fn expected_behind() -> Value {
    json!({
        "live": [[2, 0, 0, true], [3, 1, 0, true], [4, 1, 1, true], [5, 1, 1, true], [6, 1, 1, true],
            [7, 1, 1, true], [9, 1, 0, false], [10, 0, 0, true], [11, 0, 0, true]],
        "attempts": [[3, "failed"], [4, "deferred"], [5, "permanent"], [6, "permanent"], [7, "released"],
            [8, "cancelled"]],
        "archived": [1], "days": 8,
    })
}

#[tokio::test]
async fn a_role_with_nothing_but_create_installs_and_uses_all_of_it() {
    let s = Session::empty().await;
    let owner = Role::create(&s, "owner").await;
    s.run(&format!(
        "GRANT CREATE ON DATABASE {} TO {1}; SET SESSION AUTHORIZATION {1}",
        s.database(),
        owner.0
    ))
    .await;

    s.run(&Vtq::schema_sql()).await;
    s.run(ALL_VERBS).await;

    assert_eq!(left_behind(&s).await, expected_behind());
    s.run("SELECT vtq.drop_queue('q')").await;
    owner.drop(&s).await;
}

#[tokio::test]
async fn a_stranger_is_refused_every_function() {
    let s = Session::with_queue("{}").await;
    let stranger = Role::create(&s, "stranger").await;
    let calls: Vec<String> = s
        .values(
            "SELECT format('SELECT vtq.%I(%s)', p.proname,
                (SELECT string_agg('NULL::' || format_type(t, NULL), ', ') FROM unnest(p.proargtypes::oid[]) AS t))
            FROM pg_proc AS p WHERE p.pronamespace = 'vtq'::regnamespace ORDER BY 1",
        )
        .await;
    assert!(calls.len() > 60, "{} functions", calls.len());

    s.run(&format!("SET SESSION AUTHORIZATION {}", stranger.0)).await;
    for call in &calls {
        assert_eq!(s.refusal(call).await, "42501 permission denied for schema vtq", "{call}");
    }
    // Also when the schema is opened to it.
    s.run(&format!(
        "RESET SESSION AUTHORIZATION; GRANT USAGE ON SCHEMA vtq TO {0}; SET SESSION AUTHORIZATION {0}",
        stranger.0
    ))
    .await;
    // To promote in no lanes is to do nothing.
    for call in calls.iter().filter(|call| !call.contains("_q.promote")) {
        let refusal = s.refusal(call).await;
        // A queue's own functions stand open, and stop at its tables.
        let what = if call.contains("\"_q.") { "table" } else { "function" };
        assert!(refusal.starts_with(&format!("42501 permission denied for {what} ")), "{call}: {refusal}");
    }
    stranger.drop(&s).await;
}

#[tokio::test]
async fn a_stranger_is_refused_every_table() {
    let s = Session::with_queue(r#"{"unlogged": true}"#).await;
    let stranger = Role::create(&s, "stranger").await;
    s.run(&format!("SELECT vtq.maintain('q'); GRANT USAGE ON SCHEMA vtq TO {}", stranger.0)).await;
    let sql = format!(
        "SELECT c.relname::text FROM pg_class AS c
        WHERE c.relnamespace = 'vtq'::regnamespace AND CASE c.relkind
            WHEN 'S' THEN has_sequence_privilege('{0}', c.oid, 'SELECT, USAGE, UPDATE')
            ELSE c.relkind NOT IN ('i', 'I')
                AND has_table_privilege('{0}', c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        END",
        stranger.0
    );

    assert_eq!(s.values::<String>(&sql).await, Vec::<String>::new());

    s.run(&format!("SET SESSION AUTHORIZATION {}", stranger.0)).await;
    for table in [
        "q",
        "q_dlq",
        "q_archive",
        "q_attempts",
        "_queue",
        "_worker",
        "_sleeper",
        "_schedule",
        "_tick",
        "_migration",
    ] {
        assert_eq!(
            s.refusal(&format!("SELECT FROM vtq.{table}")).await,
            format!("42501 permission denied for table {table}")
        );
    }
    stranger.drop(&s).await;
}

/// The grants that docs/operations.md names for a worker that fires schedules, and for whoever plans them.
#[tokio::test]
async fn a_worker_with_its_grants_fires_a_schedule() {
    let s = Session::with_queue("{}").await;
    let (worker, planner) = (Role::create(&s, "worker").await, Role::create(&s, "planner").await);
    s.run(&format!(
        "GRANT USAGE ON SCHEMA vtq TO {0}, {1}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA vtq TO {0}, {1};
        GRANT SELECT ON vtq._queue, vtq._sleeper, vtq._migration TO {0}, {1};
        GRANT SELECT, UPDATE, DELETE ON vtq.q TO {0};
        GRANT SELECT, UPDATE ON vtq._schedule TO {0}; GRANT SELECT, INSERT, DELETE ON vtq._tick TO {0};
        GRANT SELECT, INSERT, UPDATE, DELETE ON vtq._schedule TO {1}; GRANT SELECT, DELETE ON vtq._tick TO {1}",
        worker.0, planner.0
    ))
    .await;
    let fire =
        "SELECT count(*) FROM vtq._fire('s', (SELECT revision FROM vtq._schedule), '2020-01-01 00:00:00+00',
        '{2020-01-01 00:00:00+00}', '2100-01-01', 0)";
    s.run(&format!("SET SESSION AUTHORIZATION {}", planner.0)).await;
    s.run("SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1')").await;
    let plan = "SELECT vtq._fire('s', (SELECT revision FROM vtq._schedule), NULL, '{}', '2020-01-01 00:00:00+00', 0)";
    s.run(plan).await;
    assert_eq!(s.refusal(fire).await, "42501 permission denied for table q");

    s.run(&format!("RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION {}", worker.0)).await;
    assert_eq!(s.refusal(fire).await, "42501 permission denied for table q");
    s.run(&format!(
        "RESET SESSION AUTHORIZATION; GRANT INSERT ON vtq.q TO {0}; SET SESSION AUTHORIZATION {0}",
        worker.0
    ))
    .await;

    assert_eq!(s.value::<i64>(fire).await, 1);
    assert_eq!(
        s.refusal("SELECT vtq.schedule_remove('s')").await,
        "42501 permission denied for table _schedule"
    );
    worker.drop(&s).await;
    planner.drop(&s).await;
}

#[tokio::test]
async fn every_function_pins_its_search_path() {
    let s = Session::new().await;
    // The state and the names are bare expressions, so that the planner can fold them into what uses them.
    let sql = "
        SELECT p.proname::text FROM pg_proc AS p
        WHERE p.pronamespace = 'vtq'::regnamespace
            AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS c WHERE c ~ '^search_path=')
        ORDER BY 1";

    assert_eq!(s.values::<String>(sql).await, ["_deadline", "_default_options", "_lane", "_own", "_state"]);
}

#[tokio::test]
async fn a_function_that_runs_as_its_owner_looks_into_temporary_schemas_last() {
    let s = Session::new().await;
    // Without pg_temp in the list it comes first, for tables and types:
    // https://www.postgresql.org/docs/current/sql-createfunction.html#SQL-CREATEFUNCTION-SECURITY
    let sql = "SELECT p.proname || ': ' || c.setting FROM pg_proc AS p
        CROSS JOIN LATERAL unnest(p.proconfig) AS c (setting)
        WHERE p.pronamespace = 'vtq'::regnamespace AND p.prosecdef AND c.setting ~ '^search_path='";

    assert_eq!(s.values::<String>(sql).await, ["_archive_ahead: search_path=pg_catalog, pg_temp"]);
}

#[tokio::test]
async fn a_temporary_type_does_not_run_as_the_owner() {
    let s = Session::with_queue("{}").await;
    let worker = Role::create(&s, "worker").await;
    s.run(&format!(
        "GRANT USAGE ON SCHEMA vtq TO {0}; GRANT EXECUTE ON FUNCTION vtq._archive_ahead TO {0}",
        worker.0
    ))
    .await;
    s.run(&format!("SET SESSION AUTHORIZATION {}", worker.0)).await;
    s.run(
        "CREATE TEMP TABLE ran_as (role name);
        CREATE FUNCTION pg_temp.spy() RETURNS boolean LANGUAGE plpgsql AS $$
            BEGIN INSERT INTO pg_temp.ran_as VALUES (current_user); RETURN true; END $$;
        CREATE DOMAIN pg_temp.date AS pg_catalog.date CHECK (pg_temp.spy());
        GRANT ALL ON pg_temp.ran_as TO PUBLIC",
    )
    .await;

    let _ = s.client.batch_execute("SELECT vtq._archive_ahead('q')").await;

    assert_eq!(s.values::<String>("SELECT role::text FROM pg_temp.ran_as").await, Vec::<String>::new());
    worker.drop(&s).await;
}

#[tokio::test]
async fn names_in_front_of_the_callers_path_change_nothing() {
    let s = Session::new().await;
    s.run(
        r#"CREATE SCHEMA evil;
        CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
        CREATE FUNCTION evil.statement_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
        CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS $$ SELECT '2001-01-01'::timestamptz $$;
        CREATE FUNCTION evil.random() RETURNS float8 LANGUAGE sql AS $$ SELECT 7.0::float8 $$;
        CREATE FUNCTION evil.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
        CREATE FUNCTION evil.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_array';
        CREATE FUNCTION evil.jsonb_strip_nulls(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT NULL::jsonb $$;
        CREATE FUNCTION evil.to_regclass(text) RETURNS regclass LANGUAGE sql AS $$ SELECT NULL::regclass $$;
        CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'evil'; END $$;
        CREATE FUNCTION evil.same(integer, integer) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE OPERATOR evil.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = evil.same);
        CREATE FUNCTION evil.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
        CREATE OPERATOR evil.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = evil.less);
        CREATE DOMAIN evil.jsonb AS text CHECK (false);
        CREATE TABLE evil._queue (); CREATE TABLE evil.q ();
        CREATE TABLE evil.pg_class (); CREATE TABLE evil.pg_inherits ()"#,
    )
    .await;

    s.run("SET search_path = evil, public, pg_catalog").await;
    s.run(ALL_VERBS).await;
    s.run("RESET search_path").await;

    assert_eq!(left_behind(&s).await, expected_behind());
}

#[tokio::test]
async fn temporary_tables_called_like_catalogues_change_nothing() {
    let s = Session::new().await;
    s.run("CREATE TEMP TABLE pg_class (x int); CREATE TEMP TABLE pg_inherits (x int)").await;
    s.run("CREATE TEMP TABLE pg_locks (x int)").await;
    s.run("CREATE TEMP TABLE _queue (x int); CREATE TEMP TABLE q (x int)").await;

    s.run(ALL_VERBS).await;
    s.run("DROP TABLE pg_temp.pg_class, pg_temp.pg_inherits, pg_temp.pg_locks").await;

    assert_eq!(left_behind(&s).await, expected_behind());
}

#[tokio::test]
async fn a_call_leaves_the_settings_of_its_caller_alone() {
    let s = Session::new().await;
    let sql = "SELECT name || '=' || setting FROM pg_settings ORDER BY name";
    // The block loads plpgsql, which brings settings along.
    s.run("SET timezone = 'Asia/Kolkata'; SET lock_timeout = '7 s'; BEGIN; DO 'BEGIN END'").await;
    let before: Vec<String> = s.values(sql).await;

    s.run(ALL_VERBS).await;

    let mut during: Vec<String> = s.values(sql).await;
    s.run("COMMIT").await;
    during.retain(|setting| !before.contains(setting));
    assert_eq!(during, Vec::<String>::new());
}

#[tokio::test]
async fn odd_settings_of_a_session_change_nothing() {
    let s = Session::new().await;
    s.run(
        "SET datestyle = 'SQL, DMY'; SET intervalstyle = 'sql_standard'; SET timezone = 'Pacific/Apia';
        SET standard_conforming_strings = off; SET escape_string_warning = off; SET extra_float_digits = -15;
        SET transform_null_equals = on; SET array_nulls = off; SET quote_all_identifiers = on;
        SET plan_cache_mode = force_generic_plan; SET enable_indexscan = off; SET enable_nestloop = off;
        SET default_transaction_isolation = 'repeatable read'",
    )
    .await;

    s.run(ALL_VERBS).await;

    assert_eq!(left_behind(&s).await, expected_behind());
}
