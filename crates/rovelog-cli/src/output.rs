//! Writing results: stdout behind a buffer, as JSON, as CSV, and line by line.

use std::io::{self, BufWriter, Stdout, Write};

use crate::failure::Failure;
use crate::text::{Paint, steers};

/// Standard output behind a large buffer.
pub(crate) struct Out {
    inner: BufWriter<Stdout>,
    /// Somebody watches: tables have borders, and streams are flushed line by line.
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

    /// The documents of several inputs; where there was one input, its document alone.
    pub(crate) fn documents(&mut self, documents: &[impl serde::Serialize], inputs: usize) -> io::Result<()> {
        match documents {
            [] if inputs == 1 => Ok(()),
            [document] if inputs == 1 => self.document(document),
            documents => self.document(documents),
        }
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
