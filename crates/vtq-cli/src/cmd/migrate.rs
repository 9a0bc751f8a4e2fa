//! `vtq migrate`.

use serde_json::json;
use vtq::{SchemaState, Vtq};

use crate::args::{Global, MigrateArgs};
use crate::exit::Exit;
use crate::output::{Output, print};

pub(super) async fn run(global: &Global, output: Output, args: &MigrateArgs) -> anyhow::Result<Exit> {
    if args.sql {
        print(&Vtq::schema_sql())?;
        return Ok(Exit::Done);
    }
    let vtq = global.connect_patiently().await?;
    let database = vtq.redacted();
    if args.dry_run {
        let is_current = vtq.schema_state().await? == SchemaState::Current;
        let text = match is_current {
            true => format!("{database} is up to date"),
            false => format!("{database} is not up to date: vtq migrate has something to do"),
        };
        // This is what was asked for, so that --quiet does not silence it.
        match output.is_json() {
            true => output.json(&json!({"database": database, "up_to_date": is_current}))?,
            false => output.line(&text)?,
        }
        return Ok(Exit::Done);
    }
    let report = vtq.migrate().await?;
    let applied: Vec<_> =
        report.applied.iter().map(|(version, name)| json!({"version": version, "name": name})).collect();
    let steps: Vec<_> = report.applied.iter().map(|(version, name)| format!("{version} {name}")).collect();
    let text = match (steps.is_empty(), report.installed_functions) {
        (true, false) => format!("{database} was up to date"),
        (true, true) => format!("{database} is up to date: functions installed anew"),
        (false, _) => format!("{database} is up to date: migration {} applied", steps.join(", ")),
    };
    let document = json!({
        "database": database,
        "version": report.version,
        "applied": applied,
        "installed_functions": report.installed_functions,
    });
    output.done(&text, &document)?;
    Ok(Exit::Done)
}
