//! Moving messages in time.

use tokio_postgres::Client;

/// Makes message `msg_id` of `queue` visible now, as if its timeout, delay or backoff had passed.
///
/// A lease that is running out stays one: `vt` still differs from `ready_at`, so the next delivery is seen to be a
/// takeover. A message that nobody holds keeps the two equal.
///
/// # Panics
/// If there is no such message.
pub async fn make_visible(client: &Client, queue: &str, msg_id: i64) {
    // Safe to paste: no queue's name has a quote in it.
    let sql = format!(
        r#"
        UPDATE vtq."{queue}" AS m
        SET vt = CASE
                WHEN m.vt = m.ready_at THEN least(m.ready_at, past.instant)
                WHEN m.ready_at = past.instant THEN past.instant - interval '1 microsecond'
                ELSE past.instant
            END,
            ready_at = CASE WHEN m.vt = m.ready_at THEN least(m.ready_at, past.instant) ELSE m.ready_at END
        FROM (SELECT clock_timestamp() - interval '1 microsecond' AS instant OFFSET 0) AS past
        WHERE m.msg_id = $1
        "#
    );
    let changed = client.execute(&sql, &[&msg_id]).await.expect("make_visible");
    assert_eq!(changed, 1, "no message {msg_id} in queue `{queue}`");
}
