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
async fn a_clone_has_vtq_in_it_and_an_empty_database_has_not() {
    let (full, empty) = (TestDb::new().await, TestDb::empty().await);

    for (db, expected) in [(&full, true), (&empty, false)] {
        let sql = "SELECT to_regnamespace('vtq') IS NOT NULL";
        let has_schema: bool = db.client().await.query_one(sql, &[]).await.unwrap().get(0);
        assert_eq!(has_schema, expected, "{}", db.name());
    }
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
    let db = TestDb::new().await;
    let client = db.client().await;
    let send = "SELECT vtq.send('orders', '{}', delay => $1::text::interval)";
    client.batch_execute("SELECT vtq.create_queue('orders')").await.unwrap();
    let leased: i64 = client.query_one(send, &[&"0 s"]).await.unwrap().get(0);
    client.batch_execute("SELECT vtq.read('orders', '1 h')").await.unwrap();
    let delayed: i64 = client.query_one(send, &[&"1 h"]).await.unwrap().get(0);

    make_visible(&client, "orders", leased).await;
    make_visible(&client, "orders", delayed).await;

    let sql = "SELECT vt <= clock_timestamp(), vt <> ready_at FROM vtq.orders ORDER BY msg_id";
    let rows = client.query(sql, &[]).await.unwrap();
    let seen: Vec<(bool, bool)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(seen, [(true, true), (true, false)], "(visible, leased)");
    let sql = "SELECT msg_id FROM vtq.read('orders', '1 h', 9) ORDER BY msg_id";
    let read: Vec<i64> = client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(read, [leased, delayed]);
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
