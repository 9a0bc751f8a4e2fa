//! Applying `sql/` to a database: migrations once each, functions whenever they changed.

use sha2::{Digest, Sha256};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, GenericClient};

use crate::call::{self, Param};
use crate::connect::Vtq;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::{self, File, MIGRATIONS};

/// The release that this library is; what it installs bears it.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Key of the advisory lock that migrators take in turn: "vtq_migr" in ASCII.
const LOCK: i64 = 0x7674_715f_6d69_6772;

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateReport {
    /// The migrations that were applied now, by number and name; empty when there was nothing to do.
    pub applied: Vec<(i32, &'static str)>,
    /// Whether the functions were installed anew.
    pub installed_functions: bool,
    /// The number of the last migration, now in the database.
    pub version: i32,
}

/// What a database says about its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// It is what this library works with.
    Current,
    /// There is none, or an older one: `vtq migrate` brings it up to date.
    Behind,
}

impl Vtq {
    /// Brings the database's schema up to what this library works with, in one transaction.
    ///
    /// Twice is as once, and twenty may do it at once: they take turns, and those that come later find all done. The
    /// role needs CREATE on the database, nothing more.
    ///
    /// # Errors
    /// [`ErrorKind::NewerSchema`] when a newer vtq was here, or a released migration is not the one that this library
    /// knows; nothing is changed then.
    pub async fn migrate(&self) -> Result<MigrateReport> {
        // A connection of its own: waiting for another migrator, or for a lock, may take longer than a statement may.
        let (mut client, _) = self.dedicated().await?.spawn();
        migrate(&mut client).await
    }

    /// Tells whether the database's schema is what this library works with.
    ///
    /// # Errors
    /// As [`migrate`](Self::migrate).
    pub async fn schema_state(&self) -> Result<SchemaState> {
        let client = self.client().await?;
        client.bounded("look up the schema", schema_state(&*client)).await
    }

    /// Returns all of the SQL that [`migrate`](Self::migrate) runs on an empty database, to read or to run by hand.
    pub fn schema_sql() -> String {
        let files = MIGRATIONS.iter().flat_map(|migration| migration.files).chain(sql::FUNCTIONS);
        let mut text = String::from("BEGIN;\nSET LOCAL check_function_bodies = off;\n\n");
        let mut texts: Vec<&str> = files.map(|file| file.text).collect();
        texts.insert(1, sql::BOOTSTRAP);
        text.push_str(&texts.join("\n"));
        for migration in MIGRATIONS {
            text.push_str(&record_line(migration.version, migration.name, &checksum(migration.files)));
        }
        text.push_str(&record_line(0, "functions", &checksum(sql::FUNCTIONS)));
        text.push_str(&format!("\n{};\nCOMMIT;\n", sql::CLOSE));
        text
    }
}

fn record_line(version: i32, name: &str, checksum: &str) -> String {
    // Names, numbers and digests of our own: nothing in here comes from outside.
    format!(
        "\nINSERT INTO vtq._migration (version, name, checksum, vtq_version) \
         VALUES ({version}, '{name}', '{checksum}', '{VERSION}');"
    )
}

async fn migrate(client: &mut Client) -> Result<MigrateReport> {
    let what = "migrate";
    let db = |error: tokio_postgres::Error| Error::db(what, &error);
    let tx = client.transaction().await.map_err(db)?;
    call::rows(&tx, what, "SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).await?;
    let present = Present::look(&tx).await?;
    present.check()?;

    let mut report = MigrateReport {
        applied: Vec::new(),
        installed_functions: false,
        version: MIGRATIONS.last().map_or(0, |last| last.version),
    };
    tx.batch_execute("SET LOCAL check_function_bodies = off; SET LOCAL client_min_messages = warning")
        .await
        .map_err(db)?;
    for migration in MIGRATIONS.iter().filter(|migration| !present.has(migration.version)) {
        for (place, file) in migration.files.iter().enumerate() {
            run_file(&tx, file).await?;
            if migration.version == 1 && place == 0 {
                tx.batch_execute(sql::BOOTSTRAP).await.map_err(db)?;
            }
        }
        record(&tx, migration.version, migration.name, &checksum(migration.files)).await?;
        report.applied.push((migration.version, migration.name));
    }
    let functions = checksum(sql::FUNCTIONS);
    if present.functions().is_none_or(|row| row.checksum != functions) {
        for file in sql::FUNCTIONS {
            run_file(&tx, file).await?;
        }
        tx.batch_execute(sql::CLOSE).await.map_err(db)?;
        tx.batch_execute(sql::REBUILD).await.map_err(db)?;
        record(&tx, 0, "functions", &functions).await?;
        report.installed_functions = true;
    }
    tx.commit().await.map_err(db)?;
    Ok(report)
}

async fn run_file<C: GenericClient>(client: &C, file: &File) -> Result<()> {
    client
        .batch_execute(file.text)
        .await
        .map_err(|error| Error::db(format!("run sql/{}.sql", file.name), &error))
}

async fn record<C: GenericClient>(client: &C, version: i32, name: &str, checksum: &str) -> Result<()> {
    let params: [Param<'_>; 4] =
        [(&version, Type::INT4), (&name, Type::TEXT), (&checksum, Type::TEXT), (&VERSION, Type::TEXT)];
    call::rows(client, "record a migration", sql::RECORD_MIGRATION, &params).await.map(drop)
}

pub(crate) async fn schema_state<C: GenericClient>(client: &C) -> Result<SchemaState> {
    let present = Present::look(client).await?;
    present.check()?;
    let has_all = MIGRATIONS.iter().all(|migration| present.has(migration.version));
    let has_functions = present.functions().is_some_and(|row| row.checksum == checksum(sql::FUNCTIONS));
    Ok(if has_all && has_functions { SchemaState::Current } else { SchemaState::Behind })
}

/// What the database says has run.
struct Present(Vec<Applied>);

struct Applied {
    version: i32,
    checksum: String,
    vtq_version: String,
}

impl Present {
    async fn look<C: GenericClient>(client: &C) -> Result<Self> {
        let what = "look up the schema";
        let exists: bool = call::value(client, what, sql::HAS_MIGRATIONS, &[]).await?;
        if !exists {
            return Ok(Self(Vec::new()));
        }
        let rows = call::rows(client, what, sql::MIGRATIONS_RUN, &[]).await?;
        let applied = rows.iter().map(|row| {
            Ok(Applied {
                version: call::column(row, 0, what)?,
                checksum: call::column(row, 1, what)?,
                vtq_version: call::column(row, 2, what)?,
            })
        });
        Ok(Self(applied.collect::<Result<_>>()?))
    }

    fn has(&self, version: i32) -> bool {
        self.0.iter().any(|row| row.version == version)
    }

    fn functions(&self) -> Option<&Applied> {
        self.0.iter().find(|row| row.version == 0)
    }

    /// Refuses a schema that this library must not touch.
    fn check(&self) -> Result<()> {
        let newest = MIGRATIONS.last().map_or(0, |last| last.version);
        let refuse = |why: String| Err(Error::new(ErrorKind::NewerSchema, why));
        if let Some(row) = self.0.iter().find(|row| row.version > newest) {
            return refuse(format!(
                "the database's vtq schema is at version {}, from vtq {}, and this is vtq {VERSION}, which knows version \
                 {newest}: install vtq {} or newer",
                row.version, row.vtq_version, row.vtq_version
            ));
        }
        if let Some(row) = self.functions().filter(|row| is_newer(&row.vtq_version, VERSION)) {
            return refuse(format!(
                "the database's vtq functions are from vtq {}, and this is vtq {VERSION}: install vtq {} or newer",
                row.vtq_version, row.vtq_version
            ));
        }
        for migration in MIGRATIONS {
            let Some(row) = self.0.iter().find(|row| row.version == migration.version) else { continue };
            if row.checksum != checksum(migration.files) {
                return refuse(format!(
                    "migration {} ({}) in the database, applied by vtq {}, is not the one that vtq {VERSION} knows: \
                     their checksums differ",
                    migration.version, migration.name, row.vtq_version
                ));
            }
        }
        Ok(())
    }
}

fn checksum(files: &[File]) -> String {
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.name);
        digest.update([0]);
        digest.update(file.text);
        digest.update([0]);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares releases number by number; what is no number counts as 0.
fn is_newer(theirs: &str, ours: &str) -> bool {
    let numbers =
        |version: &str| -> Vec<u64> { version.split('.').map(|part| part.parse().unwrap_or(0)).collect() };
    numbers(theirs) > numbers(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert!(is_newer("0.10.0", "0.9.9"));
        assert!(!is_newer("0.9.9", "0.10.0"));
        assert!(!is_newer("1.0.0", "1.0.0"));
    }

    #[test]
    fn migrations_are_numbered_without_gaps() {
        for (place, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(migration.version, place as i32 + 1);
        }
    }
}
