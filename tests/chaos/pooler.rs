//! PgBouncer in transaction mode, with fewer sessions than there are workers.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::unistd::{User, geteuid};
use vtq::{WakeUp, WorkerEvent};
use vtq_tests::wait_until;

use crate::harness::{RECOVERY, Stage, options, short_lease};
use crate::producer::{Load, Producer, send_one};
use crate::verdict::Doubles;
use crate::work::Fate;

/// A running PgBouncer; it ends when dropped, or when this process does.
struct Pooler {
    shell: Child,
    port: u16,
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// The one that `VTQ_PGBOUNCER` names, or the machine's. Debian puts it where not every user's PATH leads.
fn find() -> PathBuf {
    if let Some(file) = std::env::var_os("VTQ_PGBOUNCER") {
        return file.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join("pgbouncer")).find(|file| file.is_file());
    found.expect("no `pgbouncer` found, which this test needs: apt-get install pgbouncer")
}

/// Whether it can keep the prepared statements of its clients, which 1.21 was the first to do.
fn keeps_statements() -> bool {
    let said = Command::new(find()).arg("--version").output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let number = said.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let mut parts = number.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (parts.next(), parts.next()) >= (Some(1), Some(21))
}

impl Pooler {
    async fn start(stage: &Stage) -> Self {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let cluster = &stage.cluster;
        // Its folder goes with the cluster. The socket there needs no password.
        let (folder, server_port) = (cluster.socket_dir(), cluster.port());
        let file = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n\
             postgres = host={} port={server_port} user=postgres dbname=postgres\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\n\
             listen_port = {port}\n\
             unix_socket_dir =\n\
             auth_type = any\n\
             pool_mode = transaction\n\
             default_pool_size = 3\n\
             {}",
            folder.display(),
            if keeps_statements() { "max_prepared_statements = 50\n" } else { "" }
        );
        fs::write(&file, text).unwrap();
        let log = fs::File::create(folder.join("pgbouncer.log")).unwrap();
        let mut command = Command::new("sh");
        // The shell outlives nobody: it waits for the end of its input, which is the end of this process at the latest.
        command
            .args(["-c", r#""$0" "$1" & read -r _; kill -INT $!; wait"#])
            .args([find(), file])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        if geteuid().is_root() {
            // It refuses to run as root, as the server does: whoever runs that one runs this one.
            let user =
                ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).unwrap()).unwrap();
            command.gid(user.gid.as_raw()).uid(user.uid.as_raw());
        }
        let pooler = Self { shell: command.spawn().unwrap(), port };
        let answers = async || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        wait_until(RECOVERY, "PgBouncer to listen", answers).await;
        pooler
    }

    fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// Four workers and the load, all over three sessions.
async fn crowd(name: &'static str, wake_up: impl Fn(&Stage) -> WakeUp) -> (Stage, Pooler, Producer) {
    let mut stage = Stage::new(name, short_lease(5)).await;
    let pooler = Pooler::start(&stage).await;
    for _ in 0..4 {
        let wake_up = wake_up(&stage);
        stage.work_with(options(&pooler.url()), |builder| builder.wake_up(wake_up));
    }
    let load = Load { least: 2000, ..Load::default() };
    let producer = Producer::start(&pooler.url(), load, stage.dice.fork());
    (stage, pooler, producer)
}

/// Neither a worker nor the server has seen a statement that another session knows, or does not know.
fn no_statement_went_astray(stage: &Stage) {
    for worker in &stage.workers {
        let is_trouble = |event: &WorkerEvent| matches!(event, WorkerEvent::QueueTrouble { .. });
        assert_eq!(worker.events.count(is_trouble), 0, "26000 and 42P05 are errors of a queue");
        assert!(worker.events.losses().is_empty(), "{:?}", worker.events.losses());
    }
    let log = stage.cluster.log_tail(2000);
    assert!(!log.contains("prepared statement"), "{log}");
}

fn deaf(event: &WorkerEvent) -> bool {
    matches!(event, WorkerEvent::ListenerDeaf { .. })
}

#[tokio::test(flavor = "multi_thread")]
async fn pooler_carries_the_work_and_a_direct_address_the_wake_up() {
    let direct = |stage: &Stage| {
        let options = vtq::ConnectOptions::from_url(&stage.cluster.url()).unwrap();
        WakeUp::ListenAt(options.application_name("listener").lazy().unwrap())
    };
    let (stage, _pooler, producer) = crowd("PgBouncer, direct LISTEN", direct).await;
    let mut sent = producer.finish().await;
    let client = stage.client().await;
    stage.settled(&client).await;

    // Idle now, and woken by the direct connection: the slow poll is 30 s.
    let events = stage.workers.iter().map(|worker| worker.events.clone()).collect::<Vec<_>>();
    let all_sleep =
        async || events.iter().all(|events| events.count(|event| matches!(event, WorkerEvent::Asleep)) > 0);
    wait_until(RECOVERY, "all to sleep", all_sleep).await;
    let before = stage.runs.len();
    sent.acknowledged.insert(send_one(&client).await, Fate::Done);
    wait_until(Duration::from_secs(10), "a sleeper to be woken", async || stage.runs.len() > before).await;
    stage.settled(&client).await;

    assert!(events.iter().all(|events| events.count(deaf) == 0), "the direct address hears");
    no_statement_went_astray(&stage);
    stage.verify_sent(sent, Doubles::Never).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listener_behind_a_pooler_knows_that_it_is_deaf() {
    let (stage, _pooler, producer) = crowd("PgBouncer, LISTEN through it", |_| WakeUp::Listen).await;
    for worker in &stage.workers {
        let events = worker.events.clone();
        wait_until(RECOVERY, "the listener to be found deaf", async || events.count(deaf) == 1).await;
    }
    let sent = producer.finish().await;
    let client = stage.client().await;
    stage.settled(&client).await;

    // Long enough for a second proof.
    tokio::time::sleep(Duration::from_secs(6)).await;
    for worker in &stage.workers {
        assert_eq!(worker.events.count(deaf), 1, "told once");
    }
    let workers = "SELECT count(*) FROM vtq.workers() WHERE wake_up = 'deaf'";
    let count: i64 = client.query_one(workers, &[]).await.unwrap().get(0);
    assert_eq!(count, stage.workers.len() as i64, "the status shows it");
    no_statement_went_astray(&stage);
    stage.verify_sent(sent, Doubles::Never).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_works_behind_a_pooler() {
    let (stage, _pooler, producer) = crowd("PgBouncer, poll only", |_| WakeUp::Poll).await;
    stage.warm(500).await;

    let client = stage.client().await;
    let listeners =
        "SELECT count(*) FROM pg_stat_activity WHERE query ~ 'LISTEN' AND pid <> pg_backend_pid()";
    let count: i64 = client.query_one(listeners, &[]).await.unwrap().get(0);
    assert_eq!(count, 0, "nobody listens");
    let sent = producer.finish().await;
    stage.settled(&client).await;
    no_statement_went_astray(&stage);
    stage.verify_sent(sent, Doubles::Never).await;
}
