//! Secrets: what is in a message, in its headers and in a password shows in no log, no error and no `Debug`.
//!
//! A binary of its own, since it listens to everything that the process logs, at the finest level: what vtq traces, and
//! what its driver and the libraries below log. Each test also shows what a user might put into a log: the `Debug` of
//! whatever the verbs take and answer, and each error with its causes.

#![allow(clippy::unwrap_used)]

mod errors;
mod verbs;
mod worker;

use std::error::Error as StdError;
use std::fmt::{Debug, Write as _};
use std::io;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value, json};
use tokio_postgres::Client;
use tracing_subscriber::filter::LevelFilter;
use vtq::{ConnectOptions, Outgoing, Queue, QueueOptions, SendOptions, Vtq};
use vtq_tests::TestDb;

/// In every body, header and password of these tests. Not in names and keys: those are shown.
const MARKER: &str = "S3CRET";

/// All that was logged, by all tests of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// The one of the process, which begins with the first call.
    fn of_the_process() -> Self {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Self::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_max_level(LevelFilter::TRACE)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .init();
            log
        })
        .clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A queue `q`, and all that a user of it might log.
struct Bench {
    vtq: Vtq,
    queue: Queue,
    /// Looks at and breaks the tables. What it runs is logged by the driver: it must hold no marker.
    client: Client,
    shown: Arc<Mutex<String>>,
    log: Log,
    db: TestDb,
}

impl Bench {
    async fn new(options: QueueOptions) -> Self {
        let log = Log::of_the_process();
        let db = TestDb::new().await;
        let shown = Arc::default();
        let connect = ConnectOptions::from_url(db.url()).unwrap();
        show(&shown, "options", &connect);
        let wrong = connect.clone().param("password", MARKER).unwrap();
        show(&shown, "wrong options", &wrong);
        if let Err(refused) = wrong.connect().await {
            show_error(&shown, &refused);
        }
        let vtq = connect.connect().await.unwrap();
        show(&shown, "vtq", &vtq);
        let queue = vtq.queue("q").unwrap();
        queue.create(&options).await.unwrap();
        Self { vtq, queue, client: db.client().await, shown, log, db }
    }

    fn show(&self, what: &str, value: &impl Debug) {
        show(&self.shown, what, value);
    }

    fn show_error(&self, error: &vtq::Error) {
        show_error(&self.shown, error);
    }

    /// Fails where a marker shows; and where the log does not hold what it must, which would prove nothing.
    fn assert_discreet(&self) {
        let log = self.log.text();
        assert!(log.contains("tokio_postgres"), "the driver's log was not heard");
        // A server that is given may know its user without a password.
        let secrets: Vec<&str> = password(self.db.url()).into_iter().chain([MARKER]).collect();
        for text in [log, self.shown.lock().unwrap().clone()] {
            let is_told = |line: &&str| secrets.iter().any(|secret| line.contains(secret));
            let told: Vec<&str> = text.lines().filter(is_told).collect();
            assert!(told.is_empty(), "a secret shows:\n{}", told.join("\n"));
        }
    }
}

/// The password in a URL.
fn password(url: &str) -> Option<&str> {
    let (user, _) = url.split_once("://")?.1.split_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

fn show(shown: &Mutex<String>, what: &str, value: &impl Debug) {
    writeln!(shown.lock().unwrap(), "{what}: {value:?}").unwrap();
}

fn show_error(shown: &Mutex<String>, error: &vtq::Error) {
    show(shown, "error", error);
    let mut next: Option<&dyn StdError> = Some(error);
    while let Some(cause) = next {
        writeln!(shown.lock().unwrap(), "  {cause} ({cause:?})").unwrap();
        next = cause.source();
    }
}

fn body() -> Value {
    json!({"card": MARKER, "id": 7, "list": [MARKER]})
}

fn headers() -> Map<String, Value> {
    Map::from_iter([("token".to_owned(), Value::from(MARKER))])
}

fn options() -> SendOptions {
    SendOptions::new().headers(headers())
}

fn outgoing() -> Outgoing {
    Outgoing::new(&body()).unwrap().headers(&headers()).unwrap()
}
