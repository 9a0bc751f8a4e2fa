//! A worker that fires schedules, as its log tells it and its handler sees it.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::worker::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_reaches_its_handler_with_the_tick_and_trouble_is_told() {
    let world = World::new().await;
    let add = "SELECT vtq.schedule_add('good', '* * * * * *', 'q', '1'), vtq.schedule_add('bad', '61 * * * *', 'q', '1')";
    world.client.batch_execute(add).await.unwrap();
    let command = "echo \"$VTQ_HEADERS\" | tr -d ' ' >> headers";

    let worker = world.start(&["--exec", command, "-v"]);
    worker.says("schedule bad cannot send: cron \"61 * * * *\" is not allowed").await;
    worker.says("schedule good: sent message 1 for 20").await;
    let headers = world.wait_for_words("headers", 2).await;
    worker.signal(Signal::SIGTERM);
    worker.ended().await;

    let headers: Value = serde_json::from_str(&headers[0]).unwrap();
    assert_eq!(headers["vtq_schedule"]["name"], "good");
}
