//! The ticks of the nights in which clocks are changed.

use vtq::Cron;

use super::psql::Session;

const EXPRESSIONS: [&str; 7] =
    ["30 2 * * *", "30 1 * * *", "0 2,3 * * *", "*/20 2 * * *", "0 * * * *", "*/20 * * * *", "0 */2 * * *"];

/// Where clocks are changed, and the hours around that, in UTC.
const NIGHTS: [(&str, &str, &str, &str); 4] = [
    ("Europe/Berlin, March 29: 03:00 follows 01:59", "Europe/Berlin", "2026-03-28 23:59", "2026-03-29 02:00"),
    (
        "Europe/Berlin, October 25: 02:00 follows 02:59",
        "Europe/Berlin",
        "2026-10-24 22:59",
        "2026-10-25 02:00",
    ),
    (
        "America/New_York, March 8: 03:00 follows 01:59",
        "America/New_York",
        "2026-03-08 05:59",
        "2026-03-08 08:00",
    ),
    (
        "America/New_York, November 1: 01:00 follows 01:59",
        "America/New_York",
        "2026-11-01 04:59",
        "2026-11-01 08:00",
    ),
];

/// A table for each night. The ticks are the library's; what the clock shows then, PostgreSQL says.
pub(super) async fn changes(session: &Session) -> String {
    let mut tables = Vec::new();
    for (title, zone, from, to) in NIGHTS {
        let mut table = format!("| {title} | ticks |\n|---|---|\n");
        for expression in EXPRESSIONS {
            let ticks = ticks(session, expression, zone, from, to).await;
            table.push_str(&format!("| `{expression}` | {} |\n", ticks.join(", ")));
        }
        tables.push(table);
    }
    tables.join("\n").trim_end().to_owned()
}

async fn ticks(session: &Session, expression: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let shown = "
        SELECT to_char($1::text::timestamptz AT TIME ZONE $2, 'HH24:MI') || to_char(extract(epoch FROM
            ($1::text::timestamptz AT TIME ZONE $2) - ($1::text::timestamptz AT TIME ZONE 'UTC')) / 3600, 'SG09')";
    let instant = |text: &str| format!("{}:00Z", text.replace(' ', "T")).parse().unwrap();
    let cron = Cron::new(expression, zone).unwrap();
    let (mut at, to) = (instant(from), instant(to));
    let mut found = Vec::new();
    while let Some(next) = cron.next_after(at).filter(|next| *next <= to) {
        at = next;
        found.push(session.client.query_one(shown, &[&next.to_rfc3339(), &zone]).await.unwrap().get(0));
    }
    found
}
