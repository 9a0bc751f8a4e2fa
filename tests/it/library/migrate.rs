//! Installing and bringing up to date.

use vtq::{ConnectOptions, ErrorKind, SchemaState, Vtq};
use vtq_tests::TestDb;

/// Everything in the schema that a person could tell apart.
const CATALOGUE: &str = "\
SELECT string_agg(line, E'\\n' ORDER BY line) FROM (
    SELECT format('%s %s %s', c.relkind, c.relname, pg_catalog.obj_description(c.oid)) AS line
    FROM pg_class AS c WHERE c.relnamespace = 'vtq'::regnamespace
    UNION ALL
    SELECT format('%s.%s %s %s', a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    WHERE c.relnamespace = 'vtq'::regnamespace AND a.attnum > 0
    UNION ALL
    SELECT format('%s %s %s', p.oid::regprocedure, md5(p.prosrc), p.proacl::text)
    FROM pg_proc AS p WHERE p.pronamespace = 'vtq'::regnamespace
) AS whole";

async fn catalogue(db: &TestDb) -> String {
    db.client().await.query_one(CATALOGUE, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn functions_of_a_queue_are_built_anew_with_the_others() {
    let db = TestDb::new().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();
    let queue = vtq.queue("q").unwrap();
    queue.create(&vtq::QueueOptions::new()).await.unwrap();
    let client = db.client().await;
    client
        .batch_execute(
            "DROP FUNCTION vtq.\"_q.read\"; UPDATE vtq._migration SET checksum = 'of before' WHERE version = 0",
        )
        .await
        .unwrap();

    assert!(vtq.migrate().await.unwrap().installed_functions);

    queue.send(&1).await.unwrap();
    assert_eq!(queue.read(&vtq::ReadOptions::new()).await.unwrap().len(), 1);
}

/// A queue from before a migration is one like those that are made after it, whoever its owner is.
#[tokio::test]
async fn queue_of_before_becomes_one_of_now() {
    const INDEXES: &str = "\
SELECT string_agg(format('%s %s', pg_get_indexdef(i.indexrelid), obj_description(i.indexrelid)), E'\\n' ORDER BY c.relname)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = $1::text::regclass";
    let db = TestDb::new().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();
    let client = db.client().await;
    let owner = format!("{}_owner", db.name());
    vtq.queue("before").unwrap().create(&vtq::QueueOptions::new()).await.unwrap();
    client
        .batch_execute(&format!(
            "DROP INDEX vtq._before_line; CREATE INDEX _before_line ON vtq.before (priority, ready_at, msg_id);
            DROP SEQUENCE vtq._before_front;
            SELECT vtq.create_queue('broken'); DROP TABLE vtq.broken;
            DELETE FROM vtq._migration WHERE version > 3; UPDATE vtq._migration SET checksum = '' WHERE version = 0;
            DROP ROLE IF EXISTS {owner}; CREATE ROLE {owner}; GRANT CREATE ON SCHEMA vtq TO {owner};
            ALTER TABLE vtq.before OWNER TO {owner}; SELECT vtq.send('before', '1');
            GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA vtq TO {owner}"
        ))
        .await
        .unwrap();

    let applied = vtq.migrate().await.unwrap().applied;
    vtq.queue("after").unwrap().create(&vtq::QueueOptions::new()).await.unwrap();

    assert_eq!(applied, [(4, "line_for_levels_only")]);
    let indexes = async |queue: &str| -> String {
        let table = format!("vtq.{queue}");
        client.query_one(INDEXES, &[&table]).await.unwrap().get::<_, String>(0).replace(queue, "q")
    };
    assert_eq!(indexes("before").await, indexes("after").await);
    let front =
        "SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE oid = 'vtq._before_front'::regclass";
    assert_eq!(client.query_one(front, &[]).await.unwrap().get::<_, String>(0), owner);
    let may =
        "SELECT bool_and(has_function_privilege($1, oid, 'EXECUTE')) FROM pg_proc WHERE proname = '_beat'";
    assert!(client.query_one(may, &[&owner]).await.unwrap().get::<_, bool>(0), "the grants are lost");
    let read = "SELECT count(*) FROM vtq.read('before', holder => 1)";
    assert_eq!(client.query_one(read, &[]).await.unwrap().get::<_, i64>(0), 1);
    client.batch_execute(&format!("DROP OWNED BY {owner} CASCADE; DROP ROLE {owner}")).await.unwrap();
}

#[tokio::test]
async fn second_migration_changes_nothing() {
    let db = TestDb::empty().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();
    assert_eq!(vtq.schema_state().await.unwrap(), SchemaState::Behind);

    let first = vtq.migrate().await.unwrap();
    let before = catalogue(&db).await;
    let second = vtq.migrate().await.unwrap();

    let steps = ["create_catalogue", "add_schedules", "admit_by_lane", "line_for_levels_only"];
    assert_eq!(first.applied, (1..).zip(steps).collect::<Vec<_>>());
    assert!(first.installed_functions);
    assert!(second.applied.is_empty() && !second.installed_functions, "{second:?}");
    assert_eq!(before, catalogue(&db).await);
    assert_eq!(vtq.schema_state().await.unwrap(), SchemaState::Current);
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_migrations_at_once_have_one_winner() {
    let db = TestDb::empty().await;
    let vtq = ConnectOptions::from_url(db.url()).unwrap().pool_size(20).connect().await.unwrap();

    let all = (0..20).map(|_| {
        let vtq = vtq.clone();
        tokio::spawn(async move { vtq.migrate().await.unwrap() })
    });
    let mut winners = 0;
    for one in all.collect::<Vec<_>>() {
        winners += usize::from(!one.await.unwrap().applied.is_empty());
    }

    assert_eq!(winners, 1);
}

/// What `vtq migrate --sql` prints is what `vtq migrate` does.
#[tokio::test]
async fn schema_run_by_hand_is_the_one_that_migrate_installs() {
    let (by_hand, migrated) = (TestDb::empty().await, TestDb::new().await);

    by_hand.client().await.batch_execute(&Vtq::schema_sql()).await.unwrap();

    assert_eq!(catalogue(&by_hand).await, catalogue(&migrated).await);
    let state = Vtq::connect(by_hand.url()).await.unwrap().schema_state().await.unwrap();
    assert_eq!(state, SchemaState::Current);
}

#[tokio::test]
async fn changed_functions_are_installed_anew() {
    let db = TestDb::new().await;
    let client = db.client().await;
    let before = catalogue(&db).await;
    client
        .batch_execute(
            "UPDATE vtq._migration SET checksum = 'of an older build' WHERE version = 0;
             CREATE OR REPLACE FUNCTION vtq.peek(queue text, qty integer DEFAULT 1) RETURNS SETOF integer
             LANGUAGE sql AS 'SELECT 1'",
        )
        .await
        .expect_err("the shape of a function cannot change in place");
    client
        .batch_execute(
            "UPDATE vtq._migration SET checksum = 'of an older build' WHERE version = 0;
             CREATE OR REPLACE FUNCTION vtq._iso(at timestamptz) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'",
        )
        .await
        .unwrap();
    let vtq = Vtq::connect(db.url()).await.unwrap();
    assert_eq!(vtq.schema_state().await.unwrap(), SchemaState::Behind);

    let report = vtq.migrate().await.unwrap();

    assert!(report.installed_functions && report.applied.is_empty(), "{report:?}");
    assert_eq!(before, catalogue(&db).await);
}

async fn refusal(change: &str) -> String {
    let db = TestDb::new().await;
    db.client().await.batch_execute(change).await.unwrap();
    let vtq = Vtq::connect(db.url()).await.unwrap();
    let before = catalogue(&db).await;

    let error = vtq.migrate().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::NewerSchema);
    assert_eq!(before, catalogue(&db).await);
    error.to_string()
}

#[tokio::test]
async fn newer_schema_is_refused_with_the_release_to_install() {
    let text = refusal(
        "INSERT INTO vtq._migration (version, name, checksum, vtq_version) VALUES (99, 'x', 'y', '7.0.0')",
    )
    .await;

    assert!(
        text.contains("is at version 99, from vtq 7.0.0") && text.contains("install vtq 7.0.0"),
        "{text}"
    );
}

#[tokio::test]
async fn newer_functions_are_refused() {
    let text = refusal("UPDATE vtq._migration SET vtq_version = '99.0.0' WHERE version = 0").await;

    assert!(text.contains("functions are from vtq 99.0.0"), "{text}");
}

#[tokio::test]
async fn migration_that_is_not_the_one_known_is_named() {
    let text = refusal("UPDATE vtq._migration SET checksum = 'other' WHERE version = 1").await;

    assert!(text.contains("migration 1 (create_catalogue)") && text.contains("checksums differ"), "{text}");
}

#[tokio::test]
async fn verb_on_a_database_without_vtq_says_what_to_run() {
    let db = TestDb::empty().await;
    let vtq = Vtq::connect(db.url()).await.unwrap();

    let error = vtq.queue("orders").unwrap().send(&1).await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::NotMigrated);
    assert!(error.to_string().contains("vtq migrate"), "{error}");
}

#[tokio::test]
async fn role_without_superuser_installs_vtq() {
    let db = TestDb::empty().await;
    let client = db.client().await;
    let role = format!("{}_owner", db.name());
    client
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'x' NOSUPERUSER NOCREATEROLE NOCREATEDB;
             GRANT CREATE, TEMPORARY ON DATABASE {} TO {role}; SET ROLE {role}",
            db.name()
        ))
        .await
        .unwrap();

    client.batch_execute(&Vtq::schema_sql()).await.unwrap();
    client
        .batch_execute(
            "SELECT vtq.create_queue('q'), vtq.send('q', '1'); SELECT vtq.read('q'), vtq.maintain('q')",
        )
        .await
        .unwrap();

    client
        .batch_execute(&format!(
            "RESET ROLE; DROP SCHEMA vtq CASCADE; DROP OWNED BY {role}; DROP ROLE {role}"
        ))
        .await
        .unwrap();
}
