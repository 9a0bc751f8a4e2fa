use std::error::Error as StdError;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// What the driver makes of an ErrorResponse with these fields.
async fn answered(fields: &[(u8, &str)]) -> tokio_postgres::Error {
    let mut body = Vec::new();
    for (field, value) in fields {
        body.push(*field);
        body.extend(value.as_bytes());
        body.push(0);
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap();
    let (client, mut server) = tokio::io::duplex(64 * 1024);
    server.write_all(&[b"E".as_slice(), &length.to_be_bytes(), &body].concat()).await.unwrap();
    let refused = tokio_postgres::Config::new().user("ann").connect_raw(client, tokio_postgres::NoTls).await;
    refused.err().expect("the server refuses")
}

async fn error_of(code: &str, message: &str) -> Error {
    let answer = answered(&[
        (b'S', "ERROR"),
        (b'C', code),
        (b'M', message),
        (b'D', "Failing row contains (S3CRET)."),
        (b'H', "Hint with S3CRET."),
        (b'W', "JSON data, line 1: S3CRET"),
    ])
    .await;
    Error::db("send to `orders`", &answer)
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[tokio::test]
async fn codes_become_kinds() {
    use ErrorKind::*;
    let cases = [
        ("VT001", "x", QueueNotFound, false),
        ("VT002", "x", QueueExists, false),
        ("VT003", "x", MessageNotFound, false),
        ("VT004", "x", TableMissing, false),
        ("VT005", "x", Refused, false),
        ("VT006", "x", ScheduleNotFound, false),
        ("VT007", "x", KeyTaken, false),
        ("22023", "x", InvalidArgument, false),
        ("22P02", "x", InvalidPayload, false),
        ("22P05", "x", InvalidPayload, false),
        ("22003", "x", InvalidPayload, false),
        ("22021", "x", InvalidPayload, false),
        ("54000", "x", InvalidPayload, false),
        ("54001", "stack depth limit exceeded", InvalidPayload, false),
        ("42501", "permission denied for table orders", PermissionDenied, false),
        ("28P01", "x", PermissionDenied, false),
        ("28000", "x", PermissionDenied, false),
        ("3D000", "database \"x\" does not exist", InvalidConfig, false),
        ("3F000", "schema \"vtq\" does not exist", NotMigrated, false),
        ("42883", "function vtq.send(unknown) does not exist", NotMigrated, false),
        ("42P01", "relation \"vtq._queue\" does not exist", NotMigrated, false),
        ("42P01", "relation \"vtq.orders_dlq\" does not exist", TableMissing, false),
        ("42P01", "relation \"public.x\" does not exist", Database, false),
        ("3F000", "schema \"other\" does not exist", Database, false),
        ("57014", "canceling statement due to statement timeout", Timeout, true),
        ("40001", "x", Database, true),
        ("40P01", "deadlock detected", Database, true),
        ("55P03", "x", Database, true),
        ("53100", "could not extend file: No space left on device", Database, true),
        ("53300", "sorry, too many clients already", Unavailable, true),
        ("57P01", "x", Unavailable, true),
        ("57P02", "x", Unavailable, true),
        ("57P03", "the database system is starting up", Unavailable, true),
        ("08006", "x", Unavailable, true),
        ("08P01", "query_wait_timeout", Unavailable, true),
        ("08P01", "SASL authentication failed", PermissionDenied, false),
        ("25006", "cannot execute INSERT in a read-only transaction", Unavailable, true),
        ("XX000", "x", Database, false),
        ("23505", "x", Database, false),
    ];
    for (code, message, kind, is_retryable) in cases {
        let error = error_of(code, message).await;

        assert_eq!((error.kind(), error.is_retryable()), (kind, is_retryable), "{code} {message}");
        assert_eq!(error.code(), Some(code));
    }
}

#[tokio::test]
async fn our_own_sentence_is_the_text() {
    let error = error_of("VT001", "queue \"orders\" does not exist").await;

    assert_eq!(chain(&error), "queue \"orders\" does not exist");
}

#[tokio::test]
async fn foreign_sentence_is_the_cause() {
    let error = error_of("40P01", "deadlock detected").await;

    assert_eq!(chain(&error), "cannot send to `orders`: ERROR: deadlock detected (SQLSTATE 40P01)");
}

#[tokio::test]
async fn missing_schema_says_what_to_run() {
    let error = error_of("3F000", "schema \"vtq\" does not exist").await;

    assert_eq!(error.to_string(), "the database has no vtq schema, or an older one: run `vtq migrate`");
}

#[tokio::test]
async fn row_data_is_never_kept() {
    for code in ["23505", "22P02", "22P05", "22023", "VT005", "XX000", "57P01", "42P01"] {
        let error = error_of(code, "the message").await;

        let everything = format!("{} {error:?} {error:#?}", chain(&error));
        assert!(!everything.contains("S3CRET"), "{code}: {everything}");
    }
}

#[tokio::test]
async fn value_quoted_by_the_primary_message_is_cut() {
    let error = error_of("22P02", "invalid input syntax for type integer: \"S3CRET\"").await;

    let text = chain(&error);
    assert!(!format!("{text}{error:?}").contains("S3CRET"), "{text}");
    assert!(text.ends_with("ERROR: invalid input syntax for type integer (SQLSTATE 22P02)"), "{text}");
    for (code, message) in [
        ("22003", "value \"S3CRET\" is out of range for type integer"),
        ("22007", "invalid input syntax for type date: \"S3CRET\""),
        ("22008", "date/time field value out of range: \"S3\"CRET\""),
    ] {
        let told = format!("{:?}", error_of(code, message).await);
        assert!(!told.contains("CRET"), "{told}");
    }
}

#[tokio::test]
async fn lost_connection_is_retryable_and_closed() {
    let (client, mut server) = tokio::io::duplex(1024);
    let connecting = async { tokio_postgres::Config::new().connect_raw(client, tokio_postgres::NoTls).await };
    let hanging_up = async {
        server.read_u8().await.unwrap();
        drop(server);
    };

    let (refused, ()) = tokio::join!(connecting, hanging_up);

    let error = Error::db("read from `orders`", &refused.err().unwrap());
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.is_retryable() && error.is_closed());
    assert_eq!(chain(&error), "cannot read from `orders`: connection closed");
}

#[tokio::test]
async fn termination_by_the_server_closes_and_read_only_does_not() {
    assert!(error_of("57P01", "x").await.is_closed());
    assert!(!error_of("25006", "x").await.is_closed());
    assert!(!error_of("40001", "x").await.is_closed());
}

#[test]
fn timeout_names_step_and_limit() {
    let error = Error::timeout("wait for one of the pool's 4 connections", Duration::from_secs(30));

    assert_eq!(error.to_string(), "wait for one of the pool's 4 connections: no answer within 30s");
    assert!(error.is_retryable() && !error.is_closed());
}

#[test]
fn batch_position_and_size() {
    let error = Error::payload("message 3 is not JSON").at(2);

    assert_eq!(error.index(), Some(2));
    assert_eq!(size_of::<Error>(), size_of::<usize>());
}
