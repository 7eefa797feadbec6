//! Tables for text output. On a terminal, tables have borders. Otherwise, the columns are only
//! aligned with spaces.

use std::borrow::Cow;
use std::io::{self, Write as _};

use crate::output::Out;
use crate::text::{Paint, escape, width, wrapped};

/// Alignment of a column in a [`Table`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

struct Column<'a> {
    heading: &'a str,
    align: Align,
}

/// A table with headings. Call [`left`](Self::left) and [`right`](Self::right) to add columns, from
/// left to right.
#[derive(Default)]
pub(crate) struct Table<'a> {
    columns: Vec<Column<'a>>,
    rows: Vec<Vec<String>>,
}

/// Width of the longest cell that can widen its column. Without this limit, one long name would
/// widen all lines. If the table is not fitted to a terminal, a longer cell is printed in one line,
/// and the cells after it are not aligned.
const MAX_COLUMN_WIDTH: usize = 120;

/// Minimum width of a text column that is reduced to fit a narrow terminal.
const MIN_TEXT_WIDTH: usize = 16;

impl<'a> Table<'a> {
    /// Adds columns that are aligned to the left.
    pub(crate) fn left(mut self, headings: impl IntoIterator<Item = &'a str>) -> Self {
        self.columns.extend(headings.into_iter().map(|heading| Column { heading, align: Align::Left }));
        self
    }

    /// Adds columns that are aligned to the right.
    pub(crate) fn right(mut self, headings: impl IntoIterator<Item = &'a str>) -> Self {
        self.columns.extend(headings.into_iter().map(|heading| Column { heading, align: Align::Right }));
        self
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| escape(&cell).into_owned()).collect());
    }

    /// Writes the table. On a terminal, the table is fitted to the terminal's width.
    pub(crate) fn write(&self, out: &mut Out) -> io::Result<()> {
        let (bordered, columns, paint) = (out.terminal, out.columns, out.paint);
        self.render(bordered, columns, paint, |line| out.write_all(line.as_bytes()))
    }

    /// Formats the table and passes its text to `write` in parts of one or more lines. `columns` is
    /// the terminal's width, or `None` if the table is not fitted to a terminal.
    fn render(
        &self,
        bordered: bool,
        columns: Option<usize>,
        paint: Paint,
        mut write: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut widths, is_fitted) = (self.widths(), columns.is_some());
        let shown = columns.map_or(widths.len(), |columns| self.fit(&mut widths, columns));
        let (widths, columns) = (&widths[..shown], &self.columns[..shown]);
        let line = |cells: &[&str], is_head: bool| {
            let padded = cells.iter().zip(columns).zip(widths).map(|((cell, column), column_width)| {
                let blanks = " ".repeat(column_width.saturating_sub(width(cell)));
                let cell = if is_head { Cow::Owned(paint.bold(cell)) } else { Cow::Borrowed(*cell) };
                match column.align {
                    Align::Left => format!("{cell}{blanks}"),
                    Align::Right => format!("{blanks}{cell}"),
                }
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
        let heads: Vec<_> = columns.iter().map(|column| column.heading).collect();
        write(&(rule("╭", "┬", "╮") + &line(&heads, true) + &rule("├", "┼", "┤")))?;
        for row in &self.rows {
            let wrap = |(cell, width): (&String, &usize)| {
                if is_fitted { wrapped(cell, *width) } else { vec![cell.clone()] }
            };
            let parts: Vec<_> = row.iter().zip(widths).map(wrap).collect();
            for at in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
                let cells = parts.iter().map(|lines| lines.get(at).map_or("", String::as_str));
                write(&line(&cells.collect::<Vec<_>>(), false))?;
            }
        }
        write(&rule("╰", "┴", "╯"))?;
        if shown < self.columns.len() {
            let heads = self.columns[shown..].iter().map(|column| column.heading);
            let left_out = heads.map(|head| if head.is_empty() { "remarks" } else { head });
            let left_out = left_out.collect::<Vec<_>>().join(", ");
            write(&format!("{}\n", paint.dim(&format!("without {left_out}; --wide shows all columns"))))?;
        }
        Ok(())
    }

    /// Returns the width of each column before the table is fitted to a terminal.
    fn widths(&self) -> Vec<usize> {
        let of_column = |(i, column): (usize, &Column<'_>)| {
            let cells = self.rows.iter().map(|row| width(&row[i])).filter(|width| *width <= MAX_COLUMN_WIDTH);
            cells.fold(width(column.heading), usize::max)
        };
        self.columns.iter().enumerate().map(of_column).collect()
    }

    /// Reduces `widths` so that the table with its borders is at most `columns` wide, and returns
    /// the number of columns to show. The widest text columns are reduced first, and their cells
    /// are then wrapped. If the table is still too wide, its last columns are left out.
    fn fit(&self, widths: &mut [usize], columns: usize) -> usize {
        let full = |widths: &[usize]| widths.iter().sum::<usize>() + 3 * widths.len() + 1;
        while full(widths) > columns {
            let all = widths.iter().zip(&self.columns).enumerate();
            let texts = all.filter(|(_, (_, column))| column.align == Align::Left);
            let widest = texts.map(|(i, (width, _))| (*width, i)).max();
            let Some((width, i)) = widest.filter(|(width, _)| *width > MIN_TEXT_WIDTH) else { break };
            widths[i] = width - (full(widths) - columns).min(width - MIN_TEXT_WIDTH);
        }
        let mut shown = widths.len();
        while shown > 1 && full(&widths[..shown]) > columns {
            shown -= 1;
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(table: &Table<'_>, bordered: bool, paint: Paint) -> String {
        fitted(table, bordered, None, paint)
    }

    fn fitted(table: &Table<'_>, bordered: bool, columns: Option<usize>, paint: Paint) -> String {
        let mut text = String::new();
        let written = table.render(bordered, columns, paint, |line| {
            text += line;
            Ok(())
        });
        written.map(|()| text).unwrap()
    }

    #[test]
    fn one_long_cell_does_not_widen_all_lines() {
        let mut table = Table::default().left(["TOPIC"]).right(["COUNT"]);
        table.row(["x".repeat(50_000), "1".to_owned()]);
        for _ in 0..1000 {
            table.row(["a".to_owned(), "2".to_owned()]);
        }
        assert!(rendered(&table, true, Paint(false)).len() < 100_000);
    }

    #[test]
    fn a_table_has_borders_only_on_a_terminal() {
        let mut table = Table::default().left(["TOPIC"]).right(["COUNT"]);
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
    #[test]
    fn a_table_fits_the_terminal() {
        let mut table = Table::default().left(["TOPIC"]).right(["COUNT", "BYTES"]);
        table.row(["a/topic/with/a/long/name".to_owned(), "12345678".to_owned(), "1".to_owned()]);
        insta::assert_snapshot!(fitted(&table, true, Some(40), Paint(false)), @"
        ╭───────────────────┬──────────┬───────╮
        │ TOPIC             │    COUNT │ BYTES │
        ├───────────────────┼──────────┼───────┤
        │ a/topic/with/a/lo │ 12345678 │     1 │
        │ ng/name           │          │       │
        ╰───────────────────┴──────────┴───────╯
        ");
        insta::assert_snapshot!(fitted(&table, true, Some(36), Paint(false)), @"
        ╭──────────────────┬──────────╮
        │ TOPIC            │    COUNT │
        ├──────────────────┼──────────┤
        │ a/topic/with/a/l │ 12345678 │
        │ ong/name         │          │
        ╰──────────────────┴──────────╯
        without BYTES; --wide shows all columns
        ");
    }
}
