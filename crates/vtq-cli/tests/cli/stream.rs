//! `vtq send` of files and of standard input.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use vtq_tests::wait_until;

use crate::support::Cli;

const WEBHOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/webhooks.ndjson");

/// A file that lives as long as the test.
struct File(PathBuf);

impl File {
    fn new(cli: &Cli, text: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("vtq-cli-{}.ndjson", cli.db.name()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn real_messages_arrive_as_they_were_sent_from_a_file_and_from_a_stream() {
    let cli = Cli::with_queues(&["hooks"]).await;
    let text = fs::read_to_string(WEBHOOKS).unwrap();
    let number = text.lines().count();

    let file = cli.run(&["send", "hooks", "--file", WEBHOOKS]).done();
    let stream = cli.run_on(&["send", "hooks", "--batch", "3", "--json"], text.as_bytes()).json();

    assert_eq!(file, format!("{number} messages sent to hooks"));
    assert_eq!(stream["sent"], number);
    for (place, line) in text.lines().enumerate() {
        for id in [place + 1, place + 1 + number] {
            // Dollar quotes: the texts are real, quotes and all.
            let same = cli
                .sql(&format!("SELECT message = $vtq${line}$vtq$ FROM vtq.hooks WHERE msg_id = {id}"))
                .await;
            assert_eq!(same, "t", "line {}", place + 1);
        }
    }
}

#[tokio::test]
async fn a_file_with_a_bad_line_is_not_sent_at_all() {
    let cli = Cli::with_queues(&["orders"]).await;
    for (text, fault) in [
        (&b"1\n\n2\n{\"a\":}\n3\n"[..], "line 4 is not JSON: expected value at column 6"),
        (b"1\n\"\\u0000\"\n", "line 2 holds a NUL character (\\u0000), which jsonb cannot store, at $"),
        (b"1\n\"\xff\"\n", "line 2 is not UTF-8: byte 2 is wrong"),
        (b"1\n{\"a\": 1", "line 2 is not JSON: EOF while parsing an object at column 7"),
    ] {
        let file = File::new(&cli, text);

        let refusal = cli.run(&["send", "orders", "--batch", "1", "--file", file.path()]).failed();

        assert_eq!(refusal, format!("nothing of {} was sent: {fault}", file.path()));
    }
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "0");
}

#[tokio::test]
async fn a_line_that_only_the_database_refuses_undoes_the_file() {
    let cli = Cli::with_queues(&["orders"]).await;
    let deep = format!("1\n{}{}\n2\n", "[".repeat(60_000), "]".repeat(60_000));
    let file = File::new(&cli, &deep);

    let refusal = cli.run(&["send", "orders", "--batch", "1", "--file", file.path()]).failed();
    let stream = cli.run_on(&["send", "orders", "--batch", "1"], deep.as_bytes()).failed();

    assert!(refusal.contains("was sent: line 2 "), "{refusal}");
    assert!(stream.starts_with("line 2 ") && stream.ends_with("go on with --from-line 2"), "{stream}");
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "1");
}

#[tokio::test]
async fn files_that_cannot_be_read_are_named() {
    let cli = Cli::with_queues(&["orders"]).await;

    let missing = cli.run(&["send", "orders", "--file", "/no/such/file"]).failed();
    let folder = cli.run(&["send", "orders", "--file", "/"]).failed();

    assert!(missing.starts_with("cannot read /no/such/file: No such file"), "{missing}");
    assert_eq!(folder, "cannot read /: it is a folder");
    let file = File::new(&cli, "");
    assert_eq!(cli.run(&["send", "orders", "--file", file.path()]).done(), "0 messages sent to orders");
}

#[tokio::test]
async fn a_bad_line_in_a_stream_ends_it_and_says_how_to_go_on() {
    let cli = Cli::with_queues(&["orders"]).await;
    let input = b"1\n2\n3\n4\noops\n6\n";

    let refusal = cli.run_on(&["send", "orders", "--batch", "3"], input).failed();

    assert_eq!(
        refusal,
        "line 5 is not JSON: expected value at column 1; 3 messages were sent, and nothing from line 4 on: go on with \
         --from-line 4"
    );
    assert_eq!(
        cli.sql("SELECT string_agg(message::text, ' ' ORDER BY msg_id) FROM vtq.orders").await,
        "1 2 3"
    );

    let mended = b"1\n2\n3\n4\n5\n6\n";
    let rest = cli.run_on(&["send", "orders", "--from-line", "4"], mended).done();

    assert_eq!(rest, "3 messages sent to orders");
    assert_eq!(
        cli.sql("SELECT string_agg(message::text, ' ' ORDER BY msg_id) FROM vtq.orders").await,
        "1 2 3 4 5 6"
    );
}

#[tokio::test]
async fn blank_lines_line_ends_and_marks_of_windows_are_taken() {
    let cli = Cli::with_queues(&["orders"]).await;

    let sent = cli.run_on(&["send", "orders", "-"], b"\xEF\xBB\xBF{\"a\": 1}\r\n\r\n \n2").done();

    assert_eq!(sent, "2 messages sent to orders");
    assert_eq!(cli.run_on(&["send", "orders", "--file", "-"], b"3").done(), "1 message sent to orders");
    assert_eq!(cli.run_on(&["send", "orders"], b"").done(), "0 messages sent to orders");
    assert_eq!(cli.run_on(&["send", "orders", "--quiet"], b"4").done(), "");
}

#[tokio::test]
async fn a_stream_that_pauses_is_sent_as_far_as_it_is() {
    let cli = Cli::with_queues(&["orders"]).await;
    let mut child = cli.command(&["send", "orders"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();

    stdin.write_all(b"1\n2\n").unwrap();

    wait_until(Duration::from_secs(20), "two messages", async || {
        cli.sql("SELECT count(*) FROM vtq.orders").await == "2"
    })
    .await;
    stdin.write_all(b"3").unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(cli.sql("SELECT count(*) FROM vtq.orders").await, "3");
}

#[tokio::test]
async fn headers_and_delays_go_for_every_line() {
    let cli = Cli::with_queues(&["orders"]).await;

    cli.run_on(&["send", "orders", "-H", "k=v", "--delay", "1h", "--expires-in", "2h"], b"1\n2\n").done();

    let fits =
        "SELECT count(*) FROM vtq.orders WHERE headers = '{\"k\": \"v\"}' AND ready_at > now() + '59 min'
                AND expires_at > now() + '119 min'";
    assert_eq!(cli.sql(fits).await, "2");
}

#[tokio::test]
async fn a_stream_to_an_unknown_queue_fails_before_it_is_read() {
    let cli = Cli::with_queues(&[]).await;

    let refusal = cli.run_on(&["send", "nowhere"], b"1\n").failed();

    assert!(refusal.starts_with("queue \"nowhere\" does not exist"), "{refusal}");
}
