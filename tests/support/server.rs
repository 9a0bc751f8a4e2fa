//! The server that all tests of this process share.

use std::env;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc as std_mpsc;
use std::thread;

use tokio::runtime;
use tokio::sync::{Mutex, mpsc};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};
use vtq_dev::Cluster;

use crate::template;

/// Started by the first test that asks; the others wait for it. A failure is kept, so that it is tried only once.
static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();

static COUNTER: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Server {
    url: String,
    template: String,
    /// One clone at a time: a second one would find the template in use.
    admin: Mutex<Client>,
    drops: mpsc::UnboundedSender<String>,
    /// A static is never dropped: the cluster goes when its watchdog sees this process end.
    _cluster: Option<Cluster>,
}

impl Server {
    /// The server, or a failed test that says what is missing.
    pub(crate) fn get() -> &'static Self {
        match SERVER.get_or_init(start) {
            Ok(server) => server,
            Err(why) => panic!("no PostgreSQL to test with: {why}"),
        }
    }

    /// Makes a database, empty or a clone of the template, and returns its name.
    pub(crate) async fn create_database(&self, is_empty: bool) -> String {
        let template = if is_empty { "template0" } else { &self.template };
        let admin = self.admin.lock().await;
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!("vtq_t_{}_{number}", process::id());
            match admin.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await {
                Ok(()) => return name,
                // On a shared server: of a run in another container, where our number is given to another.
                Err(error) if error.code() == Some(&SqlState::DUPLICATE_DATABASE) => continue,
                Err(error) => panic!("create database {name}: {error:?}"),
            }
        }
    }

    /// Has a database dropped soon; does not wait for it.
    pub(crate) fn drop_database(&self, name: String) {
        // Without a receiver the sweep of the next run does it.
        let _ = self.drops.send(name);
    }

    pub(crate) fn url_for(&self, db: &str) -> String {
        with_database(&self.url, db)
    }
}

fn start() -> Result<Server, String> {
    let (cluster, url) = match env::var("VTQ_TEST_DATABASE_URL") {
        Ok(url) if !url.is_empty() => (None, url),
        _ => {
            let cluster = Cluster::builder().start().map_err(|error| format!("{error:?}"))?;
            let url = cluster.url();
            (Some(cluster), url)
        }
    };
    // Each test has a runtime of its own, which ends with it; what the process shares needs one that stays.
    let (ready, started) = std_mpsc::channel();
    thread::Builder::new()
        .name("test-server".into())
        .spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(url, cluster, ready));
        })
        .map_err(|error| error.to_string())?;
    started.recv().unwrap_or_else(|_| Err("the thread that prepares the server panicked".into()))
}

/// Prepares the server, reports it, and then drops databases for as long as the process lives.
async fn serve(url: String, cluster: Option<Cluster>, ready: std_mpsc::Sender<Result<Server, String>>) {
    let prepared = async {
        let admin = connect(&url).await?;
        let template = template::prepare(&admin, &url).await?;
        template::sweep(&admin, &template).await?;
        Ok::<_, template::Failure>((admin, connect(&url).await?, template))
    };
    let (admin, dropper, template) = match prepared.await {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = ready.send(Err(format!("{error:?}")));
            return;
        }
    };
    let (drops, mut dropped) = mpsc::unbounded_channel::<String>();
    let server = Server { url, template, admin: Mutex::new(admin), drops, _cluster: cluster };
    let _ = ready.send(Ok(server));
    while let Some(name) = dropped.recv().await {
        // FORCE: a test that fails leaves connections that are still being closed. Best effort: see `sweep`.
        let _ = dropper.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
    }
}

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let mut config: Config = url.parse()?;
    // Tells the sweep of another run that our databases are in use.
    config.application_name(format!("vtq_tests_{}", process::id()));
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The same server, another database; takes a URL or a keyword string.
pub(crate) fn with_database(url: &str, db: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return format!("{url} dbname={db}") };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, format!("?{query}")),
        None => (rest, String::new()),
    };
    let server = rest.split_once('/').map_or(rest, |(server, _)| server);
    format!("{scheme}://{server}/{db}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_database_changes_nothing_else() {
        let cases = [
            ("postgresql://u:p@h:1/a", "postgresql://u:p@h:1/b"),
            ("postgresql://u:p@h:1", "postgresql://u:p@h:1/b"),
            ("postgres://h/a?sslmode=disable", "postgres://h/b?sslmode=disable"),
            ("postgres:///a?host=/tmp/x", "postgres:///b?host=/tmp/x"),
            ("postgres://?host=/tmp/x", "postgres:///b?host=/tmp/x"),
            ("host=h dbname=a", "host=h dbname=a dbname=b"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_database(url, "b"), expected);
        }
    }
}
