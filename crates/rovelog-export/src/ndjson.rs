//! Writes records as NDJSON: one JSON object per line, in time order, with all topics in one
//! stream. `rovelog cat -f ndjson` prints the same lines.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rovelog::core::Fields;
use rovelog::core::internal::layout::{At, KeyCache, Leaf, Visit};
use rovelog::core::internal::memory;
use rovelog::core::internal::parallel::{BufferPool, Jobs, in_order};
use rovelog::{Field, LogReader, Record, Scalar, Select, TopicId, UtcOffset};

use crate::error::check_memory;
use crate::number::Numbers;
use crate::{ExportError, Exported, Loss};

/// Maximum number of records in a batch. A thread formats one batch at a time.
const MAX_BATCH_RECORDS: usize = 512;
/// Payload size in bytes of the records in a batch at which the batch ends.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// Expected size in bytes of the lines for each byte of payload.
const JSON_RATIO: usize = 16;

/// Writes the selected records. Returns the number of records that were written, and a loss for
/// each topic with records that could not be decoded.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write(
    log: &dyn LogReader,
    select: &Select,
    jobs: Jobs,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let utc = log.info().utc.as_ref();
    let names: Vec<String> =
        log.topics().iter().map(|topic| serde_json::Value::from(topic.name.as_str()).to_string()).collect();
    // After a buffer has been written to the output, it is used for another batch, so that memory
    // is not allocated for each batch.
    let spare: BufferPool<Vec<u8>> = BufferPool::default();
    let mut messages = 0;
    let mut undecodable = vec![0u64; log.topics().len()];
    check_memory(JSON_RATIO * MAX_BATCH_BYTES)?;
    in_order(
        jobs,
        Lines::default,
        |lines, records: Vec<Record<'_>>| {
            let (mut text, mut lost) = (spare.take(), Vec::new());
            for record in &records {
                let topic = record.topic.id.index();
                if lines.line(record, &names[topic], utc, &mut text).is_err() {
                    lost.push(topic);
                }
            }
            (text, records.len(), lost)
        },
        |push| {
            for_each_batch(log.intact_records(select), &mut |batch| {
                if let Some(record) = batch.last() {
                    progress(record.offset);
                }
                push(batch)
            })
        },
        |(mut text, count, lost)| {
            messages += (count - lost.len()) as u64;
            for topic in lost {
                undecodable[topic] += 1;
            }
            out.write_all(&text)?;
            text.clear();
            spare.put(text);
            Ok::<_, ExportError>(())
        },
    )?;
    let losses = log.topics().iter().zip(undecodable).filter(|(_, count)| *count > 0);
    let losses = losses.map(|(topic, count)| Loss::undecodable(topic, count)).collect();
    Ok(Exported { messages, losses, notes: Vec::new() })
}

/// Groups records into batches and passes each batch to `push`. A batch has a few hundred records,
/// or fewer if the records are large.
///
/// # Errors
/// Returns an error if the log cannot be read, or `push` fails.
#[doc(hidden)]
pub fn for_each_batch<'a, E: From<rovelog::Error>>(
    records: impl Iterator<Item = rovelog::Result<Record<'a>>>,
    push: &mut dyn FnMut(Vec<Record<'a>>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut batch, mut bytes) = (Vec::with_capacity(MAX_BATCH_RECORDS), 0);
    for record in records {
        let record = match record {
            Ok(record) => record,
            // The records before the error are complete and must not be lost.
            Err(error) => return push(batch).and(Err(error.into())),
        };
        bytes += record.payload.len();
        batch.push(record);
        if batch.len() == MAX_BATCH_RECORDS || bytes >= MAX_BATCH_BYTES {
            if bytes > MAX_BATCH_BYTES {
                memory::check(JSON_RATIO * bytes).map_err(|error| rovelog::Error::io("rovelog", error))?;
            }
            push(std::mem::replace(&mut batch, Vec::with_capacity(MAX_BATCH_RECORDS)))?;
            bytes = 0;
        }
    }
    push(batch)
}

/// The time of a record, as it is written to the output.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Time<'a> {
    /// The time is unknown.
    None,
    /// Unix time in nanoseconds.
    Unix(i64),
    /// A text that already contains the formatted time.
    Text(&'a str),
}

/// Formats records as lines of JSON. Each thread uses its own formatter for all of its records.
#[doc(hidden)]
#[derive(Default)]
pub struct Lines {
    numbers: Numbers,
    /// For each record layout, the names of the fields as escaped JSON. Without this cache, the
    /// names would be escaped again for each record.
    keys: KeyCache<Box<[u8]>>,
}

impl Lines {
    /// Writes the line of a record, with the Unix time if it is known.
    ///
    /// # Errors
    /// Returns an error if the record cannot be decoded. In this case, nothing is written.
    fn line(
        &mut self,
        record: &Record<'_>,
        topic: &str,
        utc: Option<&UtcOffset>,
        out: &mut Vec<u8>,
    ) -> rovelog::Result<()> {
        let start = out.len();
        let time = record.time.and_then(|time| time.to_unix(utc));
        let time = time.map_or(Time::None, |time| Time::Unix(time.nanos));
        // The start of the line is written before the record is decoded, so that the decoded data
        // does not have to be copied. If decoding fails, the start of the line is removed again.
        self.head(time, record.time.map(|time| time.nanos), topic, record, out);
        let written = record.fields().and_then(|fields| self.data(record.topic.id, &fields, out));
        match written {
            Ok(()) => out.extend_from_slice(b"}\n"),
            Err(_) => out.truncate(start),
        }
        written
    }

    /// Writes a line up to the colon before the fields of the record. `topic` is the topic name as
    /// a JSON string.
    pub fn head(
        &mut self,
        time: Time<'_>,
        t_ns: Option<i64>,
        topic: &str,
        record: &Record<'_>,
        out: &mut Vec<u8>,
    ) {
        match time {
            Time::None => out.extend_from_slice(b"{\"time\":null"),
            Time::Unix(nanos) => {
                out.extend_from_slice(b"{\"time\":\"");
                self.numbers.short_date(nanos, out);
                out.push(b'"');
            }
            Time::Text(text) => {
                out.extend_from_slice(b"{\"time\":\"");
                out.extend_from_slice(text.as_bytes());
                out.push(b'"');
            }
        }
        match t_ns {
            // The number is written as a string, because it exceeds the precision of numbers in
            // JavaScript.
            Some(nanos) => {
                out.extend_from_slice(b",\"t_ns\":\"");
                self.numbers.integer(nanos, out);
                out.push(b'"');
            }
            None => out.extend_from_slice(b",\"t_ns\":null"),
        }
        out.extend_from_slice(b",\"topic\":");
        out.extend_from_slice(topic.as_bytes());
        out.extend_from_slice(b",\"seq\":");
        self.numbers.integer(record.seq, out);
        out.extend_from_slice(b",\"offset\":");
        self.numbers.integer(record.offset, out);
        out.extend_from_slice(b",\"data\":");
    }

    /// Writes the fields of a record as a JSON object.
    ///
    /// # Errors
    /// Returns an error if the record cannot be decoded. In this case, nothing is written.
    pub fn data(&mut self, topic: TopicId, fields: &Fields<'_>, out: &mut Vec<u8>) -> rovelog::Result<()> {
        let start = out.len();
        out.push(b'{');
        let mut json = Json { numbers: &mut self.numbers, out };
        let visited = self.keys.visit(topic, fields, &mut key, &mut json);
        if visited.is_ok() {
            out.push(b'}');
        } else {
            out.truncate(start);
        }
        visited
    }
}

/// Returns the name of a field as JSON, with a colon after it. A comma precedes the name, unless
/// the field is the first field.
fn key(number: usize, field: &Field) -> Box<[u8]> {
    let comma = if number == 0 { "" } else { "," };
    format!("{comma}{}:", serde_json::Value::from(&*field.name)).into_bytes().into()
}

/// Writes the fields of a record as JSON while the fields are visited.
struct Json<'a> {
    numbers: &'a mut Numbers,
    out: &'a mut Vec<u8>,
}

impl Json<'_> {
    fn start(&mut self, key: &[u8], at: At) {
        match at {
            At::Field => self.out.extend_from_slice(key),
            At::First => {}
            At::Next => self.out.push(b','),
        }
    }

    /// Writes a number. 64-bit integers become strings, because JavaScript and many JSON parsers
    /// read numbers as 64-bit floats. NaN and infinities become strings, because JSON has no such
    /// numbers.
    #[inline]
    fn number(&mut self, scalar: Scalar, bytes: &[u8]) {
        let is_quoted = match scalar {
            Scalar::Int64 | Scalar::UInt64 => true,
            Scalar::Float32 => {
                bytes.first_chunk().is_some_and(|bytes| !f32::from_le_bytes(*bytes).is_finite())
            }
            Scalar::Float64 => {
                bytes.first_chunk().is_some_and(|bytes| !f64::from_le_bytes(*bytes).is_finite())
            }
            _ => false,
        };
        if is_quoted {
            self.out.push(b'"');
        }
        self.numbers.scalar(scalar, bytes, self.out);
        if is_quoted {
            self.out.push(b'"');
        }
    }
}

impl Visit<Box<[u8]>> for Json<'_> {
    #[inline]
    fn scalar(&mut self, key: &Box<[u8]>, scalar: Scalar, bytes: &[u8]) {
        self.out.extend_from_slice(key);
        self.number(scalar, bytes);
    }

    fn scalars(&mut self, key: &Box<[u8]>, scalar: Scalar, bytes: &[u8]) {
        self.out.extend_from_slice(key);
        self.out.push(b'[');
        for (i, bytes) in bytes.chunks_exact(scalar.size()).enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            self.number(scalar, bytes);
        }
        self.out.push(b']');
    }

    fn leaf(&mut self, key: &Box<[u8]>, at: At, leaf: Leaf<'_>) {
        self.start(key, at);
        match leaf {
            Leaf::Text(text) => serde_json::to_writer(&mut *self.out, &*text).expect("text is JSON"),
            Leaf::Bytes(bytes) => {
                self.out.push(b'"');
                self.out.extend_from_slice(BASE64.encode(bytes).as_bytes());
                self.out.push(b'"');
            }
            Leaf::Null => self.out.extend_from_slice(b"null"),
            Leaf::Pair(scalar, bytes) => {
                let (sec, nsec) = bytes.split_at(4);
                self.out.extend_from_slice(b"{\"sec\":");
                self.number(scalar, sec);
                self.out.extend_from_slice(b",\"nsec\":");
                self.number(scalar, nsec);
                self.out.push(b'}');
            }
        }
    }

    fn open(&mut self, key: &Box<[u8]>, at: At) {
        self.start(key, at);
        self.out.push(b'{');
    }

    fn close(&mut self, _: &Box<[u8]>, _: At) {
        self.out.push(b'}');
    }

    fn list(&mut self, key: &Box<[u8]>, _: usize) {
        self.out.extend_from_slice(key);
        self.out.push(b'[');
    }

    fn end_list(&mut self, _: &Box<[u8]>) {
        self.out.push(b']');
    }
}
