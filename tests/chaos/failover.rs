//! The primary dies, and its standby takes over.

use std::time::Duration;

use tokio_postgres::Client;
use vtq_dev::Cluster;
use vtq_tests::wait_until;

use crate::clock::now;
use crate::harness::{Dice, RECOVERY, Stage, connect, short_lease};
use crate::producer::{Load, Producer};
use crate::verdict::Doubles;

/// A standby that streams, and has to have a commit on its disk before the commit is acknowledged.
pub(crate) async fn synchronous_standby(cluster: &mut Cluster) -> Cluster {
    let standby = cluster.standby().unwrap();
    let client = connect(&cluster.url()).await;
    // After the copy was made: the standby, once promoted, must wait for nobody.
    client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    wait_until(RECOVERY, "the standby to be synchronous", async || is_synchronous(&client).await).await;
    standby
}

async fn is_synchronous(client: &Client) -> bool {
    let sql =
        "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming')";
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_follow_to_the_promoted_standby() {
    let mut stage = Stage::new("failover", short_lease(5)).await;
    let mut standby = synchronous_standby(&mut stage.cluster).await;
    let (first, second) = (stage.cluster.port(), standby.port());
    let hosts = format!("@127.0.0.1:{first},127.0.0.1:{second}/");
    let url = stage.cluster.url().replace(&format!("@127.0.0.1:{first}/"), &hosts);
    let url = format!("{url}?target_session_attrs=read-write");
    stage.work(&url);
    stage.work(&url);
    let dice: Dice = stage.dice.fork();
    let producer = Producer::start(&url, Load::default(), dice);
    stage.warm(200).await;

    stage.dice.wait(300, 2000).await;
    stage.cluster.kill().unwrap();
    // Somebody has to notice first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    standby.promote().unwrap();
    stage.recovered(now()).await;

    // A claim is not waited for: one that did not reach the standby is undone, and its run goes on.
    stage.verify_at(&standby.url(), producer, Doubles::Explained).await;
}
