//! Priority levels while the upper one is kept full.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::child::Child;
use crate::harness::{Stage, short_lease};
use crate::work::{Fate, Work};

const HIGH: i32 = 10;
const LOW: i32 = 0;

/// How many of the upper level are ready at any time: more than two seconds' work, so that it never runs empty.
const FULL: i64 = 1000;

async fn send(client: &Client, level: i32, count: i64) {
    let work = serde_json::to_value(Work { takes_ms: 20, fate: Fate::Done }).unwrap();
    let sql = "SELECT count(*) FROM vtq.send_batch('q', array_fill($1::jsonb, ARRAY[$2::bigint::int]), priority => $3)";
    client.query_one(sql, &[&work, &count, &level]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn level_below_is_done_while_the_one_above_is_kept_full() {
    let options = short_lease(5).priorities([HIGH as i16, LOW as i16]).aging(Duration::from_millis(500));
    let mut stage = Stage::new("upper level kept full", options).await;
    stage.concurrency = 4;
    let client = stage.client().await;
    send(&client, HIGH, FULL).await;
    send(&client, LOW, 100).await;
    let children = [Child::start(&stage), Child::start(&stage)];

    let sql = "
        SELECT (SELECT count(*) FROM vtq.q WHERE priority = $1 AND vt <= clock_timestamp()),
            (SELECT count(*) FROM vtq.q_archive WHERE priority = $1),
            (SELECT count(*) FROM vtq.q_archive WHERE priority = $2)";
    let started = Instant::now();
    let done_above = loop {
        let row = client.query_one(sql, &[&(HIGH as i16), &(LOW as i16)]).await.unwrap();
        let (ready, above, below): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        assert!(ready > 0, "the upper level ran empty, and shows nothing");
        if below == 100 {
            break above;
        }
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{below} of 100 are done, and {above} of the upper level"
        );
        send(&client, HIGH, FULL - ready).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    for child in children {
        child.stop();
    }

    eprintln!("{}: {done_above} of the upper level done meanwhile", stage.name);
    assert!(done_above > 0, "the upper level goes on as well");
}
