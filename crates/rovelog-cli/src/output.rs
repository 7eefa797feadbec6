//! Writes results to stdout as JSON, NDJSON, CSV or text. On a terminal, control characters are
//! escaped.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::failure::{Failure, OutputError};
use crate::format::Format;
use crate::parts::Parts;
use crate::progress::Progress;
use crate::text::{Paint, is_terminal_control};

/// Buffered writer to stdout.
pub(crate) struct Out {
    inner: BufWriter<Screen>,
    /// True if stdout is a terminal. On a terminal, tables have borders, and each record of a
    /// stream is shown immediately.
    pub(crate) terminal: bool,
    /// Number of columns of the terminal, to which tables are fitted. `None` if they are printed in
    /// full width.
    pub(crate) columns: Option<usize>,
    pub(crate) paint: Paint,
    /// Separates the outputs of several logs.
    pub(crate) parts: Arc<Parts>,
    /// True if nothing has been written to this `Out` yet.
    is_empty: bool,
}

impl Out {
    pub(crate) fn new(
        terminal: bool,
        columns: Option<usize>,
        paint: Paint,
        progress: Progress,
        parts: Arc<Parts>,
    ) -> Self {
        let screen = Screen { stdout: io::stdout(), terminal, paint, incomplete: Vec::new(), progress };
        let inner = BufWriter::with_capacity(1 << 16, screen);
        Self { inner, terminal, columns, paint, parts, is_empty: true }
    }

    /// Ends a record of a stream. On a terminal, the buffer is flushed, so that the user sees the
    /// record.
    pub(crate) fn end_record(&mut self) -> io::Result<()> {
        if self.terminal { self.flush() } else { Ok(()) }
    }

    /// Writes `document` as JSON. It is indented on a terminal, and on one line otherwise.
    pub(crate) fn json(&mut self, document: &(impl Serialize + ?Sized)) -> io::Result<()> {
        if self.terminal {
            return Ok(serde_json::to_writer_pretty(self, document)?);
        }
        Ok(serde_json::to_writer(self, document)?)
    }

    /// Writes `document` as JSON, followed by a line break, and flushes the output.
    pub(crate) fn document(&mut self, document: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.json(document)?;
        self.write_all(b"\n")?;
        self.flush()
    }

    /// Writes the JSON documents of several logs as an array. If the command reads a single log,
    /// its document is written without an array.
    pub(crate) fn documents(&mut self, documents: &[impl Serialize], inputs: usize) -> io::Result<()> {
        match documents {
            [] if inputs == 1 => Ok(()),
            [document] if inputs == 1 => self.document(document),
            documents => self.document(documents),
        }
    }

    /// Writes `object` as one line of NDJSON. If the command reads several logs, the name of the
    /// log is inserted as the first key.
    pub(crate) fn line(&mut self, object: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(object)?;
        if let Some(file) = self.parts.key() {
            text.insert_str(1, &file);
        }
        text.push('\n');
        self.write_all(text.as_bytes())?;
        self.end_record()
    }

    /// Writes the `rows` of the log `file` as NDJSON, or as one JSON document whose key `key` contains
    /// the rows.
    pub(crate) fn list<T: Serialize>(
        &mut self,
        format: Format,
        (schema, key): (&str, &str),
        file: &str,
        rows: impl IntoIterator<Item = T>,
    ) -> io::Result<()> {
        let mut rows = rows.into_iter();
        if format == Format::Ndjson {
            return rows.try_for_each(|row| self.line(&row));
        }
        self.document(&ListDoc { schema, file, key, rows: rows.collect::<Vec<T>>() })
    }

    /// Writes `document` as one line of NDJSON. The name of the log is not inserted, because the
    /// document already contains it.
    pub(crate) fn document_line(&mut self, document: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self, document)?;
        self.write_all(b"\n")
    }

    /// Writes a table as CSV. If the command reads several logs, the name of the log becomes the
    /// first column.
    pub(crate) fn csv<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: impl IntoIterator<Item = impl Serialize>,
    ) -> Result<(), Failure> {
        let parts = Arc::clone(&self.parts);
        let name = parts.name();
        let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(self);
        if parts.needs_header(&head)? {
            csv.write_record(name.as_ref().map(|_| "file").into_iter().chain(head))?;
        }
        for row in rows {
            match &name {
                Some(name) => csv.serialize((name, row))?,
                None => csv.serialize(row)?,
            }
        }
        Ok(csv.flush()?)
    }
}

/// JSON document that contains a list.
struct ListDoc<'a, T> {
    schema: &'a str,
    file: &'a str,
    /// Key of the list.
    key: &'a str,
    rows: Vec<T>,
}

impl<T: Serialize> Serialize for ListDoc<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("schema", self.schema)?;
        map.serialize_entry("file", self.file)?;
        map.serialize_entry(self.key, &self.rows)?;
        map.end()
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.is_empty)
            && let Some(before) = self.parts.separator(self.paint)
        {
            // The separator between logs is written only before the first byte of a log. So a log
            // without output has no heading.
            self.inner.write_all(before.as_bytes()).map_err(refused)?;
        }
        self.inner.write_all(bytes).map_err(refused)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(refused)
    }
}

fn refused(error: io::Error) -> io::Error {
    OutputError::wrap(Path::new(""), error)
}

/// Unbuffered stdout. On a terminal, control characters are escaped. Otherwise a text in a log
/// could move the cursor or change the title of the window.
struct Screen {
    stdout: Stdout,
    terminal: bool,
    paint: Paint,
    /// First bytes of a UTF-8 character whose remaining bytes have not been written yet.
    incomplete: Vec<u8>,
    progress: Progress,
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.stdout.write(bytes);
        }
        // The progress bar is on the same terminal and would be mixed with the results.
        self.progress.end();
        self.incomplete.extend_from_slice(bytes);
        // The last character in the buffer may be incomplete. Its bytes are kept for the next
        // write.
        let complete = match std::str::from_utf8(&self.incomplete) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.incomplete.len(),
        };
        let incomplete = self.incomplete.split_off(complete);
        let text = std::mem::replace(&mut self.incomplete, incomplete);
        self.stdout.write_all(escape_controls(&String::from_utf8_lossy(&text), self.paint).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Replaces control characters by JSON escapes such as `\u001b`. Color codes written by this
/// program are kept.
fn escape_controls(text: &str, paint: Paint) -> Cow<'_, str> {
    // Line breaks are a part of the output and are kept. `is_terminal_control` is false for tabs,
    // so they are kept too.
    let is_harmful = |c: char| c != '\n' && is_terminal_control(c);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut remaining = text;
    while let Some(at) = remaining.find(is_harmful) {
        let (before, from) = remaining.split_at(at);
        shown.push_str(before);
        if let Some(len) = paint.code_at(from) {
            let (code, after) = from.split_at(len);
            shown.push_str(code);
            remaining = after;
        } else {
            let mut chars = from.chars();
            let _ = chars.next().map(|c| write!(shown, "\\u{:04x}", u32::from(c)));
            remaining = chars.as_str();
        }
    }
    Cow::Owned(shown + remaining)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_color_codes_reach_a_terminal() {
        let text = "\x1b[1mfile\x1b[0m\n\ttab \x1b[2J\x1b]0;x\x07\r\u{9b}\u{202e}\u{7f}größe";
        let escaped = "\n\ttab \\u001b[2J\\u001b]0;x\\u0007\\u000d\\u009b\\u202e\\u007fgröße";
        assert_eq!(escape_controls(text, Paint(true)), format!("\x1b[1mfile\x1b[0m{escaped}"));
        assert_eq!(escape_controls(text, Paint(false)), format!("\\u001b[1mfile\\u001b[0m{escaped}"));
        assert_eq!(escape_controls("plain", Paint(false)), "plain");
    }
}
