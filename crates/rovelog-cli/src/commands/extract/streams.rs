//! Files of the video and audio streams of a topic.

use std::io::Write as _;

use rovelog_export::stream::Payload;
use serde::Serialize;

use super::index::{FileFacts, Row};
use super::{Extraction, What};
use crate::failure::Failure;
use crate::outfile::OutFile;

/// Streams of one topic. A topic has more than one stream only if its format changes.
pub(super) struct Streams {
    /// Name of the topic in file names.
    name: String,
    files: Vec<StreamFile>,
}

/// File of a stream, and the table that lists its parts.
struct StreamFile {
    format: &'static str,
    path: String,
    /// Row of `index.csv` for the first part.
    first: Row,
    out: OutFile,
    table: csv::Writer<OutFile>,
    /// Size in bytes of all parts so far.
    len: u64,
}

/// Row of the table of a stream.
#[derive(Serialize)]
struct Part {
    /// Time of the record in nanoseconds.
    t_ns: i64,
    /// Field `header.stamp` of the message in nanoseconds.
    stamp_ns: Option<i64>,
    /// Offset of the part in the file of the stream.
    offset: u64,
    /// Size in bytes of the part.
    length: usize,
}

impl Streams {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), files: Vec::new() }
    }

    /// Appends a part to the stream in its format. `row` describes the message of the part.
    pub(super) fn append(
        &mut self,
        done: &Extraction<'_>,
        payload: Payload<'_>,
        row: &Row,
    ) -> Result<(), Failure> {
        let found = self.files.iter().position(|file| payload.continues(file.format));
        let at = found.unwrap_or(self.files.len());
        if found.is_none() {
            let path = format!("streams/{}.{}", self.name, payload.extension);
            self.files.push(StreamFile {
                format: payload.extension,
                out: done.create(&path)?,
                table: csv::Writer::from_writer(done.create(&format!("{path}.csv"))?),
                path,
                first: row.clone(),
                len: 0,
            });
        }
        let file = &mut self.files[at];
        let length = payload.bytes.len();
        file.out.write_all(payload.bytes)?;
        file.table.serialize(Part { t_ns: row.t_ns, stamp_ns: row.stamp_ns, offset: file.len, length })?;
        file.len += length as u64;
        Ok(())
    }

    /// Completes all files and lists them in `index.csv`.
    pub(super) fn finish(self, done: &mut Extraction<'_>) -> Result<(), Failure> {
        for StreamFile { format, path, first, out, table, .. } in self.files {
            out.finish()?;
            table.into_inner().map_err(csv::IntoInnerError::into_error)?.finish()?;
            for (file, encoding) in [(path.clone(), format), (format!("{path}.csv"), "csv")] {
                let file = FileFacts { file, encoding: encoding.into(), ..FileFacts::default() };
                done.rows.push(Row { file, ..first.clone() });
            }
            done.count(What::Streams, 1);
        }
        Ok(())
    }
}
