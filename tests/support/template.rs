//! The database that each test's own is cloned from.

use sha2::{Digest, Sha256};
use tokio_postgres::Client;
use vtq::{ConnectOptions, Vtq};

use crate::server::with_database;

/// Either the server's or vtq's.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One process at a time builds or sweeps; the number is arbitrary.
const LOCK: i64 = 0x7674_715f_7465_7374;

/// Installs vtq into the database at `url`.
///
/// # Panics
/// If that fails.
pub async fn install(url: &str) {
    migrate(url).await.expect("vtq can be installed");
}

async fn migrate(url: &str) -> vtq::Result<()> {
    ConnectOptions::from_url(url)?.connect().await?.migrate().await.map(drop)
}

/// Makes sure that the template exists, and returns its name.
///
/// The name holds a hash of the SQL, so that on a server that outlives the run a changed file means a new template.
pub(crate) async fn prepare(admin: &Client, url: &str) -> Result<String, Failure> {
    let hash = hash_of(&Vtq::schema_sql());
    let name = format!("vtq_template_{hash}");

    admin.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let built = build(admin, url, &name).await;
    admin.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await?;
    built.map(|()| name)
}

async fn build(admin: &Client, url: &str, name: &str) -> Result<(), Failure> {
    if admin.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name]).await?.is_some() {
        return Ok(());
    }
    // Under another name until it is complete: a run that is killed half-way leaves no broken template.
    let draft = format!("{name}_draft");
    admin.batch_execute(&format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)")).await?;
    admin.batch_execute(&format!("CREATE DATABASE {draft} TEMPLATE template0")).await?;
    migrate(&with_database(url, &draft)).await?;
    // A clone fails while anyone, such as an autovacuum worker, is connected to the original.
    admin
        .batch_execute(&format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{draft}'"
        ))
        .await?;
    admin.batch_execute(&format!("ALTER DATABASE {draft} ALLOW_CONNECTIONS false")).await?;
    admin.batch_execute(&format!("ALTER DATABASE {draft} RENAME TO {name}")).await?;
    Ok(())
}

/// Drops databases whose test process is gone; and old templates, if no other process runs.
pub(crate) async fn sweep(admin: &Client, template: &str) -> Result<(), Failure> {
    // A process is alive as long as the session is that carries its number, on whatever machine it runs.
    let sql = "
        SELECT d.datname
        FROM pg_database AS d
        WHERE d.datname ~ '^vtq_t_[0-9]+_'
          AND NOT EXISTS (
              SELECT FROM pg_stat_activity AS a
              WHERE a.application_name = 'vtq_tests_' || split_part(d.datname, '_', 3)
          )
        UNION ALL
        SELECT d.datname
        FROM pg_database AS d
        WHERE d.datname ~ '^vtq_template_'
          AND d.datname <> $1
          AND NOT EXISTS (
              SELECT FROM pg_stat_activity AS a
              WHERE a.application_name ~ '^vtq_tests_'
                AND a.pid <> pg_backend_pid()
          )";
    for row in admin.query(sql, &[&template]).await? {
        let name: String = row.get(0);
        // Without FORCE: whoever is connected has a reason. Another sweeper may be faster.
        let _ = admin.batch_execute(&format!("DROP DATABASE IF EXISTS {name}")).await;
    }
    Ok(())
}

/// Twelve hexadecimal digits for all of the SQL that is installed. The tests may run where the repository is not.
fn hash_of(sql: &str) -> String {
    Sha256::digest(sql).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
