//! What every command does alike: help, mistakes, secrets, pipes, signals.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vtq_tests::wait_until;

use crate::support::{Cli, bare, run};

#[test]
fn help_and_version_are_results() {
    let help = run(bare(&["--help"])).done();
    for words in ["Set up:", "dlq", "Exit codes:", "PGPASSWORD", "--json"] {
        assert!(help.contains(words), "{words} is not in\n{help}");
    }
    assert_eq!(run(bare(&["--version"])).done(), format!("vtq {}", env!("CARGO_PKG_VERSION")));
    assert!(run(bare(&["help", "send"])).done().contains("Examples:"));
    assert!(run(bare(&["send", "-h"])).done().contains("--from-line"));
    assert!(run(bare(&["completions", "zsh"])).done().starts_with("#compdef vtq"));
}

#[test]
fn mistakes_are_one_line_and_exit_with_2() {
    for (args, sentence) in [
        (&["queus"][..], "tip: some similar subcommands exist: 'queue', 'queues'; see `vtq --help`"),
        (&["queue", "mak"], "see `vtq queue --help`"),
        (&["read"], "the following required arguments were not provided: <QUEUE>; see `vtq read --help`"),
        (&["read", "q", "--limt", "3"], "unexpected argument '--limt' found"),
        (&["read", "q", "--qty", "many"], "invalid value 'many' for '--qty <N>'"),
        (&["queues", "--database-url", "mysql://h/d"], "a connection URL begins with postgres://"),
    ] {
        let refusal = run(bare(args)).failed();
        assert!(refusal.contains(sentence), "{refusal}");
    }
    let nothing = run(bare(&[]));
    nothing.expect(2);
    assert!(nothing.stderr().contains("Send and work:"));
}

#[test]
fn a_password_is_never_printed() {
    let urls = [
        "postgres://u:P4SSW0RD@127.0.0.1:1/d",
        "postgres://u:P4SS%57%30RD@127.0.0.1:1/d",
        "postgres://u:P4SSW0RD@no.such.host.invalid/d",
        "postgres://u:P4SSW0RD@h:port/d",
        "postgres://u:P4SS@W0RD@h/d",
        "postgres://u:P4SS/W0RD@h/d",
        "postgres://u:P4SSW0RD%zz@h/d",
        "mysql://u:P4SSW0RD@h/d",
        "host=127.0.0.1 port=1 user=u password=P4SSW0RD",
        "host=127.0.0.1 user=u password='P4SSW0RD",
        "P4SSW0RD",
    ];
    for url in urls {
        let mut variable = bare(&["queues"]);
        variable.env("DATABASE_URL", url);
        let mut help = bare(&["queues", "--help"]);
        help.env("DATABASE_URL", url);
        let mut traced = bare(&["-vvv", "queues"]);
        traced.env("DATABASE_URL", url).env("RUST_LOG", "trace");
        let option = bare(&["queues", "--database-url", url]);
        for command in [variable, help, traced, option] {
            let ran = run(command);
            let printed = ran.stdout() + &ran.stderr();
            assert!(!printed.contains("P4SS") && !printed.contains("W0RD"), "{url}: {printed}");
        }
    }
    for args in [&["postgres://u:P4SSW0RD@h/d"][..], &["queues", "--databse-url=postgres://u:P4SSW0RD@h/d"]] {
        assert!(!run(bare(args)).failed().contains("P4SS"));
    }
    let mut variable = bare(&["queues", "--database-url", "postgres://u@127.0.0.1:1/d"]);
    variable.env("PGPASSWORD", "P4SSW0RD");
    assert!(!run(variable).failed().contains("P4SS"));
}

#[tokio::test]
async fn a_wrong_password_is_an_error_without_the_password() {
    let cli = Cli::with_queues(&[]).await;
    cli.sql("CREATE ROLE stranger LOGIN PASSWORD 'right'").await;
    let (scheme, rest) = cli.db.url().split_once("://").unwrap();
    let host = rest.rsplit_once('@').unwrap().1;

    let refusal =
        run(bare(&["queues", "--database-url", &format!("{scheme}://stranger:P4SSW0RD@{host}")])).failed();

    cli.sql("DROP ROLE stranger").await;
    assert!(refusal.contains("password authentication failed") && !refusal.contains("P4SS"), "{refusal}");
}

#[tokio::test]
async fn messages_are_not_logged() {
    let cli = Cli::with_queues(&["orders"]).await;
    let mut send = cli.command(&["send", "orders", r#"{"token": "S3CRET"}"#, "-H", "auth=S3CRET", "-vvv"]);
    send.env("RUST_LOG", "trace");
    let mut fail = cli.command(&["fail", "orders", "1:1", "--permanent", "--error", "S3CRET", "-vvv"]);
    fail.env("RUST_LOG", "trace");

    let sent = run(send);
    cli.run(&["read", "orders"]).done();
    let failed = run(fail);

    sent.expect(0);
    failed.expect(0);
    assert!(!sent.stderr().contains("S3CRET") && !failed.stderr().contains("S3CRET"));
}

#[tokio::test]
async fn the_environment_of_libpq_names_the_database() {
    let cli = Cli::with_queues(&["orders"]).await;
    let rest = cli.db.url().split_once("://").unwrap().1;
    let (credentials, place) = rest.rsplit_once('@').unwrap();
    let (user, password) = credentials.split_once(':').unwrap();
    let (host, database) = place.split_once('/').unwrap();
    let (host, port) = host.split_once(':').unwrap();
    let variables = [("PGHOST", host), ("PGPORT", port), ("PGUSER", user), ("PGPASSWORD", password)];

    let mut environment = bare(&["queue", "list"]);
    environment.envs(variables).env("PGDATABASE", database);
    assert!(run(environment).done().contains("orders"));

    // What the URL says goes before the environment, and the rest is taken from there.
    let mut both = bare(&["queue", "list", "--database-url", &format!("postgres:///{database}")]);
    both.envs(variables).env("PGDATABASE", "no_such_database");
    assert!(run(both).done().contains("orders"));
}

#[tokio::test]
async fn a_reader_who_has_had_enough_is_no_error() {
    let cli = Cli::with_queues(&["orders"]).await;
    let lines: String = (0..3000).map(|n| format!("\"{n} {}\"\n", "x".repeat(100))).collect();
    cli.run_on(&["send", "orders"], lines.as_bytes()).done();

    let mut child = cli.command(&["peek", "orders", "-n", "3000"]).spawn().unwrap();
    let mut first = [0; 8];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut first).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();

    assert_eq!(&first, b"orders/1");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[tokio::test]
async fn quiet_prints_results_and_no_remarks() {
    let cli = Cli::with_queues(&[]).await;

    assert_eq!(cli.run(&["--quiet", "queue", "create", "orders"]).done(), "");
    assert_eq!(cli.run(&["-q", "send", "orders", "1"]).done(), "1");
    assert_eq!(cli.run(&["-q", "cancel", "orders/9"]).nothing(), "");
    assert!(cli.run(&["-q", "queues"]).done().contains("orders"));
}

#[tokio::test]
async fn colours_are_for_terminals_and_on_request() {
    let cli = Cli::with_queues(&["orders"]).await;
    cli.bury("orders", 1).await;

    assert!(!cli.run(&["queues"]).done().contains('\u{1b}'));
    assert!(cli.run(&["queues", "--color", "always"]).done().contains('\u{1b}'));
    assert!(!cli.run(&["queues", "--color", "never"]).done().contains('\u{1b}'));
}

#[tokio::test]
async fn an_interrupted_stream_says_how_far_it_came() {
    let cli = Cli::with_queues(&["orders"]).await;
    let mut command = cli.command(&["send", "orders"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"1\n2\n").unwrap();
    wait_until(Duration::from_secs(20), "two messages", async || {
        cli.sql("SELECT count(*) FROM vtq.orders").await == "2"
    })
    .await;

    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();

    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("interrupted: 2 messages were sent"), "{stderr}");
    drop(stdin);
}
