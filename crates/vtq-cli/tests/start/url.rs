//! `--url`: the request, what a response means, and secrets in the address.

use std::time::{Duration, SystemTime};

use crate::server::Server;
use crate::worker::{Worker, World};

/// A server that answers with what the message says: it is the status line, and headers if it has more lines.
fn echo() -> Server {
    Server::start(|request| {
        let text: String = serde_json::from_str(&request.body).unwrap();
        Some((text.replace('\n', "\r\n"), format!("answer to {}", &text[..3])))
    })
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn message_is_posted_with_what_goes_with_it() {
    let world = World::new().await;
    let body = r#"{"n": 12345678901234567890.120, "t": "é"}"#;
    let id = world.send_with(body, Some(r#"{"who": "Zoë 😀"}"#)).await;
    let server = Server::start(|_| Some(("204 No Content".into(), String::new())));

    let ended = world.once(&["--url", &server.url()]).await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(world.fate(id).await, "done");
    let request = server.requests().remove(0);
    assert_eq!(request.line, "POST /hook HTTP/1.1");
    assert_eq!(request.body, body);
    for (name, value) in [
        ("content-type", "application/json"),
        ("vtq-msg-id", id.to_string().as_str()),
        ("vtq-read-ct", "1"),
        ("vtq-attempt", "1"),
        ("vtq-queue", "q"),
        ("vtq-headers", r#"{"who": "Zo\u00eb \ud83d\ude00"}"#),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("vtq/")));
}

#[tokio::test(flavor = "multi_thread")]
async fn status_says_what_becomes_of_a_message() {
    let world = World::new().await;
    let statuses = [200, 202, 400, 404, 422, 408, 425, 429, 500, 503];
    let mut ids = Vec::new();
    for status in statuses {
        ids.push(world.send(&quoted(&format!("{status} Whatever"))).await);
    }

    world.once(&["--url", &echo().url()]).await;

    for (id, status) in ids.into_iter().zip(statuses) {
        match status {
            200..=299 => assert_eq!(world.fate(id).await, "done", "{status}"),
            400 | 404 | 422 => {
                assert_eq!(world.fate(id).await, "dead", "{status}");
                assert_eq!(world.attempt(id).await["outcome"], "permanent", "{status}");
            }
            _ => {
                world.assert_due(id, 1, 6).await;
                let attempt = world.attempt(id).await;
                assert_eq!(attempt["error_class"], format!("HTTP {status}"));
                assert_eq!(attempt["error_code"], format!("http-{status}"));
                assert_eq!(attempt["error_message"], format!("answer to {status}"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_heeded_in_both_forms() {
    let world = World::new().await;
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(2000));
    let seconds = world.send(&quoted("503 Busy\nRetry-After: 1000")).await;
    let dated = world.send(&quoted(&format!("429 Slow Down\nRetry-After: {date}"))).await;
    let garbled = world.send(&quoted("503 Busy\nRetry-After: soon")).await;

    world.once(&["--url", &echo().url()]).await;

    world.assert_due(seconds, 940, 1000).await;
    world.assert_due(dated, 1930, 2000).await;
    world.assert_due(garbled, 1, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_is_not_followed() {
    let world = World::new().await;
    let elsewhere = echo();
    let id = world.send(&quoted(&format!("302 Found\nLocation: {}?S3CRET", elsewhere.url()))).await;

    world.once(&["--url", &echo().url()]).await;

    assert!(elsewhere.requests().is_empty());
    let attempt = world.attempt(id).await;
    let message = attempt["error_message"].as_str().unwrap();
    assert!(message.contains("redirects are not followed") && !message.contains("S3CRET"), "{message}");
    world.assert_due(id, 1, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn beginning_of_a_long_response_is_kept() {
    let world = World::new().await;
    let id = world.send("1").await;
    let body = format!("first words {}", "é".repeat(1_000_000));
    let server = Server::start(move |_| Some(("500 Oops".into(), body.clone())));

    world.once(&["--url", &server.url()]).await;

    let message = world.attempt(id).await["error_message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("first words é") && message.ends_with('é'), "{message}");
    assert_eq!(message.len(), 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_is_not_there_means_a_retry() {
    let world = World::new().await;
    let id = world.send("1").await;
    // Port 1 is nobody's.
    world.once(&["--url", "http://user:S3CRET@127.0.0.1:1/S3CRET?key=S3CRET"]).await;

    let attempt = world.attempt(id).await;
    assert_eq!(attempt["error_class"], "cannot connect");
    assert_eq!(attempt["error_code"], "http-connect");
    assert!(attempt["error_message"].as_str().unwrap().contains("onnection refused"), "{attempt}");
    assert!(!attempt.to_string().contains("S3CRET"), "{attempt}");
    world.assert_due(id, 1, 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_never_answers_runs_into_the_time_limit() {
    let world = World::with_options(r#"{"timeout": 0.3}"#).await;
    let id = world.send("1").await;
    let server = Server::start(|_| None);

    world.once(&["--url", &server.url()]).await;

    assert_eq!(world.attempt(id).await["outcome"], "timed_out");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_is_checked() {
    let world = World::new().await;
    let id = world.send("1").await;
    let (server, certificate) = Server::start_tls(|_| Some(("200 OK".into(), String::new())));
    std::fs::write(world.path("trusted.pem"), certificate).unwrap();
    let url = format!("https://localhost:{}/hook", server.port);
    let once = ["--queues", "q", "--once", "--url", &url];

    Worker::start(&mut world.command(&once)).ended().await;

    assert!(server.requests().is_empty());
    let attempt = world.attempt(id).await;
    assert_eq!(attempt["error_class"], "cannot connect");
    assert!(attempt["error_message"].as_str().unwrap().contains("certificate"), "{attempt}");

    world.client.execute("SELECT vtq.run_now('q', $1)", &[&id]).await.unwrap();
    Worker::start(world.command(&once).env("SSL_CERT_FILE", "trusted.pem")).ended().await;

    assert_eq!(world.fate(id).await, "done");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_needs_no_certificates_on_the_machine() {
    let world = World::new().await;
    let id = world.send("1").await;
    let server = Server::start(|_| Some(("200 OK".into(), String::new())));

    let mut command = world.command(&["--queues", "q", "--once", "--url", &server.url()]);
    Worker::start(command.env("SSL_CERT_FILE", "none").env("SSL_CERT_DIR", "none")).ended().await;

    assert_eq!(world.fate(id).await, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_of_the_environment_is_used() {
    let world = World::new().await;
    let id = world.send("1").await;
    let proxy = Server::start(|_| Some(("200 OK".into(), String::new())));

    let mut command = world.command(&["--queues", "q", "--once", "--url", "http://nowhere.example/hook"]);
    Worker::start(command.env("http_proxy", format!("http://127.0.0.1:{}", proxy.port))).ended().await;

    assert_eq!(world.fate(id).await, "done");
    assert_eq!(proxy.requests()[0].line, "POST http://nowhere.example/hook HTTP/1.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_an_address_reach_the_server_and_nobody_else() {
    let world = World::new().await;
    let id = world.send("1").await;
    let server = Server::start(|_| Some(("500 Oops".into(), String::new())));
    let url = format!("http://user:S3CRET@127.0.0.1:{}/hook?key=S3CRET", server.port);

    let mut command = world.command(&["--queues", "q", "--once", "-vvv"]);
    let ended = Worker::start(command.env("VTQ_URL", url).env("RUST_LOG", "trace")).ended().await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let request = server.requests().remove(0);
    assert_eq!(request.line, "POST /hook?key=S3CRET HTTP/1.1");
    // user:S3CRET
    assert_eq!(request.header("authorization"), Some("Basic dXNlcjpTM0NSRVQ="));
    let attempt = world.attempt(id).await.to_string();
    for text in [&ended.stderr, &ended.stdout, &attempt] {
        assert!(!text.contains("S3CRET") && !text.contains("dXNlcjpTM0NSRVQ="), "{text}");
    }
}
