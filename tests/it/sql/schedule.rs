//! Schedules: what is refused, who fires a tick, and what a pause, a removal and a missing queue do.

use serde_json::{Value, json};

use super::session::Session;

/// A session in a database with queue `q` and schedule `s`, whose next tick is past by a second.
async fn with_schedule() -> Session {
    let s = Session::with_queue("{}").await;
    s.run(r#"SELECT vtq.schedule_add('s', '0 * * * *', 'q', '{"n": 1}', headers => '{"h": true}')"#).await;
    plan(&s, "now() - interval '1 s'").await;
    s
}

/// Sets the next tick.
async fn plan(s: &Session, at: &str) {
    s.run(&format!("UPDATE vtq._schedule SET next_at = {at}, due_at = {at}")).await;
}

/// The call that fires the tick that is next, as a worker makes it that has just looked.
async fn fire_call(s: &Session) -> String {
    s.value(
        "SELECT format('SELECT msg_id FROM vtq._fire(%L, %L, %L, ARRAY[%L]::timestamptz[], %L, 0)',
            name, revision, next_at, next_at, next_at + interval '1 h') FROM vtq._due_schedules(1)",
    )
    .await
}

async fn listed(s: &Session) -> Value {
    s.row("SELECT * FROM vtq.schedule_list()").await
}

#[tokio::test]
async fn a_new_schedule_waits_for_a_worker_to_work_out_its_ticks() {
    let s = Session::with_queue("{}").await;

    assert!(s.value::<bool>("SELECT vtq.schedule_add('s', '0 3 * * *', 'q', '1', 'Europe/Berlin')").await);

    let listed = listed(&s).await;
    assert_eq!((&listed["state"], &listed["next_at"]), (&json!("new"), &Value::Null));
    assert_eq!((&listed["timezone"], &listed["missed"]), (&json!("Europe/Berlin"), &json!("skip")));
    let due = s.row("SELECT name, due_in <= '0' AS is_due, next_at FROM vtq._due_schedules(1)").await;
    assert_eq!(due, json!({"name": "s", "is_due": true, "next_at": null}));
    let plan = "SELECT count(*) FROM vtq._fire('s', (SELECT revision FROM vtq._schedule), NULL, '{}', '2100-01-01', 0)";
    assert_eq!(s.value::<i64>(plan).await, 0);
    assert!(
        s.value::<bool>("SELECT next_at = '2100-01-01' AND state = 'active' FROM vtq.schedule_list()").await
    );
}

#[tokio::test]
async fn a_tick_sends_one_message_that_says_whose_it_is() {
    let s = with_schedule().await;
    let tick: String = s.value("SELECT vtq._iso(next_at) FROM vtq._schedule").await;

    assert_eq!(s.values::<i64>(&fire_call(&s).await).await, [1]);

    let message = s.row("SELECT headers, message FROM vtq.peek('q')").await;
    let headers = json!({"h": true, "vtq_schedule": {"name": "s", "tick": tick}});
    assert_eq!(message, json!({"headers": headers, "message": {"n": 1}}));
    let listed = listed(&s).await;
    assert_eq!((&listed["last_msg_id"], &listed["sent_ct"]), (&json!(1), &json!(1)));
    assert!(s.value::<bool>("SELECT last_tick_at + interval '1 h' = next_at FROM vtq._schedule").await);
    assert_eq!(s.values::<i64>("SELECT msg_id FROM vtq._tick").await, [1]);
}

/// Makes a call three times, as a worker may that has lost the answer. Returns how many messages were sent.
async fn fire_thrice(session: Session, call: String) -> usize {
    let mut sent = 0;
    for _ in 0..3 {
        sent += session.values::<i64>(&call).await.len();
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_sessions_that_fire_the_same_tick_send_it_once() {
    let s = with_schedule().await;
    for round in 1..=20 {
        let call = fire_call(&s).await;
        let mut sessions = Vec::new();
        for _ in 0..8 {
            sessions.push((s.another().await, call.clone()));
        }

        let tasks: Vec<_> =
            sessions.into_iter().map(|(session, call)| tokio::spawn(fire_thrice(session, call))).collect();
        let mut sent = 0;
        for task in tasks {
            sent += task.await.unwrap();
        }

        assert_eq!((sent, s.count("vtq.q").await), (1, round));
        plan(&s, &format!("now() - interval '{round} min'")).await;
    }
}

#[tokio::test]
async fn a_tick_that_was_sent_is_not_sent_again_when_the_plan_is_set_back() {
    let s = with_schedule().await;
    let tick: String = s.value("SELECT next_at::text FROM vtq._schedule").await;
    s.run(&fire_call(&s).await).await;
    plan(&s, &format!("'{tick}'")).await;

    assert_eq!(s.values::<i64>(&fire_call(&s).await).await, Vec::<i64>::new());

    assert_eq!((s.count("vtq.q").await, s.count("vtq._tick").await), (1, 1));
    assert!(s.value::<bool>("SELECT next_at > now() AND sent_ct = 1 FROM vtq._schedule").await);
}

#[tokio::test]
async fn a_rollback_leaves_neither_message_nor_tick() {
    let s = with_schedule().await;
    let call = fire_call(&s).await;
    s.run(&format!("BEGIN; {call}; ROLLBACK")).await;
    assert_eq!((s.count("vtq.q").await, s.count("vtq._tick").await), (0, 0));

    assert_eq!(s.values::<i64>(&call).await.len(), 1);
}

#[tokio::test]
async fn while_one_fires_another_does_not_wait() {
    let a = with_schedule().await;
    let b = a.another().await;
    let call = fire_call(&a).await;
    a.run(&format!("BEGIN; {call}")).await;

    b.run("SET statement_timeout = '20 s'").await;
    assert_eq!(b.values::<i64>(&call).await.len(), 0);
    a.run("COMMIT").await;

    assert_eq!(b.values::<i64>(&call).await.len(), 0);
    assert_eq!(a.count("vtq.q").await, 1);
}

#[tokio::test]
async fn a_schedule_that_has_changed_is_not_fired_as_it_was() {
    let changes = [
        "SELECT vtq.schedule_add('s', '0 * * * *', 'q', '2')",
        "SELECT vtq.schedule_pause('s')",
        "SELECT vtq.schedule_remove('s')",
        "SELECT vtq.schedule_remove('s'); SELECT vtq.schedule_add('s', '0 * * * *', 'q', '2')",
    ];
    for change in changes {
        let s = with_schedule().await;
        let call = fire_call(&s).await;
        s.run(change).await;

        assert_eq!(s.values::<i64>(&call).await.len(), 0, "{change}");
        assert_eq!(s.count("vtq.q").await, 0, "{change}");
    }
}

#[tokio::test]
async fn adding_again_keeps_the_plan_unless_the_plan_is_what_changed() {
    let s = with_schedule().await;
    let next = "SELECT coalesce(next_at::text, 'none') FROM vtq.schedule_list()";
    let before: String = s.value(next).await;

    assert!(!s.value::<bool>("SELECT vtq.schedule_add('s', '0 * * * *', 'q', '2')").await);
    assert_eq!(s.value::<String>(next).await, before);
    assert_eq!(s.value::<Value>("SELECT message FROM vtq.schedule_list()").await, json!(2));

    s.run("SELECT vtq.schedule_add('s', '30 * * * *', 'q', '2')").await;
    assert_eq!(s.value::<String>(next).await, "none");
}

#[tokio::test]
async fn adding_twice_at_once_is_one_schedule() {
    let a = Session::with_queue("{}").await;
    let b = a.another().await;
    a.run("BEGIN; SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1')").await;
    let waiting =
        tokio::spawn(
            async move { b.value::<bool>("SELECT vtq.schedule_add('s', '0 * * * *', 'q', '2')").await },
        );

    a.run("COMMIT").await;

    assert!(!waiting.await.unwrap());
    assert_eq!(a.values::<Value>("SELECT message FROM vtq.schedule_list()").await, [json!(2)]);
}

#[tokio::test]
async fn a_pause_puts_the_schedule_out_of_the_way_and_keeps_its_place() {
    let s = with_schedule().await;

    assert!(s.value::<bool>("SELECT vtq.schedule_pause('s', 'moving house')").await);
    assert!(!s.value::<bool>("SELECT vtq.schedule_pause('s', 'still')").await);

    let paused = listed(&s).await;
    assert_eq!((&paused["state"], &paused["pause_reason"]), (&json!("paused"), &json!("still")));
    assert_eq!(s.count("vtq._due_schedules(9)").await, 0);
    assert!(s.value::<bool>("SELECT vtq.schedule_resume('s')").await);
    assert!(!s.value::<bool>("SELECT vtq.schedule_resume('s')").await);
    assert!(s.value::<bool>("SELECT due_in < '0' FROM vtq._due_schedules(9)").await);
}

#[tokio::test]
async fn a_pause_with_an_end_is_due_when_it_ends() {
    let s = with_schedule().await;

    s.run("SELECT vtq.schedule_pause('s', until => now() + interval '1 h')").await;

    assert!(s.value::<bool>("SELECT due_in BETWEEN '59 min' AND '1 h' FROM vtq._due_schedules(9)").await);
    assert_eq!(
        s.refusal("SELECT vtq.schedule_pause('s', until => '2001-01-01 00:00:00+00')").await[..31],
        *"22023 until 2001-01-01 00:00:00"
    );
}

#[tokio::test]
async fn run_now_sends_besides_the_plan() {
    let s = with_schedule().await;
    let before: String = s.value("SELECT next_at::text FROM vtq._schedule").await;
    s.run("SELECT vtq.schedule_pause('s')").await;

    assert_eq!(s.value::<i64>("SELECT vtq.schedule_run('s')").await, 1);

    let headers: Value = s.value("SELECT headers -> 'vtq_schedule' FROM vtq.peek('q')").await;
    assert_eq!(headers, json!({"name": "s", "by_hand": true}));
    assert_eq!(s.value::<String>("SELECT next_at::text FROM vtq._schedule").await, before);
    assert_eq!(s.count("vtq._tick").await, 0);
}

#[tokio::test]
async fn what_a_schedule_says_of_its_messages_reaches_them() {
    let s = Session::with_queue(r#"{"priorities": [5, 0]}"#).await;
    s.run(
        r#"SELECT vtq.schedule_add('s', '0 * * * *', 'q', '1', delay => '10 min', priority => 5, max_attempts => 2,
            policy => '{"timeout": 7}', expires_in => '1 h')"#,
    )
    .await;

    s.run("SELECT vtq.schedule_run('s')").await;

    let message = s
        .row(
            "SELECT priority, max_attempts, policy, (ready_at - enqueued_at)::text AS delay,
            (expires_at - enqueued_at)::text AS expires_in FROM vtq.q",
        )
        .await;
    let expected = json!({"priority": 5, "max_attempts": 2, "policy": {"timeout": 7}, "delay": "00:10:00",
        "expires_in": "01:00:00"});
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_queue_that_is_gone_is_refused_with_its_name_and_nothing_moves() {
    let s = with_schedule().await;
    let call = fire_call(&s).await;
    s.run("SELECT vtq.drop_queue('q')").await;

    assert_eq!(s.refusal(&call).await, "VT001 queue \"q\" does not exist");
    s.run("SELECT vtq._schedule_failed('s', (SELECT revision FROM vtq._schedule), 'queue is gone', '10 s')")
        .await;

    let failing = listed(&s).await;
    assert_eq!((&failing["state"], &failing["error"]), (&json!("failing"), &json!("queue is gone")));
    assert!(s.value::<bool>("SELECT due_in > '0' FROM vtq._due_schedules(9)").await);
    s.run("SELECT vtq.create_queue('q')").await;
    assert_eq!(s.values::<i64>(&call).await, [1]);
    assert_eq!(s.value::<String>("SELECT state FROM vtq.schedule_list()").await, "active");
}

#[tokio::test]
async fn ticks_are_forgotten_after_a_day() {
    let s = with_schedule().await;
    s.run(
        "INSERT INTO vtq._tick (name, tick_at, queue, msg_id, sent_at)
        SELECT 's', now() - age, 'q', 0, now() FROM unnest('{23 h,25 h,40 days}'::interval[]) AS age",
    )
    .await;

    s.run(&fire_call(&s).await).await;

    assert_eq!(s.count("vtq._tick").await, 2);
    s.run("SELECT vtq.schedule_remove('s')").await;
    assert_eq!(s.count("vtq._tick").await, 0);
}

#[tokio::test]
async fn removing_says_whether_it_was_there() {
    let s = with_schedule().await;

    assert!(s.value::<bool>("SELECT vtq.schedule_remove('s')").await);
    assert!(!s.value::<bool>("SELECT vtq.schedule_remove('s')").await);

    for verb in ["pause", "resume", "run"] {
        let refusal = s.refusal(&format!("SELECT vtq.schedule_{verb}('s')")).await;
        assert_eq!(refusal, "VT006 schedule \"s\" does not exist");
    }
}

#[tokio::test]
async fn what_is_no_schedule_is_refused_with_the_rule() {
    let s = Session::with_queue("{}").await;
    let refusals = [
        ("'', '0 * * * *', 'q', '1'", "22023 schedule name \"\" is not allowed: 1 to 100 bytes"),
        ("NULL, '0 * * * *', 'q', '1'", "22023 schedule name null is not allowed"),
        ("E'a\\nb', '0 * * * *', 'q', '1'", "22023 schedule name \"a"),
        ("' a', '0 * * * *', 'q', '1'", "22023 schedule name \" a\" is not allowed"),
        ("repeat('ä', 51), '0 * * * *', 'q', '1'", "22023 schedule name \"ä"),
        ("'s', '* * *', 'q', '1'", "22023 cron \"* * *\" is not allowed: it must have five fields"),
        ("'s', NULL, 'q', '1'", "22023 cron null is not allowed"),
        ("'s', '0 * * * *', 'q', '1', 'Europe/Berln'", "22023 timezone \"Europe/Berln\" is not known"),
        ("'s', '0 * * * *', 'q', '1', NULL", "22023 timezone null is not known"),
        (
            "'s', '0 * * * *', 'q', '1', missed => 'some'",
            "22023 missed \"some\" is not allowed: it must be skip",
        ),
        (
            "'s', '0 * * * *', 'q', '1', missed_cap => 0",
            "22023 missed_cap 0 is not allowed: it must be from 1 to 1000",
        ),
        ("'s', '0 * * * *', 'q', '1', grace => '0'", "22023 grace 00:00:00 is not allowed: it must be from"),
        ("'s', '0 * * * *', 'q', '1', grace => NULL", "22023 grace null is not allowed"),
        ("'s', '0 * * * *', 'q', '1', delay => '-1 s'", "22023 delay -00:00:01 is not allowed"),
        (
            "'s', '0 * * * *', 'q', '1', delay => '2 s', expires_in => '2 s'",
            "22023 expires_in 00:00:02 is not more",
        ),
        ("'s', '0 * * * *', 'q', '1', priority => 9", "22023 priority 9 is not a level of queue \"q\""),
        (
            "'s', '0 * * * *', 'q', '1', headers => '{\"vtq_x\": 1}'",
            "22023 header \"vtq_x\": keys that begin",
        ),
        ("'s', '0 * * * *', 'q', NULL", "22023 message is null"),
        ("'s', '0 * * * *', 'r', '1'", "VT001 queue \"r\" does not exist"),
        ("'s', '0 * * * *', 'R', '1'", "22023 queue name \"R\" is not allowed"),
    ];

    for (arguments, expected) in refusals {
        let refusal = s.refusal(&format!("SELECT vtq.schedule_add({arguments})")).await;
        assert!(refusal.starts_with(expected), "{arguments}: {refusal}");
    }
    assert_eq!(s.count("vtq._schedule").await, 0);
}

#[tokio::test]
async fn looking_reads_no_more_than_is_due() {
    let s = Session::with_queue("{}").await;
    s.run(
        "INSERT INTO vtq._schedule (name, cron, timezone, queue, message, missed, missed_cap, grace, next_at, due_at)
        SELECT n, '0 * * * *', 'UTC', 'q', '1', 'skip', 1, '1 min', now() + n * interval '1 h',
            CASE WHEN n % 2 = 0 THEN 'infinity' ELSE now() + n * interval '1 h' END
        FROM generate_series(1, 20000) AS n; ANALYZE vtq._schedule",
    )
    .await;

    let body = "SELECT s.name FROM vtq._schedule AS s WHERE s.due_at < 'infinity' ORDER BY s.due_at, s.name LIMIT 100";
    let plan = vtq_tests::explain(&s.client, body, &[]).await;

    assert_eq!(vtq_tests::seq_scans(&plan), Vec::<String>::new(), "{plan:#}");
    assert!(plan.to_string().contains("_schedule_due"), "{plan:#}");
    assert!(!plan.to_string().contains("Sort Key"), "{plan:#}");
    assert_eq!(s.value::<String>("SELECT name FROM vtq._due_schedules(1)").await, "1");
}
