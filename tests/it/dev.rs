//! The support itself.

use std::time::Duration;

use tokio_postgres::Client;
use vtq_tests::{TestDb, explain, make_visible, own_cluster, seq_scans, wait_until};

const SOON: Duration = Duration::from_secs(30);

async fn has_table(client: &Client, name: &str) -> bool {
    let sql = "SELECT FROM pg_class WHERE relname = $1";
    client.query_opt(sql, &[&name]).await.unwrap().is_some()
}

async fn has_database(client: &Client, name: &str) -> bool {
    let sql = "SELECT FROM pg_database WHERE datname = $1";
    client.query_opt(sql, &[&name]).await.unwrap().is_some()
}

#[tokio::test]
async fn each_test_has_a_database_of_its_own() {
    let (a, b) = tokio::join!(TestDb::new(), TestDb::new());
    let (in_a, in_b) = (a.client().await, b.client().await);

    in_a.batch_execute("CREATE TABLE only_in_a ()").await.unwrap();

    assert!(has_table(&in_a, "only_in_a").await);
    assert!(!has_table(&in_b, "only_in_a").await);
}

#[tokio::test]
async fn a_database_is_dropped_with_its_handle() {
    let (watched, other) = (TestDb::new().await, TestDb::empty().await);
    let client = other.client().await;
    let name = watched.name().to_owned();
    assert!(has_database(&client, &name).await);

    drop(watched);

    wait_until(SOON, "the database to go", async || !has_database(&client, &name).await).await;
}

#[tokio::test]
async fn make_visible_keeps_a_lease_a_lease() {
    let db = TestDb::empty().await;
    let client = db.client().await;
    client
        .batch_execute(
            "CREATE SCHEMA vtq;
             CREATE TABLE vtq.orders (msg_id bigint, ready_at timestamptz, vt timestamptz);
             INSERT INTO vtq.orders
             VALUES (1, now(), now() + interval '30 s'), (2, now() + interval '1 h', now() + interval '1 h')",
        )
        .await
        .unwrap();

    make_visible(&client, "orders", 1).await;
    make_visible(&client, "orders", 2).await;

    let sql = "SELECT vt < clock_timestamp(), vt <> ready_at FROM vtq.orders ORDER BY msg_id";
    let rows = client.query(sql, &[]).await.unwrap();
    let seen: Vec<(bool, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(seen, [(true, true), (true, false)], "(visible, leased)");
}

#[tokio::test]
async fn explain_shows_sequential_scans() {
    let db = TestDb::empty().await;
    let client = db.client().await;
    client.batch_execute("CREATE TABLE t (id integer PRIMARY KEY); ANALYZE t").await.unwrap();
    client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").await.unwrap();

    let by_key = explain(&client, "SELECT FROM t WHERE id = $1", &[&1]).await;
    let by_rest = explain(&client, "DELETE FROM t WHERE id % 2 = $1", &[&1]).await;

    assert_eq!(seq_scans(&by_key), Vec::<String>::new(), "{by_key}");
    assert_eq!(seq_scans(&by_rest), ["t"], "{by_rest}");
}

#[tokio::test]
#[should_panic(expected = "for: the impossible")]
async fn wait_until_gives_up_and_says_for_what() {
    wait_until(Duration::from_millis(50), "the impossible", async || false).await;
}

#[test]
fn a_cluster_of_its_own_takes_options() {
    let mut cluster = own_cluster(|cluster| cluster.setting("max_connections", "20"));
    cluster.kill().unwrap();
    cluster.start_again().unwrap();
    assert!(cluster.pid().is_some());
}
