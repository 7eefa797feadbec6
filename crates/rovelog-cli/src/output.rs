//! Writing results: buffered stdout, colours, tables, and text that cannot steer a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Stdout, Write};

use crate::report::Failure;

/// Standard output behind a large buffer.
pub(crate) struct Out {
    inner: BufWriter<Stdout>,
    /// Somebody watches: tables get borders, and streams are flushed line by line.
    pub(crate) terminal: bool,
    pub(crate) paint: Paint,
}

impl Out {
    pub(crate) fn new(terminal: bool, paint: Paint) -> Self {
        Self { inner: BufWriter::with_capacity(1 << 16, io::stdout()), terminal, paint }
    }

    /// Ends a record of a stream: shown at once on a terminal, buffered otherwise.
    pub(crate) fn end_record(&mut self) -> io::Result<()> {
        if self.terminal { self.inner.flush() } else { Ok(()) }
    }

    /// Writes `document` as JSON: indented for a person, on one line for a program.
    pub(crate) fn json(&mut self, document: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
        if self.terminal {
            let mut text = serde_json::to_string_pretty(document)?;
            self.guard(&mut text);
            return self.write_all(text.as_bytes());
        }
        Ok(serde_json::to_writer(self, document)?)
    }

    /// Machine formats keep every character of a text, but for those that would steer a terminal.
    pub(crate) fn guard(&self, text: &mut String) {
        let harmful = |c: char| c != '\n' && steers(c);
        if self.terminal && text.contains(harmful) {
            // The escape of JSON: what it is replaced by means the same there.
            let shown = |c: char| if harmful(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
            *text = text.chars().map(shown).collect();
        }
    }

    /// Bytes of JSON, guarded.
    pub(crate) fn guarded(&mut self, json: &[u8]) -> io::Result<()> {
        if !self.terminal {
            return self.write_all(json);
        }
        let mut text = String::from_utf8_lossy(json).into_owned();
        self.guard(&mut text);
        self.write_all(text.as_bytes())
    }

    /// A whole document as JSON.
    pub(crate) fn document(&mut self, document: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
        self.json(document)?;
        self.write_all(b"\n")?;
        self.flush()
    }

    /// One line of NDJSON.
    pub(crate) fn line(&mut self, object: &impl serde::Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(object)?;
        self.guard(&mut text);
        text.push('\n');
        self.write_all(text.as_bytes())
    }

    /// A table as CSV.
    pub(crate) fn csv<const N: usize>(
        self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Result<(), Failure> {
        let mut csv = csv::Writer::from_writer(self);
        csv.write_record(head)?;
        for mut row in rows {
            for cell in &mut row {
                csv.get_ref().guard(cell);
            }
            csv.write_record(&row)?;
        }
        Ok(csv.flush()?)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Colours, or none.
#[derive(Clone, Copy)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("1;33", text)
    }
}

/// `text` with control characters written out: what a log says may not steer the terminal it is shown on.
/// Marks that turn the direction of writing count as such; a tab does not.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
    if text.bytes().all(plain) || !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            c if steers(c) && u32::from(c) < 0x100 => {
                let _ = write!(escaped, "\\x{:02x}", u32::from(c));
            }
            c if steers(c) => {
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

fn steers(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

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

/// A size for people: `512 B`, `92 kB`, `7.9 MB`. Decimal, as disks and `ls -h --si` count.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB"] {
        // What would be rounded up to 1000 belongs to the next unit.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let whole = unit == "B" || (unit == "kB" && value >= 9.95);
    if whole { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_cannot_steer_the_terminal() {
        assert_eq!(escape("plain\ttab, größe"), "plain\ttab, größe");
        assert_eq!(escape("\x1b[2J\x07\r\n\u{9b}1m\u{202e}"), "\\x1b[2J\\x07\\r\\n\\x9b1m\\u{202e}");
    }

    #[test]
    fn sizes_are_decimal_and_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (92_004, "92 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (7_903_440, "7.9 MB"),
            (44_761_206, "44.8 MB"),
            (3_200_000_000, "3.2 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

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
