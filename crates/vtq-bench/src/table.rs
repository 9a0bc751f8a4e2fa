//! The page: a table of ratios and one of values for each workload, as markdown.

use std::fmt::Write;

use crate::figure::{Figure, Metric, Ratio, Section};

/// Writes a workload's part.
pub(crate) fn section(section: &Section) -> String {
    let mut text = format!("## {}\n\n{}\n\n", section.title, section.about);
    ratios(&mut text, section);
    values(&mut text, section);
    text
}

fn ratios(text: &mut String, section: &Section) {
    let rows: Vec<(&Ratio, Spread)> = section
        .ratios
        .iter()
        .filter_map(|ratio| {
            Spread::of(section.runs.iter().filter_map(|run| ratio_of(run, ratio))).map(|s| (ratio, s))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    text.push_str("| ratio | of | median | min | max |\n|---|---|--:|--:|--:|\n");
    for (ratio, Spread { median, min, max }) in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {median:.2} | {min:.2} | {max:.2} |",
            pair(&ratio.of, &ratio.to),
            ratio.metric.head()
        );
    }
    text.push('\n');
}

/// Names what is divided; the case only once when it is the same.
fn pair(of: &(String, &'static str), to: &(String, &'static str)) -> String {
    match (of.0 == to.0, of.1 == to.1) {
        (true, _) if of.0.is_empty() => format!("{} / {}", of.1, to.1),
        (true, _) => format!("{}: {} / {}", of.0, of.1, to.1),
        (false, true) => format!("{}: {} / {}", of.1, of.0, to.0),
        (false, false) => format!("{}, {} / {}, {}", of.1, of.0, to.1, to.0),
    }
}

fn ratio_of(run: &[Figure], ratio: &Ratio) -> Option<f64> {
    let of = value(run, &ratio.of, ratio.metric)?;
    let to = value(run, &ratio.to, ratio.metric)?;
    (to > 0.0).then(|| of / to)
}

fn value(run: &[Figure], (case, who): &(String, &'static str), metric: Metric) -> Option<f64> {
    let figure = run.iter().find(|figure| figure.case == *case && figure.who == *who)?;
    figure.values.iter().find(|(of, _)| *of == metric).map(|(_, value)| *value)
}

fn values(text: &mut String, section: &Section) {
    let all = || section.runs.iter().flatten();
    let mut metrics: Vec<Metric> = Vec::new();
    let mut rows: Vec<(String, &'static str)> = Vec::new();
    for figure in all() {
        let row = (figure.case.clone(), figure.who);
        if !rows.contains(&row) {
            rows.push(row);
        }
        for (metric, _) in &figure.values {
            if !metrics.contains(metric) {
                metrics.push(*metric);
            }
        }
    }
    let heads: Vec<&str> = metrics.iter().map(|metric| metric.head()).collect();
    let _ = writeln!(text, "| case | | {} |\n|---|---|{}", heads.join(" | "), "--:|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<String> = metrics
            .iter()
            .map(|metric| {
                let values = section.runs.iter().filter_map(|run| value(run, &row, *metric));
                Spread::of(values).map_or_else(String::new, |spread| spread.cell())
            })
            .collect();
        let _ = writeln!(text, "| {} | {} | {} |", row.0, row.1, cells.join(" | "));
    }
    text.push('\n');
}

/// The median of some runs, and the ends.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, min, max })
    }

    fn cell(self) -> String {
        let Self { median, min, max } = self;
        if min == max {
            number(median)
        } else {
            format!("{} ({}..{})", number(median), number(min), number(max))
        }
    }
}

/// Three digits or so; a thousand has its comma.
fn number(value: f64) -> String {
    if value >= 100.0 {
        let digits = format!("{value:.0}");
        let head = digits.len() % 3;
        let mut text = digits[..head].to_owned();
        for at in (head..digits.len()).step_by(3) {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&digits[at..at + 3]);
        }
        return text;
    }
    if value >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Who;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        let spread = Spread::of([4.0, 1.0, 2.0, 9.0].into_iter());

        assert_eq!(spread, Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of(std::iter::empty()), None);
    }

    #[test]
    fn a_ratio_is_of_values_of_the_same_run() {
        let run = |vtq, other| {
            vec![
                Figure::new("", Who("vtq"), vec![(Metric::Rate, vtq)]),
                Figure::new("", Who("other"), vec![(Metric::Rate, other)]),
            ]
        };
        let whole = Section {
            title: "T",
            about: "About.".into(),
            runs: vec![run(20.0, 10.0), run(90.0, 30.0), run(1000.0, 100.0)],
            ratios: vec![
                Ratio::new(Metric::Rate, ("", Who("vtq")), ("", Who("other"))),
                Ratio::new(Metric::P99, ("", Who("vtq")), ("", Who("other"))),
            ],
        };

        let text = section(&whole);

        assert!(text.contains("| vtq / other | messages/s | 3.00 | 2.00 | 10.00 |"), "{text}");
        assert!(!text.contains("p99"), "what was not measured is not shown: {text}");
        assert!(text.contains("|  | vtq | 90.0 (20.0..1,000) |"), "{text}");
    }
}
