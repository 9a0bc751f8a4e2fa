//! The command line of `vtq start`, and a worker that ends by itself.

use std::fs;

use crate::worker::{Worker, World};

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named_in_one_line_and_exit_with_2() {
    let world = World::new().await;
    for (args, words) in [
        (&["--queues", "q"][..], "--exec"),
        (&["--exec", "true"], "--queues"),
        (&["--queues", "q", "--exec", "true", "--pipe", "cat"], "cannot be used with"),
        (&["--queues", "q: many", "--exec", "true"], "in \"q: many\": \"many\" is no number"),
        (&["--queues", "q; Q", "--exec", "true"], "in \"Q\": "),
        (&["--queues", "q", "--exec", " "], "it is empty"),
        (&["--queues", "q", "--url", "nonsense"], "--url is no address"),
        (&["--queues", "q", "--url", "ftp://host/"], "must begin with http:// or https://"),
        (&["--queues", "q, q", "--exec", "true"], "queue `q` is given twice"),
        (&["--queues", "nope", "--exec", "true"], "queue \"nope\" does not exist"),
        (&["--queues", "q", "--exec", "true", "--vt", "3s", "--heartbeat", "2s"], "too slow for queue `q`"),
        (&["--queues", "q", "--exec", "true", "--no-listen", "--listen-url", "x"], "cannot be used with"),
    ] {
        let ended = Worker::start(&mut world.command(args)).ended().await;

        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn once_ends_with_0_when_there_is_nothing() {
    let world = World::new().await;

    let ended = world.once(&["--exec", "true", "--no-listen"]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("stopped: 0 done"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn once_takes_all_that_is_ready_from_each_capsule() {
    let world = World::new().await;
    world.client.batch_execute("SELECT vtq.create_queue('urgent'), vtq.create_queue('mails')").await.unwrap();
    world
        .client
        .batch_execute(
            "SELECT vtq.send(queue, '1') FROM unnest(ARRAY['q', 'urgent', 'mails']) AS queue, \
        generate_series(1, 30)",
        )
        .await
        .unwrap();
    let delayed = "SELECT vtq.send('q', '2', delay => interval '1 hour')";
    world.client.batch_execute(delayed).await.unwrap();

    let args = ["--queues", "urgent: 5; q, mails: 10", "--once", "--exec", "echo $VTQ_QUEUE >> seen"];
    let ended = Worker::start(&mut world.command(&args)).ended().await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("serves urgent: 5; q, mails: 10 by --exec"), "{}", ended.stderr);
    assert!(ended.stderr.contains("stopped: 90 done"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(world.path("seen")).unwrap().lines().count(), 90);
    assert_eq!(world.count("vtq.q").await, 1);
}
