//! A crash of the server: what an unlogged queue loses, and what it must not mix up.

use vtq_tests::{install, own_cluster};

/// From PostgreSQL 15 on the sequence of an unlogged table would be unlogged too, and start again at 1.
#[tokio::test(flavor = "multi_thread")]
async fn an_unlogged_queue_gives_no_id_twice() {
    let mut cluster = own_cluster(|cluster| cluster);
    install(&cluster.url()).await;
    let client = connect(&cluster.url()).await;
    client
        .batch_execute(
            r#"SELECT vtq.create_queue('q', '{"unlogged": true, "max_attempts": 1}'); SELECT vtq.send_batch('q', '{1,2,3}');
            SELECT vtq.fail('q', r.msg_id, r.read_ct, '"before"') FROM vtq.read('q', qty => 2) AS r"#,
        )
        .await
        .unwrap();

    cluster.kill().unwrap();
    cluster.start_again().unwrap();
    let client = connect(&cluster.url()).await;
    let live: i64 = client.query_one("SELECT count(*) FROM vtq.q", &[]).await.unwrap().get(0);
    assert_eq!(live, 0, "a crash empties it, as its comment says");
    client.batch_execute("SELECT vtq.send('q', '4')").await.unwrap();
    let sql =
        "SELECT f.outcome FROM vtq.read('q') AS r CROSS JOIN LATERAL vtq.fail('q', r.msg_id, r.read_ct) AS f";
    let outcome: String = client.query_one(sql, &[]).await.unwrap().get(0);

    assert_eq!(outcome, "dead");
    let letters: i64 =
        client.query_one("SELECT count(DISTINCT msg_id) FROM vtq.q_dlq", &[]).await.unwrap().get(0);
    assert_eq!(letters, 3);
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
