//! The verbs in a transaction of the caller's.

use tokio_postgres::Client;
use vtq::{Queue, QueueOptions, ReadOptions, Settled, Vtq};
use vtq_tests::TestDb;

async fn bench() -> (TestDb, Queue, Client) {
    let db = TestDb::new().await;
    let queue = Vtq::connect(db.url()).await.unwrap().queue("q").unwrap();
    queue.create(&QueueOptions::new()).await.unwrap();
    let client = db.client().await;
    client.batch_execute("CREATE TABLE effect (id bigint)").await.unwrap();
    (db, queue, client)
}

async fn effects(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM effect", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn send_happens_if_and_only_if_the_change_does() {
    let (_db, queue, mut client) = bench().await;

    let undone = client.transaction().await.unwrap();
    undone.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    queue.on(&undone).send(&1).await.unwrap();
    undone.rollback().await.unwrap();
    let done = client.transaction().await.unwrap();
    done.batch_execute("INSERT INTO effect VALUES (2)").await.unwrap();
    queue.on(&done).send(&2).await.unwrap();
    assert!(queue.peek(10).await.unwrap().is_empty(), "nobody sees it before the commit");
    done.commit().await.unwrap();

    let seen: Vec<String> = queue.peek(10).await.unwrap().iter().map(|m| m.body.get().to_owned()).collect();
    assert_eq!((seen, effects(&client).await), (vec!["2".to_owned()], 1));
}

#[tokio::test]
async fn ack_and_effect_are_one() {
    let (_db, queue, mut client) = bench().await;
    queue.send(&1).await.unwrap();
    let lease = queue.read(&ReadOptions::new()).await.unwrap()[0].lease;

    let undone = client.transaction().await.unwrap();
    undone.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    assert_eq!(queue.on(&undone).ack(lease).await.unwrap(), Settled::Done);
    undone.rollback().await.unwrap();
    let done = client.transaction().await.unwrap();
    done.batch_execute("INSERT INTO effect VALUES (1)").await.unwrap();
    let settled = queue.on(&done).ack(lease).await.unwrap();
    done.commit().await.unwrap();

    assert_eq!((settled, effects(&client).await), (Settled::Done, 1));
    assert_eq!(queue.ack(lease).await.unwrap(), Settled::LeaseLost);
}

#[tokio::test]
async fn read_that_is_rolled_back_was_none() {
    let (_db, queue, mut client) = bench().await;
    queue.send(&1).await.unwrap();

    let undone = client.transaction().await.unwrap();
    assert_eq!(queue.on(&undone).read(&ReadOptions::new()).await.unwrap().len(), 1);
    assert!(queue.read(&ReadOptions::new()).await.unwrap().is_empty(), "others pass it over");
    undone.rollback().await.unwrap();

    assert_eq!(queue.read(&ReadOptions::new()).await.unwrap()[0].lease.read_ct, 1);
}
