//! Writing records as lines of text, JSON objects or CSV rows. Memory does not grow with the log.

mod leaves;
mod plain;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rovelog::core::parallel::{self, Spare};
use rovelog::{Record, Schema, Topic, Value};
use rovelog_export::ndjson;

use crate::context::{Context, Format};
use crate::failure::{Failure, Status};
use crate::output::Out;
use crate::select::{FieldArgs, Keep};
use crate::text::{escape, width};
use crate::times::Times;
use leaves::{Cell, cells, columns, count, flatten, flatten_under};
use plain::entry;
pub(crate) use plain::{cell, plain};

/// Output of one topic's records, decided at its first record.
enum Plan {
    Unresolved,
    /// No field is selected.
    Skip,
    Write(Layout),
}

struct Layout {
    keep: Keep,
    /// The topic's name as the format needs it: JSON with its quotes, or text.
    name: String,
    /// Width of the name in columns.
    width: usize,
    /// Fields and number of values per record, if the schema tells them.
    schema: Option<Arc<Schema>>,
    leaves: Option<usize>,
}

/// Writes records in one format.
pub(crate) struct Records<'a> {
    context: &'a Context,
    file: &'a Path,
    out: Out,
    render: Render<'a>,
    /// True after the first record.
    started: bool,
    status: Status,
}

impl<'a> Records<'a> {
    pub(crate) fn new(
        context: &'a Context,
        format: Format,
        fields: &'a FieldArgs,
        times: &Times,
        file: &'a Path,
    ) -> Result<Self, Failure> {
        let mut out = context.out();
        if format == Format::Json {
            out.write_all(b"{\"schema\":\"rovelog.cat/1\",\"file\":")?;
            out.json(&file.to_string_lossy())?;
            out.write_all(b",\"records\":[")?;
        }
        let render = Render::new(format, fields, times.clone(), context.global.strict, 0);
        Ok(Self { context, file, out, render, started: false, status: Status::Done })
    }

    /// Widens the column of topics for the name of `topic`.
    pub(crate) fn expect(&mut self, topic: &Topic) {
        self.render.width = self.render.width.max(width(&escape(&topic.name)));
    }

    /// Writes the first row of CSV, which depends on `topic`; nothing in other formats.
    pub(crate) fn head(&mut self, topic: &Topic) -> Result<(), Failure> {
        if self.render.format != Format::Csv {
            return Ok(());
        }
        let Some(schema) = &topic.schema else {
            return Err(Failure::failed(format!("the records of {} cannot be decoded", topic.name))
                .next("for the reason: rovelog check FILE")
                .at(self.file));
        };
        let keep = self.render.fields.keep(Some(schema)).unwrap_or(Keep::All);
        let mut taken = BTreeSet::from(["time", "t_ns"].map(str::to_owned));
        let mut csv = csv::Writer::from_writer(&mut self.out);
        csv.write_field("time")?;
        csv.write_field("t_ns")?;
        for name in columns(schema, &keep) {
            csv.write_field(rovelog_export::table::free_name(&mut taken, &name))?;
        }
        csv.write_record(None::<&[u8]>)?;
        Ok(csv.flush()?)
    }

    /// Writes one record.
    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let rendered = self.render.records(std::slice::from_ref(record), Vec::new())?;
        self.put(rendered, &Spare::default())
    }

    /// Writes all records of a log, with several threads.
    pub(crate) fn write_all<'l>(
        &mut self,
        records: impl Iterator<Item = rovelog::Result<Record<'l>>>,
    ) -> Result<(), Failure> {
        let (context, render) = (self.context, self.render.again());
        let spare: Spare<Vec<u8>> = Spare::default();
        parallel::in_order(
            context.jobs(),
            || render.again(),
            |render, records: Vec<Record<'_>>| render.records(&records, spare.take()),
            |push| {
                ndjson::batches(records, &mut |batch| {
                    if let Some(record) = batch.last() {
                        context.progress.at(record.offset);
                    }
                    push(batch)
                })
            },
            |rendered| self.put(rendered?, &spare),
        )
    }

    /// Writes rendered records, and what there is to say about them.
    fn put(&mut self, rendered: Rendered, spare: &Spare<Vec<u8>>) -> Result<(), Failure> {
        let Rendered { mut text, lost, raw, failure } = rendered;
        let comma = if self.render.format == Format::Json && !self.started { COMMA.len() } else { 0 };
        self.started |= !text.is_empty();
        self.out.write_all(text.get(comma..).unwrap_or_default())?;
        self.out.end_record()?;
        text.clear();
        spare.keep(text);
        for text in lost {
            self.context.notices.warn("records cannot be decoded", &text);
            self.status = Status::Lost;
        }
        for text in raw {
            self.context.notices.warn("records with raw bytes", &text);
            self.status = Status::Lost;
        }
        match failure {
            Some(text) => Err(Failure::failed(text).at(self.file)),
            None => Ok(()),
        }
    }

    /// Ends the output. Returns whether data was lost.
    pub(crate) fn finish(mut self) -> Result<Status, Failure> {
        if self.render.format == Format::Json {
            self.out.write_all(b"]}\n")?;
        }
        self.out.flush()?;
        Ok(self.status)
    }
}

/// Text between two records of a JSON document.
const COMMA: &[u8] = b",\n";

/// Records as text.
#[derive(Default)]
struct Rendered {
    text: Vec<u8>,
    /// Warnings about records that cannot be decoded, and records with bytes.
    lost: Vec<String>,
    raw: Vec<String>,
    /// Why nothing more is written.
    failure: Option<String>,
}

/// Makes text of records; one for each thread.
struct Render<'a> {
    format: Format,
    fields: &'a FieldArgs,
    times: Times,
    /// True if a record that cannot be decoded is a failure.
    strict: bool,
    /// Width of the column of topics, in text.
    width: usize,
    /// Plan by topic.
    plans: Vec<Plan>,
    lines: ndjson::Lines,
    line: String,
}

impl<'a> Render<'a> {
    fn new(format: Format, fields: &'a FieldArgs, times: Times, strict: bool, width: usize) -> Self {
        let (lines, line) = (ndjson::Lines::default(), String::new());
        Self { format, fields, times, strict, width, plans: Vec::new(), lines, line }
    }

    /// Returns the same for another thread.
    fn again(&self) -> Self {
        Self::new(self.format, self.fields, self.times.clone(), self.strict, self.width)
    }

    fn records(&mut self, records: &[Record<'_>], text: Vec<u8>) -> Result<Rendered, Failure> {
        let mut rendered = Rendered { text, ..Rendered::default() };
        if self.format == Format::Csv {
            let mut csv = csv::Writer::from_writer(std::mem::take(&mut rendered.text));
            for record in records {
                let done = self.row(record, &mut csv, &mut rendered.raw)?;
                if self.note(record, done, &mut rendered) {
                    break;
                }
            }
            csv.flush()?;
            rendered.text = csv.into_inner().map_err(|error| Failure::from(error.into_error()))?;
            return Ok(rendered);
        }
        for record in records {
            let start = rendered.text.len();
            let done = self.record(record, &mut rendered.text)?;
            if done.is_err() {
                rendered.text.truncate(start);
            }
            if self.note(record, done, &mut rendered) {
                break;
            }
        }
        Ok(rendered)
    }

    /// Notes why a record could not be decoded. Returns whether that is the end.
    fn note(&self, record: &Record<'_>, done: Result<(), String>, rendered: &mut Rendered) -> bool {
        let Err(why) = done else { return false };
        let text = format!(
            "record {} of {} (byte {}) cannot be decoded: {why}",
            record.seq, record.topic.name, record.offset
        );
        if self.strict {
            rendered.failure = Some(text);
            return true;
        }
        rendered.lost.push(text);
        false
    }

    /// Writes a record as text or JSON; returns why it cannot be decoded.
    fn record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<Result<(), String>, Failure> {
        self.resolve(record.topic)?;
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(Ok(())) };
        if self.format != Format::Text {
            if self.format == Format::Json {
                out.extend_from_slice(COMMA);
            }
            self.times.head(record, &plan.name, &mut self.lines, out);
            // Records with all of their fields are written straight from their bytes.
            if plan.is_whole(record) {
                if let Err(error) = self.lines.data(record, out) {
                    return Ok(Err(error.to_string()));
                }
            } else {
                let (value, schema) = match plan.value(record) {
                    Ok(value) => value,
                    Err(why) => return Ok(Err(why)),
                };
                match (&plan.keep, &value) {
                    (Keep::Leaves(_), Value::Struct(fields)) => some_fields(fields, schema, &plan.keep, out)?,
                    _ => serde_json::to_writer(&mut *out, &value)?,
                }
            }
            out.extend_from_slice(if self.format == Format::Ndjson { b"}\n" } else { b"}" });
            return Ok(Ok(()));
        }
        let (value, schema) = match plan.value(record) {
            Ok(value) => value,
            Err(why) => return Ok(Err(why)),
        };
        self.line.clear();
        self.times.push_text(record.time, &mut self.line);
        self.line.push_str("  ");
        self.line.push_str(&plan.name);
        let blanks = self.width.saturating_sub(plan.width) + 2;
        self.line.extend(std::iter::repeat_n(' ', blanks));
        text(&value, schema, &plan.keep, &mut self.line);
        self.line.push('\n');
        out.extend_from_slice(self.line.as_bytes());
        Ok(Ok(()))
    }

    /// Writes a record as a row of CSV; returns why it cannot be decoded.
    fn row(
        &mut self,
        record: &Record<'_>,
        csv: &mut csv::Writer<Vec<u8>>,
        raw: &mut Vec<String>,
    ) -> Result<Result<(), String>, Failure> {
        self.resolve(record.topic)?;
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(Ok(())) };
        let (value, schema) = match plan.value(record) {
            Ok(value) => value,
            Err(why) => return Ok(Err(why)),
        };
        self.line.clear();
        if row(csv, record, &value, schema, plan, &self.times, &mut self.line)? {
            raw.push(format!("{} contains raw bytes, which CSV cannot represent", record.topic.name));
        }
        Ok(Ok(()))
    }

    /// Makes the plan of a topic.
    fn resolve(&mut self, topic: &Topic) -> Result<(), Failure> {
        let index = topic.id.index();
        if self.plans.len() <= index {
            self.plans.resize_with(index + 1, || Plan::Unresolved);
        }
        if !matches!(self.plans[index], Plan::Unresolved) {
            return Ok(());
        }
        self.plans[index] = match self.fields.keep(topic.schema.as_deref()) {
            None => Plan::Skip,
            Some(keep) => {
                let name = match self.format {
                    Format::Text => escape(&topic.name).into_owned(),
                    _ => serde_json::to_string(&topic.name)?,
                };
                let width = width(&name);
                let schema = topic.schema.clone();
                let leaves = schema.as_deref().map(|schema| crate::select::leaves(schema).len());
                Plan::Write(Layout { keep, name, width, schema, leaves })
            }
        };
        Ok(())
    }
}

impl Layout {
    /// Returns whether all fields are written, and the record has just those of the schema.
    fn is_whole(&self, record: &Record<'_>) -> bool {
        let is_own = |schema| record.layout().is_some_and(|layout| Arc::ptr_eq(layout.schema(), schema));
        self.keep == Keep::All && self.schema.as_ref().is_some_and(is_own)
    }

    /// Returns the value of a record with its schema, if it has just the fields of that; or why it
    /// cannot be decoded.
    fn value(&self, record: &Record<'_>) -> Result<(Value, Option<&Schema>), String> {
        let value = record.value().map_err(|error| error.to_string())?;
        // Records that do not fit an inferred definition are written as bytes.
        let schema = self.schema.as_deref().filter(|schema| !is_raw(&value, schema));
        if self.leaves.is_some_and(|leaves| schema.is_some() && leaves != count(&value, schema)) {
            return Err("its fields differ from its schema".to_owned());
        }
        Ok((value, schema))
    }
}

/// Returns whether a value is the bytes of a record that does not fit its schema.
fn is_raw(value: &Value, schema: &Schema) -> bool {
    let Value::Struct(fields) = value else { return false };
    matches!(&fields[..], [(name, Value::Bytes(_))] if &**name == "raw")
        && !matches!(&schema.fields[..], [field] if &*field.name == "raw")
}

/// Writes `time=1 q=[1.0, 0.0] pos={x=1.0}`, or single leaves by their flat names if only some are
/// selected.
fn text(value: &Value, schema: Option<&Schema>, keep: &Keep, line: &mut String) {
    let start = line.len();
    if *keep == Keep::All {
        let Value::Struct(fields) = value else { return plain(value, line) };
        for (name, value) in fields {
            entry(if line.len() > start { " " } else { "" }, name, value, line);
        }
        return;
    }
    let mut place = 0;
    flatten(value, schema, &mut |name, value| {
        if keep.leaf(place) {
            entry(if line.len() > start { " " } else { "" }, name, value, line);
        }
        place += 1;
    });
}

/// Writes the selected fields: whole fields unchanged, single leaves of others by their flat names.
fn some_fields(
    fields: &[(Arc<str>, Value)],
    schema: Option<&Schema>,
    keep: &Keep,
    line: &mut Vec<u8>,
) -> Result<(), Failure> {
    let mut place = 0;
    let mut separator = b'{';
    let mut entry = |name: &str, value: &Value| -> Result<(), Failure> {
        line.push(separator);
        separator = b',';
        serde_json::to_writer(&mut *line, name)?;
        line.push(b':');
        Ok(serde_json::to_writer(&mut *line, value)?)
    };
    for (number, (name, value)) in fields.iter().enumerate() {
        let ty = schema.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
        let mut leaves = Vec::new();
        flatten_under(&mut name.to_string(), value, ty, &mut |name, value| {
            leaves.push((name.to_owned(), value.clone()));
        });
        let inside = place..place + leaves.len();
        place = inside.end;
        if !inside.is_empty() && inside.clone().all(|place| keep.leaf(place)) {
            entry(name, value)?;
            continue;
        }
        for (place, (name, value)) in inside.zip(&leaves) {
            if keep.leaf(place) {
                entry(name, value)?;
            }
        }
    }
    line.extend_from_slice(if separator == b'{' { b"{}" } else { b"}" });
    Ok(())
}

/// Writes a row of CSV. Returns whether it had bytes, which are left out.
fn row(
    csv: &mut csv::Writer<Vec<u8>>,
    record: &Record<'_>,
    value: &Value,
    schema: Option<&Schema>,
    plan: &Layout,
    times: &Times,
    buffer: &mut String,
) -> Result<bool, Failure> {
    times.push_csv(record.time, buffer);
    csv.write_field(&buffer)?;
    buffer.clear();
    if let Some(nanos) = times.t_ns(record.time) {
        let _ = write!(buffer, "{nanos}");
    }
    csv.write_field(&buffer)?;
    let mut place = 0;
    let mut bytes = false;
    cells(value, schema, &mut |leaf, width| {
        if (place..place + width).any(|place| plan.keep.leaf(place)) {
            buffer.clear();
            match leaf {
                Cell::Value(list @ Value::List(_)) => buffer.push_str(&list.to_json()),
                Cell::Value(value) => {
                    if !cell(value, buffer) {
                        buffer.clear();
                        bytes = true;
                    }
                }
                Cell::Time(nanos) => times.push_date(nanos, buffer),
                Cell::Duration(nanos) => {
                    let _ = write!(buffer, "{nanos}");
                }
            }
            csv.write_field(&buffer)?;
        }
        place += width;
        Ok::<(), csv::Error>(())
    })?;
    csv.write_record(None::<&[u8]>)?;
    Ok(bytes)
}
