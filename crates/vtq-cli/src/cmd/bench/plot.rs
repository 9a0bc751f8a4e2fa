//! A picture of a run: throughput above, latency below, over time. SVG.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::report::Report;
use super::series::Second;

const SIZE: (u32, u32) = (1000, 700);
const BLUE_LINE: RGBColor = RGBColor(31, 119, 180);
const ORANGE_LINE: RGBColor = RGBColor(255, 127, 14);
const GREEN_LINE: RGBColor = RGBColor(44, 160, 44);
const RED_LINE: RGBColor = RGBColor(214, 39, 40);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// One line of a panel.
struct Line {
    name: &'static str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

/// Draws the picture and writes it.
pub(super) fn write(path: &Path, report: &Report) -> anyhow::Result<()> {
    let mut svg = String::new();
    draw(&mut svg, report).map_err(|error| anyhow!("cannot draw the picture: {error}"))?;
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
}

fn draw(svg: &mut String, report: &Report) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(&title(report), ("sans-serif", 18))?;
    let seconds = &report.series;
    let end = seconds.last().map_or(1.0, at).max(0.1);
    let (above, below) = root.split_vertically(SIZE.1 / 2);
    let throughput = [
        line("sent", BLUE_LINE, seconds, |second| Some(second.sent_per_second)),
        line("handled", ORANGE_LINE, seconds, |second| Some(second.handled_per_second)),
    ];
    let millis = |micros: Option<u64>| Some(micros? as f64 / 1e3);
    let latency = [
        line("p50", GREEN_LINE, seconds, |second| millis(second.latency_p50_us)),
        line("p99", RED_LINE, seconds, |second| millis(second.latency_p99_us)),
    ];
    panel(&above, "messages a second", 0.0..end, &throughput)?;
    panel(&below, "latency in ms, sent to started", 0.0..end, &latency)?;
    root.present()?;
    Ok(())
}

fn title(report: &Report) -> String {
    let settings = &report.settings;
    let rate = settings.rate_per_second.map_or("flat out".into(), |rate| format!("at {rate}/s"));
    format!(
        "vtq bench, PostgreSQL {}. Senders: {}, {rate}. Workers: {}, of {} handlers",
        report.server.version, settings.producers, settings.workers, settings.concurrency
    )
}

fn line(
    name: &'static str,
    color: RGBColor,
    seconds: &[Second],
    value: impl Fn(&Second) -> Option<f64>,
) -> Line {
    let points = seconds.iter().filter_map(|second| Some((at(second), value(second)?))).collect();
    Line { name, color, points }
}

fn at(second: &Second) -> f64 {
    second.at_ms as f64 / 1e3
}

fn panel(
    area: &Area<'_>,
    name: &str,
    time: Range<f64>,
    lines: &[Line],
) -> Result<(), Box<dyn std::error::Error>> {
    let values = lines.iter().flat_map(|line| line.points.iter().map(|(_, value)| *value));
    let highest = values.fold(0.0, f64::max);
    let top = if highest > 0.0 { highest * 1.1 } else { 1.0 };
    let mut chart: Chart<'_, '_> = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(76)
        .build_cartesian_2d(time, 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("seconds")
        .y_desc(name)
        .light_line_style(WHITE)
        .x_label_formatter(&f64::to_string)
        .y_label_formatter(&f64::to_string)
        .draw()?;
    for Line { name, color, points } in lines {
        let (color, from) = (*color, points.clone());
        chart
            .draw_series(LineSeries::new(from, color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 2, color.filled())))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.4)).draw()?;
    Ok(())
}
