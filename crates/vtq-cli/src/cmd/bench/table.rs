//! The result of a run, for people.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};

use super::report::{Quantiles, Report};
use crate::output::{Cell, Output, Table, Tone, brief};

const UNSEEN: &str = "not visible from here";

/// Prints the result.
pub(super) fn print(report: &Report, output: Output) -> anyhow::Result<()> {
    let server = &report.server;
    output.line(&format!(
        "PostgreSQL {}, fsync {}, synchronous_commit {}; on ack: {}; messages of {} bytes\n",
        server.version,
        server.fsync,
        server.synchronous_commit,
        report.settings.on_ack,
        report.settings.payload_bytes
    ))?;
    output.table(counts(report))?;
    output.line("")?;
    if report.latency.is_some() || report.send.is_some() {
        output.table(lengths(report))?;
        output.line("")?;
    }
    output.table(costs(report))
}

fn counts(report: &Report) -> Table {
    let mut table = Table::new(["messages", "number", "a second", "in"]);
    let length = |millis| Cell::text(format!("{:.1} s", millis as f64 / 1e3));
    let rate = |rate: f64| match rate < 10.0 {
        true => Cell::number(format!("{rate:.1}")),
        false => Cell::number(HumanCount(rate.round() as u64)),
    };
    let count = |number| Cell::number(HumanCount(number));
    let none = || Cell::text("");
    if report.settings.producers > 0 {
        table.row([
            Cell::text("sent"),
            count(report.sent),
            rate(report.sent_per_second),
            length(report.sending_ms),
        ]);
    }
    if report.settings.backlog > 0 {
        table.row([Cell::text("put in before"), count(report.settings.backlog), none(), none()]);
    }
    if report.settings.workers > 0 {
        table.row([
            Cell::text("handled"),
            count(report.handled),
            rate(report.handled_per_second),
            length(report.elapsed_ms),
        ]);
    }
    let tone = if report.left > 0 && report.settings.workers > 0 { Tone::Notable } else { Tone::Plain };
    table.row([Cell::text("left"), count(report.left).tone(tone), none(), none()]);
    for (name, number) in
        [("delayed", report.delayed), ("dead", report.dead), ("redelivered", report.redelivered)]
    {
        if number > 0 {
            table.row([Cell::text(name), count(number), none(), none()]);
        }
    }
    table
}

fn lengths(report: &Report) -> Table {
    let mut table = Table::new(["milliseconds", "p50", "p90", "p99", "p99.9", "max"]);
    let rows = [("sent to started", report.latency), ("sending a batch", report.send)];
    for (name, quantiles) in rows.into_iter().filter_map(|(name, lengths)| Some((name, lengths?))) {
        let Quantiles { p50_us, p90_us, p99_us, p999_us, max_us, .. } = quantiles;
        let lengths = [p50_us, p90_us, p99_us, p999_us, max_us];
        let cells = lengths.map(|micros| Cell::number(format!("{:.2}", micros as f64 / 1e3)));
        table.row([Cell::text(name)].into_iter().chain(cells));
    }
    table
}

fn costs(report: &Report) -> Table {
    let mut table = Table::new(["cost", "", "of"]);
    let micros = |cpu: Option<f64>| known(cpu, |cpu| format!("{cpu:.1} us a message"));
    let bytes = |bytes: Option<u64>| known(bytes, |bytes| HumanBytes(bytes).to_string());
    let wal = known(report.wal_bytes_per_message, |bytes| format!("{bytes:.0} bytes a message"));
    let count = |number: Option<u64>| known(number, |number| HumanCount(number).to_string());
    let rows = [
        ("server CPU", micros(report.backend_cpu_us_per_message), "the connections of this run"),
        ("server CPU", micros(report.server_cpu_us_per_message), "all processes of the server"),
        ("client CPU", micros(report.client_cpu_us_per_message), "this process"),
        ("WAL", wal, "the whole server"),
        ("dead rows", count(report.dead_rows_max), "the live table, at most"),
        ("size", bytes(report.table_bytes_max), "the live table, at most"),
        ("size", bytes(report.total_bytes_max), "with its indexes, at most"),
        ("compactions", count(report.compactions), "the live table"),
        ("notifications", count(report.notifications), "to workers that slept"),
    ];
    for (name, cell, of) in rows {
        table.row([Cell::text(name), cell, Cell::text(of)]);
    }
    if let Some(is_held) = report.snapshot_held {
        let length = brief(Duration::from_millis(report.elapsed_ms));
        let text = if is_held { format!("held for {length}") } else { "ended by the server".into() };
        table.row([
            Cell::text("snapshot"),
            Cell::text(text),
            Cell::text("a transaction in the way of vacuum"),
        ]);
    }
    table
}

fn known<T>(figure: Option<T>, text: impl Fn(T) -> String) -> Cell {
    figure.map_or_else(|| Cell::text(UNSEEN).tone(Tone::Faint), |figure| Cell::text(text(figure)))
}
