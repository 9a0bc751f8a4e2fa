//! Any worker fires any schedule, and each tick is sent once.

use serde_json::json;
use vtq::{
    Capsule, ConnectOptions, Created, ErrorKind, Missed, Outgoing, QueueOptions, Schedule, ScheduleState,
    Worker, WorkerEvent, handler_fn,
};

use super::{Bench, Running, until};

/// Sends to `other`, which the bench's workers do not serve.
fn every_second(name: &str) -> Schedule {
    Schedule::new(name, "* * * * * *", "other", Outgoing::new(&1).unwrap())
}

async fn bench() -> Bench {
    let bench = Bench::new(QueueOptions::new()).await;
    bench.vtq.queue("other").unwrap().create(&QueueOptions::new()).await.unwrap();
    bench
}

fn start(bench: &Bench) -> Running {
    bench.start(handler_fn(|_, _| async {}), |builder| builder)
}

async fn sent(bench: &Bench) -> i64 {
    bench.number("SELECT count(*) FROM vtq.other").await
}

/// An hourly schedule whose ticks are half an hour away from now, and whose last five nobody has sent.
async fn add_late(bench: &Bench, missed: Missed) {
    let minute = bench.text("SELECT (extract(minute FROM clock_timestamp())::int + 30) % 60 || ''").await;
    let hourly = Schedule::new("s", format!("{minute} * * * *"), "other", Outgoing::new(&1).unwrap());
    bench.vtq.schedule_add(&hourly.missed(missed)).await.unwrap();
    let set_back =
        "UPDATE vtq._schedule SET next_at = next_at - interval '5 h', due_at = next_at - interval '5 h'";
    bench.client.batch_execute(set_back).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_send_each_tick_once_also_when_one_is_killed() {
    let bench = bench().await;
    assert_eq!(bench.vtq.schedule_add(&every_second("s")).await.unwrap(), Created::New);
    let (first, second) = (start(&bench), start(&bench));

    until("three ticks", async || sent(&bench).await >= 3).await;
    first.kill();
    let before = sent(&bench).await;
    until("three more", async || sent(&bench).await >= before + 3).await;
    second.stop().await;

    // Every tick from the first to the last, each with one message.
    let odd = "
        SELECT count(*) FILTER (WHERE tick - last <> '1 s') FROM (
            SELECT tick, lag(tick) OVER (ORDER BY tick) AS last
            FROM (SELECT (headers #>> '{vtq_schedule,tick}')::timestamptz AS tick FROM vtq.other) AS t
        ) AS pairs";
    assert_eq!(bench.number(odd).await, 0);
    let info = &bench.vtq.schedules().await.unwrap()[0];
    assert_eq!((info.sent_total, info.skipped_total), (sent(&bench).await as u64, 0));
    assert_eq!(info.last_id, Some(bench.number("SELECT max(msg_id) FROM vtq.other").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_hours_are_skipped_or_made_up_for_as_the_schedule_says() {
    for (missed, expected) in [
        (Missed::Skip, (0, 5)),
        (Missed::Once, (1, 4)),
        (Missed::All { cap: 100 }, (5, 0)),
        (Missed::All { cap: 2 }, (2, 3)),
    ] {
        let bench = bench().await;
        add_late(&bench, missed).await;

        let worker = start(&bench);
        until("the plan to go on", async || {
            bench.number("SELECT count(*) FROM vtq._schedule WHERE next_at > clock_timestamp()").await == 1
        })
        .await;
        worker.stop().await;

        let info = &bench.vtq.schedules().await.unwrap()[0];
        assert_eq!((info.sent_total, info.skipped_total), expected, "{missed:?}");
        assert_eq!(sent(&bench).await as u64, info.sent_total);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_whose_queue_is_gone_says_so_and_sends_again_when_it_is_back() {
    let bench = bench().await;
    bench.vtq.schedule_add(&every_second("s")).await.unwrap();
    let queue = bench.vtq.queue("other").unwrap();
    queue.drop_queue().await.unwrap();
    let worker = start(&bench);
    let events = worker.events.clone();

    until("the trouble to show", async || {
        bench.vtq.schedules().await.unwrap()[0].state == ScheduleState::Failing
    })
    .await;
    let error = bench.vtq.schedules().await.unwrap()[0].error.clone().unwrap();
    bench.queue.send(&1).await.unwrap();
    until("the worker to work", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1).await;
    queue.create(&QueueOptions::new()).await.unwrap();
    until("it to send again", async || sent(&bench).await > 0).await;
    worker.stop().await;

    assert_eq!(error, "queue \"other\" does not exist");
    assert_eq!(events.count(|e| matches!(e, WorkerEvent::ScheduleTrouble { .. })), 1);
    assert_eq!(events.count(|e| matches!(e, WorkerEvent::ScheduleBack { .. })), 1);
    assert_eq!(bench.vtq.schedules().await.unwrap()[0].error, None);
}

/// Its next look comes only after a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_listening_worker_hears_of_a_schedule_that_sql_adds() {
    let bench = bench().await;
    let worker = start(&bench);
    let events = worker.events.clone();
    until("the worker to sleep", async || events.count(|e| matches!(e, WorkerEvent::Asleep)) > 0).await;

    let add = "SELECT vtq.schedule_add('s', '* * * * * *', 'other', '1')";
    bench.client.batch_execute(add).await.unwrap();

    until("a tick", async || sent(&bench).await > 0).await;
    until("the event", async || events.count(|e| matches!(e, WorkerEvent::ScheduleFired { .. })) > 0).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expression_that_only_sql_took_fails_alone_and_in_words() {
    let bench = bench().await;
    let add = "SELECT vtq.schedule_add('a', '61 * * * *', 'other', '1'),
        vtq.schedule_add('b', '* * * * * *', 'other', '1'), vtq.schedule_add('c', '0 0 30 2 *', 'other', '1')";
    bench.client.batch_execute(add).await.unwrap();

    let worker = start(&bench);
    until("a tick of the other one", async || sent(&bench).await > 0).await;
    worker.stop().await;

    let found = bench.vtq.schedules().await.unwrap();
    let states: Vec<ScheduleState> = found.iter().map(|info| info.state).collect();
    assert_eq!(states, [ScheduleState::Failing, ScheduleState::Active, ScheduleState::Failing]);
    assert!(
        found[0].error.as_ref().unwrap().starts_with("cron \"61 * * * *\" is not allowed: "),
        "{found:?}"
    );
    assert!(found[2].error.as_ref().unwrap().ends_with("it has no tick at all"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_has_come_to_its_end_is_left_alone() {
    let bench = bench().await;
    let past = Schedule::new("s", "0 0 0 1 1 * 2020", "other", Outgoing::new(&1).unwrap());

    bench.vtq.schedule_add(&past).await.unwrap();

    assert_eq!(bench.vtq.schedules().await.unwrap()[0].state, ScheduleState::Ended);
    assert_eq!(bench.number("SELECT count(*) FROM vtq._due_schedules(9)").await, 0);
}

#[tokio::test]
async fn what_the_library_adds_is_checked_whole_and_planned_at_once() {
    let bench = bench().await;
    let add = async |cron: &str, zone: &str| {
        let schedule = Schedule::new("s", cron, "other", Outgoing::new(&json!({"n": 1})).unwrap());
        bench.vtq.schedule_add(&schedule.timezone(zone)).await
    };

    for (cron, zone) in [("61 * * * *", "UTC"), ("0 0 30 2 *", "UTC"), ("0 * * * *", "Berlin")] {
        assert_eq!(add(cron, zone).await.unwrap_err().kind(), ErrorKind::InvalidArgument, "{cron} {zone}");
    }
    assert_eq!(add("0 3 * * *", "Europe/Berlin").await.unwrap(), Created::New);
    assert_eq!(add("0 3 * * *", "Europe/Berlin").await.unwrap(), Created::Existing);

    let info = &bench.vtq.schedules().await.unwrap()[0];
    assert_eq!((info.state, info.body.get()), (ScheduleState::Active, "{\"n\": 1}"));
    assert!(info.next_at.unwrap() > bench.vtq.now().await.unwrap());
    let id = bench.vtq.schedule_run("s").await.unwrap();
    assert_eq!(id, 1);
    assert!(bench.vtq.schedule_pause("s", Some("why"), None).await.unwrap());
    assert!(bench.vtq.schedule_resume("s").await.unwrap());
    assert!(bench.vtq.schedule_remove("s").await.unwrap());
    assert_eq!(bench.vtq.schedule_run("s").await.unwrap_err().kind(), ErrorKind::ScheduleNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_whose_queue_is_locked_does_not_hold_up_the_others() {
    let bench = bench().await;
    let to_q = Schedule::new("later", "* * * * * *", "q", Outgoing::new(&1).unwrap());
    bench.vtq.schedule_add(&every_second("first")).await.unwrap();
    bench.client.batch_execute("BEGIN; LOCK TABLE vtq.other").await.unwrap();
    let other = bench.db.client().await;
    let handled = async || {
        let sql = "SELECT count(*) FROM vtq.q_archive";
        other.query_one(sql, &[]).await.unwrap().get::<_, i64>(0)
    };
    let options = ConnectOptions::from_url(bench.db.url()).unwrap();
    let vtq = options.param("options", "-c lock_timeout=100ms").unwrap().connect().await.unwrap();
    let capsule = Capsule::new(["q"], handler_fn(|_, _| async {}));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::builder(&vtq).capsule(capsule).build().unwrap();
    let task = tokio::spawn(worker.run(async move {
        let _ = stopped.await;
    }));

    vtq.schedule_add(&to_q).await.unwrap();
    until("the later one to be sent", async || handled().await > 0).await;
    bench.client.batch_execute("COMMIT").await.unwrap();

    until("the first one to be sent", async || sent(&bench).await > 0).await;
    drop(stop);
    task.await.unwrap().unwrap();
}

/// Only the worker that may send does; the other one tells it once and works on.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_role_may_not_leaves_schedules_to_others() {
    let bench = bench().await;
    bench.vtq.schedule_add(&every_second("s")).await.unwrap();
    let role = format!("{}_worker", bench.db.name());
    let grants = format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role}; GRANT USAGE ON SCHEMA vtq TO {role};
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA vtq TO {role};
        GRANT SELECT ON vtq._queue, vtq._migration TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON vtq._worker, vtq._sleeper TO {role};
        GRANT SELECT, UPDATE, DELETE ON vtq.q TO {role}; GRANT INSERT ON vtq.q_archive TO {role};
        GRANT SELECT, INSERT, UPDATE ON vtq.q_attempts TO {role}"
    );
    bench.client.batch_execute(&grants).await.unwrap();
    let options = ConnectOptions::from_url(bench.db.url()).unwrap();
    let vtq = options.param("options", &format!("-c role={role}")).unwrap().connect().await.unwrap();
    let (refused, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let capsule = Capsule::new(["q"], handler_fn(|_, _| async {}));
    let worker = Worker::builder(&vtq).capsule(capsule).on_event(move |event| {
        if let WorkerEvent::SchedulesRefused { error } = event {
            let _ = refused.send(error.clone());
        }
    });
    let task = tokio::spawn(worker.build().unwrap().run(std::future::pending()));

    let error = heard.recv().await.unwrap();
    bench.queue.send(&1).await.unwrap();
    until("it to work", async || bench.number("SELECT count(*) FROM vtq.q_archive").await == 1).await;
    assert!(error.contains("permission denied for table _schedule"), "{error}");
    assert_eq!(sent(&bench).await, 0);

    let other = start(&bench);
    until("the other to send", async || sent(&bench).await > 0).await;
    other.stop().await;
    task.abort();
    let _ = task.await;
    bench.client.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
}
