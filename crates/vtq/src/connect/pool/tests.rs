//! What happens to a connection that was cut short, lost, or left alone: against a real server.

use std::time::Instant;

use deadpool::managed::Manager as _;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use vtq_dev::{Cluster, StopMode};

use super::*;
use crate::error::ErrorKind;

fn cluster() -> Cluster {
    Cluster::builder().start().unwrap_or_else(|e| panic!("{e:#?}"))
}

async fn query(client: &PooledClient, sql: &str) -> Result<String> {
    let answer = async {
        let rows = client.simple_query(sql).await.map_err(|e| Error::db("run a test query", &e))?;
        let text = rows.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(text.unwrap_or_default().to_owned())
    };
    client.bounded("run a test query", answer).await
}

async fn pid(vtq: &Vtq) -> String {
    query(&vtq.client().await.unwrap(), "SELECT pg_backend_pid()").await.unwrap()
}

/// In a debug build each await of a function has its place on the stack, several times over: a dozen futures of 34 KB,
/// which they once were, overflow the two megabytes of a thread.
#[tokio::test]
async fn future_of_a_verb_is_small() {
    let vtq = ConnectOptions::from_url("postgresql://localhost/x").unwrap().lazy().unwrap();

    let bytes = size_of_val(&vtq.queue("q").unwrap().send("x"));

    assert!(bytes < 6 * 1024, "{bytes} bytes");
}

#[tokio::test]
async fn statement_over_the_limit_is_cancelled_and_its_connection_not_reused() {
    let cluster = cluster();
    let options =
        ConnectOptions::from_url(&cluster.url()).unwrap().statement_limit(Duration::from_millis(300));
    let vtq = options.pool_size(1).connect().await.unwrap();
    let before = pid(&vtq).await;

    let error = query(&vtq.client().await.unwrap(), "SELECT pg_sleep(60)").await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.to_string(), "run a test query: no answer within 300ms");
    assert_ne!(pid(&vtq).await, before);
    let deadline = Instant::now() + Duration::from_secs(10);
    let sleepers =
        "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'";
    while query(&vtq.client().await.unwrap(), sleepers).await.unwrap() != "0" {
        assert!(Instant::now() < deadline, "the server still runs it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn connection_of_a_dropped_statement_is_not_reused() {
    let cluster = cluster();
    let options = ConnectOptions::from_url(&cluster.socket_url_for("postgres")).unwrap().pool_size(1);
    let vtq = options.connect().await.unwrap();
    let before = pid(&vtq).await;

    {
        let client = vtq.client().await.unwrap();
        let sleeping = query(&client, "SELECT pg_sleep(60)");
        tokio::time::timeout(Duration::from_millis(100), sleeping).await.unwrap_err();
    }

    assert_ne!(pid(&vtq).await, before);
    assert_eq!(pid(&vtq).await, pid(&vtq).await);
}

#[tokio::test]
async fn failed_statement_keeps_its_connection() {
    let cluster = cluster();
    let vtq = Vtq::connect(&cluster.url()).await.unwrap();
    let before = pid(&vtq).await;

    let error = query(&vtq.client().await.unwrap(), "SELECT 1/0").await.unwrap_err();

    assert_eq!((error.kind(), error.code()), (ErrorKind::Database, Some("22012")));
    assert_eq!(pid(&vtq).await, before);
}

#[tokio::test]
async fn late_answer_costs_its_connection() {
    let cluster = cluster();
    let options =
        ConnectOptions::from_url(&cluster.url()).unwrap().statement_limit(Duration::from_millis(300));
    let vtq = options.connect().await.unwrap();
    let before = pid(&vtq).await;
    let client = vtq.client().await.unwrap();

    let late = client
        .bounded("test", async {
            client.batch_execute("SELECT pg_sleep(60)").await.map_err(|e| Error::db("sleep", &e))
        })
        .await;
    drop(client);

    assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
    assert_ne!(pid(&vtq).await, before);
}

#[tokio::test]
async fn restarted_server_is_found_again() {
    let mut cluster = cluster();
    let vtq = Vtq::connect(&cluster.url()).await.unwrap();
    let held = [vtq.client().await.unwrap(), vtq.client().await.unwrap()];
    drop(held);

    cluster.stop(StopMode::Immediate).unwrap();
    let away = vtq.ping().await.unwrap_err();
    cluster.start_again().unwrap();

    assert!(away.is_retryable() && away.is_closed(), "{away:?}");
    vtq.ping().await.unwrap();
}

#[tokio::test]
async fn full_pool_says_what_ran_out() {
    let cluster = cluster();
    let options = ConnectOptions::from_url(&cluster.url()).unwrap().pool_size(2);
    let vtq = options.pool_timeout(Duration::from_millis(50)).connect().await.unwrap();
    let held = [vtq.client().await.unwrap(), vtq.client().await.unwrap()];

    let error = vtq.ping().await.unwrap_err();

    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.to_string(), "wait for one of the pool's 2 connections: no answer within 50ms");
    drop(held);
    vtq.ping().await.unwrap();
    vtq.close();
    assert_eq!(vtq.ping().await.unwrap_err().to_string(), "the pool is closed");
}

#[tokio::test]
async fn rested_connection_to_a_server_that_vanished_is_not_handed_out() {
    let cluster = cluster();
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = proxy.local_addr().unwrap().port();
    let url = cluster.url().replace(&format!(":{}/", cluster.port()), &format!(":{port}/"));
    let to_server = ("127.0.0.1", cluster.port());
    let forwarding = tokio::spawn(async move {
        let (mut client, _) = proxy.accept().await.unwrap();
        let mut server = TcpStream::connect(to_server).await.unwrap();
        // Both sockets stay open when forwarding stops: nothing tells the client.
        let _ =
            tokio::time::timeout(Duration::from_secs(1), copy_bidirectional(&mut client, &mut server)).await;
        std::future::pending::<()>().await;
    });
    let options = ConnectOptions::from_url(&url).unwrap();
    let manager = Manager { settings: Arc::new(options.settings().unwrap()) };
    let mut pooled = manager.create().await.unwrap();
    let rested = Metrics { created: Instant::now() - Duration::from_secs(60), ..Metrics::default() };

    assert!(manager.recycle(&mut pooled, &rested).await.is_ok());
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(manager.recycle(&mut pooled, &Metrics::default()).await.is_ok(), "fresh: nobody asks");
    assert!(manager.recycle(&mut pooled, &rested).await.is_err());
    forwarding.abort();
}

#[tokio::test]
async fn dedicated_connection_hears_notifications_and_ends_with_the_server() {
    let mut cluster = cluster();
    let vtq = Vtq::connect(&cluster.url()).await.unwrap();
    let (client, mut notifications) = vtq.dedicated().await.unwrap().spawn();

    client.batch_execute("LISTEN vtq_orders; NOTIFY vtq_orders").await.unwrap();
    let heard = notifications.recv().await.map(|notification| notification.channel().to_owned());
    cluster.stop(StopMode::Immediate).unwrap();
    let after = notifications.recv().await.is_none();

    assert_eq!(heard.as_deref(), Some("vtq_orders"));
    assert!(after && client.is_closed());
}

#[tokio::test]
async fn session_attributes_choose_the_server() {
    let mut primary = cluster();
    let standby = primary.standby().unwrap_or_else(|e| panic!("{e:#?}"));
    let both = |first: &Cluster, second: &Cluster, attributes: &str| {
        let password = primary.url().split([':', '@']).nth(2).unwrap().to_owned();
        format!(
            "host=127.0.0.1,127.0.0.1 port={},{} user=postgres password={password} target_session_attrs={attributes}",
            first.port(),
            second.port()
        )
    };
    let is_standby = async |dsn: String| {
        let vtq = Vtq::connect(&dsn).await?;
        query(&vtq.client().await?, "SELECT pg_is_in_recovery()").await
    };

    for (attributes, expected) in
        [("read-write", "f"), ("primary", "f"), ("read-only", "t"), ("standby", "t"), ("prefer-standby", "t")]
    {
        for (first, second) in [(&primary, &standby), (&standby, &primary)] {
            assert_eq!(is_standby(both(first, second, attributes)).await.unwrap(), expected, "{attributes}");
        }
    }
    assert_eq!(is_standby(both(&primary, &primary, "prefer-standby")).await.unwrap(), "f");
    let refused = is_standby(both(&standby, &standby, "primary")).await.unwrap_err();
    assert!(refused.is_retryable(), "{refused:?}");
    assert!(format!("{refused:?}").contains("it is a standby"), "{refused:?}");
}
