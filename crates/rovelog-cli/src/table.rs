//! Tables for text output. They have borders on a terminal. Otherwise their columns are aligned
//! with spaces.

use std::borrow::Cow;
use std::io::{self, Write as _};

use crate::output::Out;
use crate::text::{Paint, escape, width};

/// Alignment of a column in a [`Table`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with headings.
pub(crate) struct Table<'a> {
    columns: Vec<(&'a str, Align)>,
    rows: Vec<Vec<String>>,
}

/// Maximum width of a column. Without this limit, one long name would widen all lines. A longer
/// cell is printed completely, but the cells after it are not aligned.
const MAX_COLUMN_WIDTH: usize = 120;

impl<'a> Table<'a> {
    pub(crate) fn new(columns: &[(&'a str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| escape(&cell).into_owned()).collect());
    }

    pub(crate) fn write(&self, out: &mut Out) -> io::Result<()> {
        let (bordered, paint) = (out.terminal, out.paint);
        self.render(bordered, paint, |line| out.write_all(line.as_bytes()))
    }

    /// Formats the table and passes each line to `write`.
    fn render(
        &self,
        bordered: bool,
        paint: Paint,
        mut write: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (head, _))| {
                let cells =
                    self.rows.iter().map(|row| width(&row[i])).filter(|width| *width <= MAX_COLUMN_WIDTH);
                cells.fold(width(head), usize::max)
            })
            .collect();
        let line = |cells: &[&str], head: bool| {
            let padded = cells.iter().zip(&self.columns).zip(&widths).map(|((cell, (_, align)), columns)| {
                let blanks = " ".repeat(columns.saturating_sub(width(cell)));
                let cell = if head { Cow::Owned(paint.bold(cell)) } else { Cow::Borrowed(*cell) };
                if *align == Align::Left { format!("{cell}{blanks}") } else { format!("{blanks}{cell}") }
            });
            let padded: Vec<_> = padded.collect();
            if bordered {
                let bar = paint.dim("│");
                format!("{bar} {} {bar}\n", padded.join(&format!(" {bar} ")))
            } else {
                format!("{}\n", padded.join("  ").trim_end())
            }
        };
        let rule = |left: &str, middle: &str, right: &str| {
            let parts: Vec<_> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
            if bordered {
                paint.dim(&format!("{left}{}{right}", parts.join(middle))) + "\n"
            } else {
                String::new()
            }
        };
        let heads: Vec<_> = self.columns.iter().map(|(head, _)| *head).collect();
        write(&(rule("╭", "┬", "╮") + &line(&heads, true) + &rule("├", "┼", "┤")))?;
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(String::as_str).collect();
            write(&line(&cells, false))?;
        }
        write(&rule("╰", "┴", "╯"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(table: &Table<'_>, bordered: bool, paint: Paint) -> String {
        let mut text = String::new();
        let written = table.render(bordered, paint, |line| {
            text += line;
            Ok(())
        });
        written.map(|()| text).unwrap()
    }

    #[test]
    fn one_long_cell_does_not_widen_all_lines() {
        let mut table = Table::new(&[("TOPIC", Align::Left), ("COUNT", Align::Right)]);
        table.row(["x".repeat(50_000), "1".to_owned()]);
        for _ in 0..1000 {
            table.row(["a".to_owned(), "2".to_owned()]);
        }
        assert!(rendered(&table, true, Paint(false)).len() < 100_000);
    }

    #[test]
    fn a_table_has_borders_only_on_a_terminal() {
        let mut table = Table::new(&[("TOPIC", Align::Left), ("COUNT", Align::Right)]);
        table.row(["a".to_owned(), "12345678".to_owned()]);
        table.row(["größe".to_owned(), "1".to_owned()]);
        table.row(["机头".to_owned(), "23".to_owned()]);
        insta::assert_snapshot!(rendered(&table, false, Paint(false)), @"
        TOPIC     COUNT
        a      12345678
        größe         1
        机头         23
        ");
        insta::assert_snapshot!(rendered(&table, true, Paint(false)), @"
        ╭───────┬──────────╮
        │ TOPIC │    COUNT │
        ├───────┼──────────┤
        │ a     │ 12345678 │
        │ größe │        1 │
        │ 机头  │       23 │
        ╰───────┴──────────╯
        ");
        assert!(rendered(&table, true, Paint(true)).contains("\x1b[1mTOPIC\x1b[0m"));
    }
}
