//! Tables: columns without lines, so that `grep` and `awk` can read them too.

use std::fmt::Display;
use std::io::{self, IsTerminal};

use chrono::{DateTime, SecondsFormat, Utc};
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, CellAlignment, ColumnConstraint, ContentArrangement};

/// The blanks between columns.
const GAP: u16 = 2;

/// A table in the making.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// What stands in a place of a table.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    is_number: bool,
    tone: Tone,
}

/// What a cell says by its colour; never the only way it says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Notable,
    Bad,
    Faint,
}

impl Table {
    /// Starts a table; without heads it has no first line.
    pub(crate) fn new(heads: impl IntoIterator<Item = &'static str>) -> Self {
        Self { heads: heads.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(super) fn render(self, is_coloured: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        let is_terminal = io::stdout().is_terminal();
        // Elsewhere than on a terminal, a row is a line, however long.
        table.set_content_arrangement(match is_terminal {
            true => ContentArrangement::Dynamic,
            false => ContentArrangement::Disabled,
        });
        if is_coloured {
            table.enforce_styling();
        }
        if !self.heads.is_empty() {
            let numbers = |column: usize| {
                self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.is_number))
            };
            table.set_header(self.heads.iter().enumerate().map(|(column, head)| {
                let cell = comfy_table::Cell::new(head.to_uppercase());
                let cell = if is_coloured { cell.add_attribute(Attribute::Bold) } else { cell };
                if numbers(column) { cell.set_alignment(CellAlignment::Right) } else { cell }
            }));
        }
        for row in self.rows {
            table.add_row(row.into_iter().map(|cell| cell.styled(is_coloured)));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP));
        }
        if is_terminal {
            give_way_in_one_place(&mut table);
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

impl Cell {
    /// Text, made safe for a terminal.
    pub(crate) fn text(text: impl Display) -> Self {
        Self { text: clean(&text.to_string()), is_number: false, tone: Tone::Plain }
    }

    /// A number, set to the right.
    pub(crate) fn number(number: impl Display) -> Self {
        Self { text: number.to_string(), is_number: true, tone: Tone::Plain }
    }

    /// Text that may be missing.
    pub(crate) fn optional(text: Option<impl Display>) -> Self {
        text.map_or_else(|| Self::text("-").tone(Tone::Faint), Self::text)
    }

    /// Sets the colour.
    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    fn styled(self, is_coloured: bool) -> comfy_table::Cell {
        use comfy_table::Color::{DarkGreen, DarkRed, DarkYellow};
        let cell = comfy_table::Cell::new(self.text);
        let cell = if self.is_number { cell.set_alignment(CellAlignment::Right) } else { cell };
        match self.tone {
            Tone::Plain => cell,
            _ if !is_coloured => cell,
            Tone::Good => cell.fg(DarkGreen),
            Tone::Notable => cell.fg(DarkYellow),
            Tone::Bad => cell.fg(DarkRed),
            Tone::Faint => cell.add_attribute(Attribute::Dim),
        }
    }
}

/// Where a table is too wide, its widest column is folded, as long as that leaves something to read; numbers, names
/// and instants stay whole. On a narrow terminal lines run over, which is still easier to read.
fn give_way_in_one_place(table: &mut comfy_table::Table) {
    const READABLE: u32 = 20;
    let widths = table.column_max_content_widths();
    let Some((widest, _)) = widths.iter().enumerate().max_by_key(|(_, width)| **width) else { return };
    let others = widths.iter().enumerate().filter(|(column, _)| *column != widest);
    let others: u32 = others.map(|(_, width)| u32::from(*width) + u32::from(GAP)).sum();
    let has_room = table.width().is_some_and(|width| others + READABLE + u32::from(GAP) <= width.into());
    if !has_room {
        table.set_content_arrangement(ContentArrangement::Disabled);
        return;
    }
    for column in table.column_iter_mut().filter(|column| column.index != widest) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
}

/// Makes text from elsewhere safe to show: on one line, and without commands to the terminal.
pub(crate) fn clean(text: &str) -> String {
    let shown = |c: char| match c {
        c if c.is_whitespace() => ' ',
        c if c.is_control() => '\u{FFFD}',
        c => c,
    };
    text.trim_end().chars().map(shown).collect()
}

/// Writes an instant for people: UTC, to the second.
pub(crate) fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
