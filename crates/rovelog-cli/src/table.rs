//! Tables: with borders on a terminal, aligned by blanks in a pipe.

use std::borrow::Cow;
use std::io::{self, Write as _};

use crate::output::Out;
use crate::text::{Paint, escape};

/// How a column of a [`Table`] is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows under headings: with borders on a terminal, aligned by blanks in a pipe.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| escape(&cell).into_owned()).collect());
    }

    pub(crate) fn write(&self, out: &mut Out) -> io::Result<()> {
        let text = self.render(out.terminal, out.paint);
        out.write_all(text.as_bytes())
    }

    fn render(&self, bordered: bool, paint: Paint) -> String {
        let width = |text: &str| text.chars().count();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (head, _))| self.rows.iter().map(|row| width(&row[i])).fold(width(head), usize::max))
            .collect();
        let line = |cells: &[&str], head: bool| {
            let padded = cells.iter().zip(&self.columns).zip(&widths).map(|((cell, (_, align)), width)| {
                let blanks = " ".repeat(width - cell.chars().count());
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
        let mut text = rule("╭", "┬", "╮") + &line(&heads, true) + &rule("├", "┼", "┤");
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(String::as_str).collect();
            text += &line(&cells, false);
        }
        text + &rule("╰", "┴", "╯")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_borders_only_on_a_terminal() {
        let mut table = Table::new(&[("TOPIC", Align::Left), ("COUNT", Align::Right)]);
        table.row(["a".to_owned(), "12345678".to_owned()]);
        table.row(["größe".to_owned(), "1".to_owned()]);
        insta::assert_snapshot!(table.render(false, Paint(false)), @"
        TOPIC     COUNT
        a      12345678
        größe         1
        ");
        insta::assert_snapshot!(table.render(true, Paint(false)), @"
        ╭───────┬──────────╮
        │ TOPIC │    COUNT │
        ├───────┼──────────┤
        │ a     │ 12345678 │
        │ größe │        1 │
        ╰───────┴──────────╯
        ");
        assert!(table.render(true, Paint(true)).contains("\x1b[1mTOPIC\x1b[0m"));
    }
}
