//! Writing results: buffered stdout, JSON, CSV, and lines.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::Path;
use std::sync::Arc;

use crate::failure::{Failure, Refused};
use crate::parts::Parts;
use crate::progress::Progress;
use crate::text::{Paint, steers};

/// Buffered standard output.
pub(crate) struct Out {
    inner: BufWriter<Screen>,
    /// True on a terminal: tables have borders, and streams are flushed line by line.
    pub(crate) terminal: bool,
    pub(crate) paint: Paint,
    /// The logs whose outputs are parts of one.
    pub(crate) parts: Arc<Parts>,
    /// Whether nothing was written yet.
    untouched: bool,
}

impl Out {
    pub(crate) fn new(terminal: bool, paint: Paint, progress: Progress, parts: Arc<Parts>) -> Self {
        let screen = Screen { stdout: io::stdout(), terminal, paint, cut: Vec::new(), progress };
        Self { inner: BufWriter::with_capacity(1 << 16, screen), terminal, paint, parts, untouched: true }
    }

    /// Ends a record of a stream: shown at once on a terminal, buffered otherwise.
    pub(crate) fn end_record(&mut self) -> io::Result<()> {
        if self.terminal { self.flush() } else { Ok(()) }
    }

    /// Writes `document` as JSON: indented on a terminal, on one line otherwise.
    pub(crate) fn json(&mut self, document: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
        if self.terminal {
            return Ok(serde_json::to_writer_pretty(self, document)?);
        }
        Ok(serde_json::to_writer(self, document)?)
    }

    /// Writes a whole document as JSON.
    pub(crate) fn document(&mut self, document: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
        self.json(document)?;
        self.write_all(b"\n")?;
        self.flush()
    }

    /// Writes the documents of several inputs as a list; a single document alone.
    pub(crate) fn documents(&mut self, documents: &[impl serde::Serialize], inputs: usize) -> io::Result<()> {
        match documents {
            [] if inputs == 1 => Ok(()),
            [document] if inputs == 1 => self.document(document),
            documents => self.document(documents),
        }
    }

    /// Writes one line of NDJSON. Of several logs, each line names its own.
    pub(crate) fn line(&mut self, object: &impl serde::Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(object)?;
        if let Some(file) = self.parts.key() {
            text.insert_str(1, &file);
        }
        text.push('\n');
        self.write_all(text.as_bytes())
    }

    /// Writes a document, which names its log, as one line of NDJSON.
    pub(crate) fn document_line(&mut self, document: &impl serde::Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut *self, document)?;
        self.write_all(b"\n")
    }

    /// Writes a table as CSV. Of several logs, the first column names them.
    pub(crate) fn csv<const N: usize>(
        self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Result<(), Failure> {
        let parts = Arc::clone(&self.parts);
        let name = parts.name();
        let name = name.as_deref();
        let mut csv = csv::Writer::from_writer(self);
        if parts.takes_head(&head)? {
            csv.write_record(name.map(|_| "file").into_iter().chain(head))?;
        }
        for row in rows {
            csv.write_record(name.into_iter().chain(row.iter().map(String::as_str)))?;
        }
        Ok(csv.flush()?)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if std::mem::take(&mut self.untouched)
            && let Some(before) = self.parts.before(self.paint)
        {
            self.inner.write_all(before.as_bytes()).map_err(refused)?;
        }
        self.inner.write_all(bytes).map_err(refused)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(refused)
    }
}

fn refused(error: io::Error) -> io::Error {
    Refused::by(Path::new(""), error)
}

/// Standard output; on a terminal, control characters from logs are escaped, whatever a command
/// writes.
struct Screen {
    stdout: Stdout,
    terminal: bool,
    paint: Paint,
    /// Bytes of a character that is not complete yet.
    cut: Vec<u8>,
    progress: Progress,
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.terminal {
            return self.stdout.write(bytes);
        }
        self.progress.end();
        self.cut.extend_from_slice(bytes);
        let whole = match std::str::from_utf8(&self.cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.cut.len(),
        };
        let rest = self.cut.split_off(whole);
        let text = std::mem::replace(&mut self.cut, rest);
        self.stdout.write_all(harmless(&String::from_utf8_lossy(&text), self.paint).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Returns `text` with control characters as JSON escapes. Our own colours stay.
fn harmless(text: &str, paint: Paint) -> Cow<'_, str> {
    let harmful = |c: char| c != '\n' && steers(c);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(harmful) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        if let Some(len) = paint.code_at(from) {
            let (code, after) = from.split_at(len);
            shown.push_str(code);
            rest = after;
        } else {
            let mut chars = from.chars();
            let _ = chars.next().map(|c| write!(shown, "\\u{:04x}", u32::from(c)));
            rest = chars.as_str();
        }
    }
    Cow::Owned(shown + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let text = "\x1b[1mfile\x1b[0m\n\ttab \x1b[2J\x1b]0;x\x07\r\u{9b}\u{202e}\u{7f}größe";
        let escaped = "\n\ttab \\u001b[2J\\u001b]0;x\\u0007\\u000d\\u009b\\u202e\\u007fgröße";
        assert_eq!(harmless(text, Paint(true)), format!("\x1b[1mfile\x1b[0m{escaped}"));
        assert_eq!(harmless(text, Paint(false)), format!("\\u001b[1mfile\\u001b[0m{escaped}"));
        assert_eq!(harmless("plain", Paint(false)), "plain");
    }
}
