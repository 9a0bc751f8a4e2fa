//! Names of queues: every length, every trick, no collision.

use serde_json::json;
use tokio_postgres::AsyncMessage;

use super::session::Session;

/// One message acked into the archive's partition, one dead-lettered, redriven and settled again.
fn whole_life(queue: &str) -> String {
    format!(
        r#"
        DO $life$
        DECLARE
            id bigint;
        BEGIN
            PERFORM vtq.send_batch('{queue}', '{{1,2}}');
            PERFORM vtq.ack('{queue}', array_agg(r.msg_id), array_agg(r.read_ct)) FROM vtq.read('{queue}') AS r;
            SELECT r.msg_id INTO id FROM vtq.read('{queue}') AS r;
            PERFORM vtq.fail('{queue}', id, 1, '"once"', '0 s');
            PERFORM vtq.read('{queue}');
            ASSERT vtq.dead_letter('{queue}', id, 2) = 'dead';
            ASSERT vtq.redrive('{queue}', id);
            PERFORM vtq.read('{queue}');
            PERFORM vtq.release('{queue}', ARRAY[id], '{{3}}');
            PERFORM vtq.sweep('{queue}');
            ASSERT (vtq.maintain('{queue}') ->> 'ran')::boolean;
            ASSERT (SELECT m.ready + m.dead = 1 FROM vtq.metrics('{queue}') AS m);
        END;
        $life$"#
    )
}

async fn relations(s: &Session) -> Vec<String> {
    s.values("SELECT relname::text FROM pg_class WHERE relnamespace = 'vtq'::regnamespace ORDER BY 1").await
}

#[tokio::test]
async fn a_name_of_any_length_works_end_to_end_or_is_refused() {
    let s = Session::new().await;
    let before = relations(&s).await;

    for length in 1..=64 {
        let name = "q".repeat(length);
        let create = format!("SELECT vtq.create_queue('{name}')");
        if length > 47 {
            assert!(s.refusal(&create).await.starts_with("22023 queue name "), "length {length}");
            continue;
        }
        assert!(s.value::<bool>(&create).await, "length {length}");
        s.run(&whole_life(&name)).await;
        let archived = s.count(&format!(r#"vtq."{name}_archive""#)).await;
        assert_eq!(archived, 1, "length {length}");
        assert!(s.value::<bool>(&format!("SELECT vtq.drop_queue('{name}')")).await, "length {length}");
    }
    assert_eq!(relations(&s).await, before);
}

#[tokio::test]
async fn no_name_made_from_the_longest_one_is_cut() {
    let s = Session::new().await;
    let (client, mut heard) = s.overheard().await;
    let name = "q".repeat(47);

    client.run(&format!("SELECT vtq.create_queue('{name}')")).await;
    client.run(&whole_life(&name)).await;

    let longest: i32 = s
        .value("SELECT max(octet_length(relname)) FROM pg_class WHERE relnamespace = 'vtq'::regnamespace")
        .await;
    // 63 would be the length to which PostgreSQL cuts.
    assert!(longest < 63, "{longest} bytes");
    drop(client);
    while let Some(message) = heard.recv().await {
        assert!(!matches!(message, AsyncMessage::Notice(_)), "{message:?}");
    }
}

#[tokio::test]
async fn names_against_the_rule_are_refused_with_the_rule() {
    let s = Session::new().await;
    s.run("CREATE TABLE canary (); CREATE TABLE vtq.canary ()").await;
    let (forty_eight, accented, wide) = ("q".repeat(48), "é".repeat(24), "日".repeat(16));
    let names = [
        "",
        " ",
        "-",
        "_",
        "-q",
        "_q",
        "_queue",
        "Orders",
        "q.r",
        "q r",
        " q",
        "q ",
        "q\n",
        "\nq",
        "q\nr",
        "q\r",
        "q\t",
        "q\u{0b}",
        "\"",
        "\"q\"",
        "'",
        "q'; DROP TABLE vtq.canary; --",
        "\"; DROP TABLE canary; --",
        "$1",
        "$q$",
        "%I",
        "%s",
        "q%",
        "q\\",
        "E'q'",
        "q;",
        "q--\u{2028}",
        "q/*",
        "q@r",
        "q:r",
        "q,r",
        "q(1)",
        "😀",
        "qé",
        "ä",
        "ı",
        "ſ",
        "ａ",
        "q\u{301}",
        "q\u{200b}",
        "q\u{a0}",
        "q\u{ad}",
        "orders_dlq",
        "orders_archive",
        "orders_attempts",
        "a_dlq_dlq",
        "0_attempts",
        &forty_eight,
        &accented,
        &wide,
    ];

    for name in names {
        for verb in ["create_queue($1)", "drop_queue($1)", "send($1, '{}')"] {
            let answer = s.client.query(&format!("SELECT vtq.{verb}"), &[&name]).await;
            let error = answer.expect_err(name);
            let answer = error.as_db_error().expect("an answer of the database");
            assert_eq!(answer.code().code(), "22023", "{verb} {name:?}: {}", answer.message());
            assert!(answer.message().contains("1 to 47 bytes, lower-case letters"), "{}", answer.message());
        }
    }
    assert_eq!(s.count("canary").await + s.count("vtq.canary").await, 0);
    assert_eq!(s.count("vtq._queue").await, 0);
}

#[tokio::test]
async fn no_function_takes_a_bad_or_missing_name() {
    let s = Session::with_queue("{}").await;
    // Each with the arguments it cannot do without; the rest are null.
    let calls = calls_of_all_verbs(&s).await;
    assert!(calls.len() > 25, "{calls:?}");

    for call in &calls {
        for name in ["NULL", "'Q'", "'q;'", "'q_dlq'"] {
            let refusal = s.refusal(&call.replace("'q'", name)).await;
            assert!(refusal.starts_with("22023 queue name "), "{call} for {name}: {refusal}");
        }
    }
}

#[tokio::test]
async fn every_verb_says_that_a_queue_does_not_exist() {
    let s = Session::new().await;

    for call in calls_of_all_verbs(&s).await {
        if call.contains("create_queue") || call.contains("drop_queue") {
            continue;
        }
        assert_eq!(s.refusal(&call).await, r#"VT001 queue "q" does not exist"#, "{call}");
    }
}

/// A call of each public function that takes a queue, for queue `q`.
async fn calls_of_all_verbs(s: &Session) -> Vec<String> {
    let sql = r"
        SELECT format('SELECT vtq.%I(%s)', p.proname, string_agg(
            CASE
                WHEN a.place = 1 THEN '''q'''
                WHEN a.name = 'message' THEN '''1'''
                WHEN a.name = 'messages' THEN '''{1}'''
                WHEN a.name IN ('msg_ids', 'read_cts') THEN '''{1}'''
                WHEN a.name = 'options' THEN '''{}'''
                WHEN a.name IN ('msg_id', 'read_ct', 'qty') THEN '1'
                WHEN a.name = 'reason' THEN '''undecodable'''
                WHEN a.name = 'delay' THEN '''0 s'''
                WHEN a.name = 'until' THEN '''infinity'''
                WHEN a.name = 'filter' THEN '''{}'''
                ELSE 'NULL'
            END || '::' || format_type(a.type, NULL), ', ' ORDER BY a.place))
        FROM pg_proc AS p
        CROSS JOIN LATERAL unnest(p.proargtypes::oid[], p.proargnames[1:p.pronargs])
            WITH ORDINALITY AS a (type, name, place)
        WHERE p.pronamespace = 'vtq'::regnamespace
            AND p.proname !~ '^_'
            AND p.proargnames[1] = 'queue'
        GROUP BY p.oid, p.proname
        ORDER BY p.proname";
    s.values(sql).await
}

#[tokio::test]
async fn hyphens_reserved_words_and_the_catalogues_own_names_make_queues() {
    let s = Session::new().await;
    let names = [
        "image-worker",
        "a-",
        "0",
        "9-9",
        "select",
        "table",
        "user",
        "null",
        "all",
        "pg_x",
        "pg_class",
        "vtq",
        "queue",
        "worker",
        "sleeper",
        "migration",
        "schedule",
        "dlq",
        "archive",
        "orders-dlq",
    ];

    for name in names {
        assert!(s.value::<bool>(&format!("SELECT vtq.create_queue('{name}')")).await, "{name}");
    }
    for name in names {
        s.run(&whole_life(name)).await;
    }
    for name in names {
        assert!(s.value::<bool>(&format!("SELECT vtq.drop_queue('{name}')")).await, "{name}");
    }
    assert_eq!(s.count("vtq._queue").await, 0);
}

#[tokio::test]
async fn a_queue_called_like_an_object_of_another_has_its_own_messages() {
    let s = Session::new().await;
    let names = [
        "x",
        "x_line",
        "x_pkey",
        "x_seq",
        "x_dlq_age",
        "x_attempts_pkey",
        "x_archive_pkey",
        "x-line",
        "x_",
        "x_20260101",
    ];
    // One order and the other: whoever comes second meets the names of the first.
    for reversed in [false, true] {
        let mut order = names;
        if reversed {
            order.reverse();
        }
        for name in order {
            s.run(&format!("SELECT vtq.create_queue('{name}')")).await;
            s.run(&format!("SELECT vtq.send('{name}', '\"{name}\"')")).await;
        }

        for name in order {
            let seen = s.rows(&format!("SELECT message FROM vtq.peek('{name}', 9)")).await;
            assert_eq!(seen, json!([{"message": name}]));
        }
        s.run("SELECT vtq.drop_queue('x')").await;
        for name in order.iter().filter(|name| **name != "x") {
            s.run(&format!("SELECT vtq.cancel('{name}', 1)")).await;
            s.run(&whole_life(name)).await;
            s.run(&format!("SELECT vtq.drop_queue('{name}')")).await;
        }
    }
}

#[tokio::test]
async fn a_name_with_capitals_is_no_other_spelling_of_a_queue() {
    let s = Session::new().await;
    s.run("SELECT vtq.create_queue('myqueue')").await;

    for verb in ["create_queue('MyQueue')", "send('MYQUEUE', '{}')", "drop_queue('MyQueue')"] {
        assert_eq!(s.code(&format!("SELECT vtq.{verb}")).await, "22023");
    }

    assert_eq!(s.values::<String>("SELECT queue FROM vtq._queue").await, ["myqueue"]);
    assert_eq!(s.count("vtq.myqueue").await, 0);
}

#[tokio::test]
async fn the_longest_name_has_a_channel_that_is_heard() {
    let s = Session::new().await;
    let name = "q".repeat(47);
    s.run(&format!("SELECT vtq.create_queue('{name}')")).await;
    let (listener, mut heard) = s.overheard().await;
    listener.run(&format!(r#"LISTEN "vtq_{name}""#)).await;
    s.run(&format!("SELECT vtq._doze('{{{name}}}', 'w', '1 min')")).await;

    s.run(&format!("SELECT vtq.send('{name}', '{{}}')")).await;

    let Some(AsyncMessage::Notification(notification)) = heard.recv().await else {
        panic!("no notification")
    };
    assert_eq!(notification.channel(), format!("vtq_{name}"));
    assert_eq!(notification.payload(), "");
}
