//! A cluster comes up, goes through what tests and demos do to it, and leaves nothing behind.
#![allow(clippy::unwrap_used)]

use std::env;
use std::error::Error as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use vtq_dev::{Cluster, StopMode};

/// Waits for `condition`; the generous limit is for a busy machine.
fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited a minute for: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Neither running nor a zombie that nobody has waited for.
fn is_running(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    kill(Pid::from_raw(pid), None).is_ok() && !state.contains(") Z ")
}

/// A folder for clusters that the server's user can enter.
fn base() -> TempDir {
    let base = tempfile::Builder::new().prefix("vd").tempdir_in("/tmp").unwrap();
    fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
    base
}

/// The clusters' folders in it.
fn folders(base: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(base).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.is_dir()).collect()
}

fn server_pid(folder: &Path) -> Option<i32> {
    fs::read_to_string(folder.join("data/postmaster.pid")).ok()?.lines().next()?.parse().ok()
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn show(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

// The calls on a cluster block; connections must go on being served meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cluster_lives_through_restarts_and_vanishes_when_dropped() {
    let mut cluster = Cluster::builder().setting("work_mem", "5MB").start().unwrap();
    let (url, port) = (cluster.url(), cluster.port());

    let client = connect(&url).await.unwrap();
    let version: i32 = show(&client, "SHOW server_version_num").await.parse().unwrap();
    assert_eq!(version.unsigned_abs() / 10_000, cluster.version());
    assert_eq!(show(&client, "SHOW fsync").await, "off");
    assert_eq!(show(&client, "SHOW synchronous_commit").await, "on");
    assert_eq!(show(&client, "SHOW timezone").await, "UTC");
    assert_eq!(show(&client, "SHOW work_mem").await, "5MB");
    client.batch_execute("CREATE TABLE t (word text); INSERT INTO t VALUES ('kept')").await.unwrap();

    for mode in [StopMode::Fast, StopMode::Immediate] {
        let before = cluster.pid();
        cluster.restart(mode).unwrap();
        assert_ne!(cluster.pid(), before);
    }
    cluster.kill().unwrap();
    assert_eq!(cluster.pid(), None);
    cluster.start_again().unwrap();
    assert_eq!(cluster.port(), port);
    assert!(cluster.log_tail(50).contains("database system is ready"), "{}", cluster.log_tail(50));

    let over_socket = connect(&cluster.socket_url_for("postgres")).await.unwrap();
    assert_eq!(show(&over_socket, "SELECT word FROM t").await, "kept");
    drop(over_socket);

    cluster.stop(StopMode::Smart).unwrap();
    assert!(connect(&url).await.is_err());
    assert_eq!(cluster.stop(StopMode::Fast).unwrap_err().to_string(), "the server is stopped");

    cluster.start_again().unwrap();
    let (folder, pid) = (cluster.socket_dir().to_owned(), cluster.pid().unwrap());
    drop(cluster);
    assert!(!folder.exists());
    assert!(!is_running(pid.cast_signed()));
}

#[tokio::test]
async fn tcp_needs_the_password() {
    let cluster = Cluster::builder().start().unwrap();
    let url = format!("postgresql://postgres:wrong@127.0.0.1:{}/postgres", cluster.port());

    let refused = connect(&url).await.unwrap_err();

    assert_eq!(refused.code().map(|state| state.code()), Some("28P01"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_standby_follows_and_can_be_promoted() {
    let mut primary = Cluster::builder().start().unwrap();
    let mut standby = primary.standby().unwrap();
    let client = connect(&primary.url()).await.unwrap();
    let reader = connect(&standby.url()).await.unwrap();
    assert_eq!(show(&reader, "SELECT pg_is_in_recovery()::text").await, "true");

    client.batch_execute("CREATE TABLE followed ()").await.unwrap();
    let started = Instant::now();
    while show(&reader, "SELECT (to_regclass('followed') IS NOT NULL)::text").await != "true" {
        assert!(started.elapsed() < Duration::from_secs(30), "{}", standby.log_tail(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    primary.kill().unwrap();
    standby.promote().unwrap();

    reader.batch_execute("CREATE TABLE written ()").await.unwrap();
    assert_eq!(standby.promote().unwrap_err().to_string(), "this cluster is not a standby");
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let base = base();

    let error = Cluster::builder().base_dir(base.path()).setting("no_such_setting", "1").start().unwrap_err();

    assert!(error.to_string().starts_with("postgres ended before it was ready: exit status"), "{error}");
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("no_such_setting"), "{cause}");
    assert!(folders(base.path()).is_empty());
}

/// Not a test of its own: what [`owner`] runs in a process of its own.
#[test]
fn act_as_owner() {
    let Some(base) = env::var_os("VTQ_DEV_TEST_BASE").map(PathBuf::from) else { return };
    let cluster = Cluster::builder().base_dir(&base).start().unwrap();
    let say = |name: &str, text: &str| {
        fs::write(base.join("saying"), text).unwrap();
        fs::rename(base.join("saying"), base.join(name)).unwrap();
    };
    match env::var("VTQ_DEV_TEST_KEEP") {
        Ok(_) => {
            let url = cluster.url();
            let kept = cluster.keep().unwrap();
            say("kept-line", &format!("{url}\n{}", kept.stop_line()));
        }
        Err(_) => {
            say("started", "");
            sleep(Duration::from_secs(120));
        }
    }
}

/// Another process that owns a cluster under `base`, leading a process group as a job at a terminal does.
fn owner(base: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "act_as_owner"]).env("VTQ_DEV_TEST_BASE", base);
    command.stdout(Stdio::null()).process_group(0);
    command
}

fn end(mut owner: Child, signal: Signal) {
    let group = Pid::from_raw(owner.id().cast_signed());
    killpg(group, signal).unwrap();
    owner.wait().unwrap();
}

#[test]
fn an_owner_that_is_killed_leaves_nothing_behind() {
    // SIGINT to the group is what Ctrl-C sends.
    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let base = base();
        let child = owner(base.path()).spawn().unwrap();
        wait_until("the cluster to start", || base.path().join("started").exists());
        let pid = server_pid(&folders(base.path())[0]).unwrap();
        assert!(is_running(pid));

        end(child, signal);

        wait_until("the server to stop", || !is_running(pid));
        wait_until("the folder to go", || folders(base.path()).is_empty());
    }
}

#[test]
fn an_owner_that_is_killed_during_initdb_leaves_nothing_behind() {
    let base = base();
    let child = owner(base.path()).spawn().unwrap();
    wait_until("initdb to run", || {
        folders(base.path()).first().is_some_and(|folder| folder.join("data/base/1").exists())
    });

    end(child, Signal::SIGKILL);

    wait_until("the folder to go", || folders(base.path()).is_empty());
    // Nothing that still runs makes it anew.
    sleep(Duration::from_millis(500));
    assert!(folders(base.path()).is_empty());
}

#[test]
fn what_lost_its_watchdog_too_is_swept_by_the_next_run() {
    let base = base();
    let child = owner(base.path()).spawn().unwrap();
    wait_until("the cluster to start", || base.path().join("started").exists());
    let folder = folders(base.path()).remove(0);
    let pid = server_pid(&folder).unwrap();
    let watchdog = nix::unistd::getpgid(Some(Pid::from_raw(pid))).unwrap();
    kill(watchdog, Signal::SIGKILL).unwrap();
    end(child, Signal::SIGKILL);
    assert!(is_running(pid) && folder.exists());

    let next = Cluster::builder().base_dir(base.path()).start().unwrap();

    assert!(!is_running(pid));
    assert_eq!(folders(base.path()), [next.socket_dir().to_owned()]);
}

#[tokio::test]
async fn a_kept_cluster_outlives_its_owner_until_its_stop_line_runs() {
    let base = base();
    let status = owner(base.path()).env("VTQ_DEV_TEST_KEEP", "1").status().unwrap();
    assert!(status.success());
    let said = fs::read_to_string(base.path().join("kept-line")).unwrap();
    let (url, stop_line) = said.split_once('\n').unwrap();

    // Another run in the same place does not sweep it.
    drop(Cluster::builder().base_dir(base.path()).start().unwrap());
    connect(url).await.unwrap();
    let status = Command::new("sh").args(["-c", stop_line]).status().unwrap();

    assert!(status.success());
    assert!(connect(url).await.is_err());
    assert!(folders(base.path()).is_empty());
}
