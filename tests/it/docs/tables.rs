//! The tables of a page that are generated from the database.

use super::clock;
use super::psql::Session;

/// The public functions in the order of a message's life. One that is in none of these groups fails the test.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Queues", &["create_queue", "set_queue", "queue_options", "drop_queue", "pause", "resume"]),
    ("Sending", &["send", "send_report", "send_batch", "send_batch_report"]),
    ("Reading", &["read", "peek"]),
    (
        "Settling: each takes the lease, `msg_id` and `read_ct`",
        &["ack", "fail", "defer", "release", "extend", "dead_letter"],
    ),
    (
        "Single messages and dead letters",
        &[
            "cancel",
            "run_now",
            "attempts",
            "dlq_list",
            "dlq_show",
            "redrive",
            "redrive_all",
            "redrive_taken",
            "dlq_purge",
        ],
    ),
    (
        "Schedules",
        &[
            "schedule_add",
            "schedule_list",
            "schedule_pause",
            "schedule_resume",
            "schedule_run",
            "schedule_remove",
        ],
    ),
    (
        "Watching and upkeep",
        &[
            "metrics",
            "metrics_all",
            "explain",
            "workers",
            "sweep",
            "maintain",
            "lint",
            "time_to_dlq",
            "backoff",
            "simulate_backoff",
        ],
    ),
];

/// Backoffs with a name for each.
const POLICIES: [(&str, &str); 4] = [
    ("default", r#"{"kind": "exponential", "base": 5, "max": 300, "jitter": 0.15}"#),
    ("linear", r#"{"kind": "linear", "base": 5, "max": 30, "jitter": 0.15}"#),
    ("fixed", r#"{"kind": "fixed", "base": 10, "jitter": 0.15}"#),
    ("list", r#"{"kind": "list", "delays": [1, 10, 60, 600], "jitter": 0.15}"#),
];

pub(super) async fn generated(name: &str, session: &Session) -> String {
    match name {
        "functions" => functions(session).await.trim_end().to_owned(),
        "state" => state(session).await,
        "backoff" => backoff(session).await,
        "herd" => herd(session).await.trim_end().to_owned(),
        "jitter" => jitter(session).await.trim_end().to_owned(),
        "schedule" => schedule(session).await,
        "clock changes" => clock::changes(session).await,
        other => panic!("no table is called `{other}`"),
    }
}

/// Every public function of the catalogue.
async fn functions(session: &Session) -> String {
    // Arguments that only come out, and the types' long names, are for the server's own use.
    let sql = "
        SELECT p.proname::text,
            regexp_replace(pg_get_function_arguments(p.oid), ',? ?OUT [^,]+', '', 'g'),
            CASE
                WHEN 'o' = ANY (p.proargmodes) THEN (
                    SELECT '(' || string_agg(p.proargnames[i] || ' ' || format_type(p.proallargtypes[i], NULL), ', ' ORDER BY i) || ')'
                    FROM generate_subscripts(p.proargmodes, 1) AS i
                    WHERE p.proargmodes[i] = 'o'
                )
                ELSE pg_get_function_result(p.oid)
            END,
            obj_description(p.oid, 'pg_proc')
        FROM pg_proc AS p
        WHERE p.pronamespace = 'vtq'::regnamespace AND left(p.proname, 1) <> '_'
        ORDER BY p.proname";
    let rows = session.client.query(sql, &[]).await.unwrap();
    let mut left: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), line(row))).collect();
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!(
            "### {title}\n\n| function and arguments | answer | what it does |\n|---|---|---|\n"
        ));
        for name in names {
            let place = left.iter().position(|(found, _)| found == name);
            text.push_str(&left.remove(place.unwrap_or_else(|| panic!("no function vtq.{name}"))).1);
        }
        text.push('\n');
    }
    assert!(left.is_empty(), "functions in no group of tests/it/docs/tables.rs: {left:#?}");
    text
}

fn line(row: &tokio_postgres::Row) -> String {
    let [name, arguments, answer, comment] =
        [0, 1, 2, 3].map(|i| row.get::<_, Option<String>>(i).unwrap_or_default());
    assert!(!comment.is_empty(), "vtq.{name} has no COMMENT");
    let arguments = short(&arguments).replace(" DEFAULT ", " = ");
    let answer = short(&answer);
    let answer =
        answer.strip_prefix("TABLE").map_or_else(|| answer.clone(), |columns| format!("rows of {columns}"));
    let answer = answer.replace("SETOF bigint", "rows of msg_id bigint");
    format!("| `vtq.{name}({arguments})` | `{answer}` | {} |\n", comment.replace('|', "\\|"))
}

/// Types by the names that people write, defaults without their casts.
fn short(text: &str) -> String {
    let mut text = text.replace("timestamp with time zone", "timestamptz");
    for cast in [
        "::text[]",
        "::text",
        "::jsonb[]",
        "::jsonb",
        "::interval",
        "::timestamptz[]",
        "::timestamptz",
        "::bigint[]",
        "::bigint",
        "::integer",
        "::double precision",
        "::boolean[]",
    ] {
        text = text.replace(cast, "");
    }
    text
}

/// The arguments of `vtq.schedule_add` that have a default.
async fn schedule(session: &Session) -> String {
    let sql = "
        SELECT format('| `%s` | %s | %s |', a.part[1], a.part[2], coalesce('`' || nullif(a.part[3], 'NULL') || '`', ''))
        FROM pg_proc AS p,
            regexp_split_to_table(pg_get_function_arguments(p.oid), ', ') AS argument,
            regexp_match(argument, '^(\\w+) (.*) DEFAULT ''?(.*?)''?(?:::.*)?$') AS a (part)
        WHERE p.oid = 'vtq.schedule_add'::regproc AND a.part IS NOT NULL";
    let rows = session.client.query(sql, &[]).await.unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(lines.len() > 5, "{lines:?}");
    format!("| argument | type | default |\n|---|---|---|\n{}", lines.join("\n"))
}

/// The expression that says what state a message is in.
async fn state(session: &Session) -> String {
    let sql = "SELECT prosrc FROM pg_proc WHERE pronamespace = 'vtq'::regnamespace AND proname = '_state'";
    let body: String = session.client.query_one(sql, &[]).await.unwrap().get(0);
    let lines = body.trim().lines().map(|line| line.strip_prefix("    ").unwrap_or(line));
    format!("```sql\n{}\n```", lines.collect::<Vec<_>>().join("\n"))
}

/// The delays of some policies: the least, the nominal one, and the most.
async fn backoff(session: &Session) -> String {
    let sql = "
        SELECT format('%s .. **%s** .. %s',
            trim_scale(round(extract(epoch FROM vtq.backoff($1::text::jsonb, n, 0))::numeric, 3)),
            trim_scale(round(extract(epoch FROM vtq.backoff($1::text::jsonb || '{\"jitter\": \"none\"}', n))::numeric, 3)),
            trim_scale(round(extract(epoch FROM vtq.backoff($1::text::jsonb, n, 1))::numeric, 3)))
        FROM generate_series(1, 10) AS n
        ORDER BY n";
    let mut text: String =
        POLICIES.iter().map(|(title, policy)| format!("* {title}: `{policy}`\n")).collect();
    text.push_str("\n| after failed attempt |");
    text.extend(POLICIES.map(|(title, _)| format!(" {title} |")));
    text.push_str(&format!("\n|---:|{}\n", "---|".repeat(POLICIES.len())));
    let mut lines: Vec<String> = (1..=10).map(|attempt| format!("| {attempt} |")).collect();
    for (_, policy) in POLICIES {
        let rows = session.client.query(sql, &[&policy]).await.unwrap();
        for (line, row) in lines.iter_mut().zip(rows) {
            line.push_str(&format!(" {} |", row.get::<_, String>(0)));
        }
    }
    text + &lines.join("\n")
}

/// What each jitter makes of one delay.
async fn jitter(session: &Session) -> String {
    let sql = "
        SELECT format('| `%s` | %s | %s |', j,
            trim_scale(round(extract(epoch FROM vtq.backoff(jsonb_build_object('jitter', j), 3, 0))::numeric, 3)),
            trim_scale(round(extract(epoch FROM vtq.backoff(jsonb_build_object('jitter', j), 3, 1))::numeric, 3)))
        FROM jsonb_array_elements('[0.15, \"equal\", \"full\", \"none\"]') AS j";
    let rows = session.client.query(sql, &[]).await.unwrap();
    let lines: String = rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect();
    format!("| jitter | least (s) | most (s) |\n|---|---:|---:|\n{lines}")
}

/// How many of 5,000 messages that fail together come back together, for each jitter. Their places in the jitter's
/// range are spread evenly, so that the answer is the same each time.
async fn herd(session: &Session) -> String {
    let sql = "
        WITH back AS (
            SELECT j.place, j.jitter, n.failure,
                extract(epoch FROM vtq.backoff(jsonb_build_object('jitter', j.jitter), n.failure, (i - 0.5) / 5000)) AS wait
            FROM jsonb_array_elements('[0.15, \"equal\", \"full\", \"none\"]') WITH ORDINALITY AS j (jitter, place)
            CROSS JOIN unnest(ARRAY[1, 4, 8]) AS n (failure)
            CROSS JOIN generate_series(1, 5000) AS i
        ),
        bin AS (
            SELECT b.place, b.jitter, b.failure, s.size, count(*) AS ct
            FROM back AS b CROSS JOIN (VALUES (1.0), (0.1)) AS s (size)
            GROUP BY b.place, b.jitter, b.failure, s.size, floor(b.wait / s.size)
        )
        SELECT format('| `%s` | %s | %s | %s |', b.jitter, b.failure,
            max(b.ct) FILTER (WHERE b.size = 1.0), max(b.ct) FILTER (WHERE b.size = 0.1))
        FROM bin AS b
        GROUP BY b.place, b.jitter, b.failure
        ORDER BY b.place, b.failure";
    let rows = session.client.query(sql, &[]).await.unwrap();
    let lines: String = rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect();
    format!("| jitter | failure | within 1 s | within 0.1 s |\n|---|---:|---:|---:|\n{lines}")
}
