//! Writing records as lines of text, JSON objects or CSV rows. Memory does not grow with the log.

mod derived;
mod leaves;
mod plain;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rovelog::{Field, Record, Schema, Topic, Value};
use rovelog_export::ndjson;

use crate::context::{Context, Format};
use crate::failure::{Failure, Status};
use crate::output::Out;
use crate::select::{FieldArgs, Keep};
use crate::text::{escape, width};
use crate::times::Times;
pub(crate) use derived::Derived;
use leaves::{Cell, cells, columns, count, flatten, flatten_under};
use plain::entry;
pub(crate) use plain::{cell, plain};

/// Destination of records.
enum Sink {
    Plain(Out),
    Csv(Box<csv::Writer<Out>>),
}

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
    format: Format,
    fields: &'a FieldArgs,
    derived: Derived<'a>,
    times: &'a Times,
    file: &'a Path,
    /// The log, if there are several, and its key in NDJSON.
    log: Option<String>,
    key: Option<String>,
    sink: Sink,
    /// Plan by topic.
    plans: Vec<Plan>,
    /// Width of the column of topics, in text.
    width: usize,
    written: u64,
    status: Status,
    line: String,
    object: Vec<u8>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(
        context: &'a Context,
        format: Format,
        fields: &'a FieldArgs,
        times: &'a Times,
        file: &'a Path,
    ) -> Result<Self, Failure> {
        let mut out = context.out();
        let sink = match format {
            Format::Csv => {
                Sink::Csv(Box::new(csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out)))
            }
            Format::Json => {
                out.write_all(b"{\"schema\":\"rovelog.cat/1\",\"file\":")?;
                out.json(&file.to_string_lossy())?;
                out.write_all(b",\"records\":[")?;
                Sink::Plain(out)
            }
            Format::Text | Format::Ndjson | Format::Qgc | Format::Octave => Sink::Plain(out),
        };
        Ok(Self {
            context,
            format,
            fields,
            derived: Derived::default(),
            times,
            file,
            log: context.parts.name(),
            key: context.parts.key(),
            sink,
            plans: Vec::new(),
            width: 0,
            written: 0,
            status: Status::Done,
            line: String::new(),
            object: Vec::new(),
        })
    }

    /// Adds further fields.
    pub(crate) fn with_derived(mut self, derived: Derived<'a>) -> Self {
        self.derived = derived;
        self
    }

    /// Widens the column of topics for the name of `topic`.
    pub(crate) fn expect(&mut self, topic: &Topic) {
        self.width = self.width.max(width(&escape(&topic.name)));
    }

    /// Writes the first row of CSV, which depends on `topic`; nothing in other formats.
    pub(crate) fn head(&mut self, topic: &Topic) -> Result<(), Failure> {
        if self.format != Format::Csv {
            return Ok(());
        }
        let Some(schema) = &topic.schema else {
            return Err(Failure::failed(format!("the records of {} cannot be decoded", topic.name))
                .next("for the reason: rovelog check FILE")
                .at(self.file));
        };
        let keep = self.keep(topic).unwrap_or(Keep::All);
        let Sink::Csv(csv) = &mut self.sink else { return Ok(()) };
        let mut taken = BTreeSet::from(["time", "t_ns"].map(str::to_owned));
        let mut head = vec!["time".to_owned(), "t_ns".to_owned()];
        if self.log.is_some() {
            head.insert(0, "file".to_owned());
            taken.insert("file".to_owned());
        }
        let derived = self.derived.names(topic.id).iter().map(|name| (**name).to_owned());
        let names = columns(schema, &keep).into_iter().chain(derived);
        head.extend(names.map(|name| rovelog_export::table::free_name(&mut taken, &name)));
        if self.context.parts.takes_head(&head.iter().map(String::as_str).collect::<Vec<_>>())? {
            csv.write_record(&head)?;
        }
        Ok(())
    }

    /// Writes one record.
    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let index = record.topic.id.index();
        if self.plans.len() <= index {
            self.plans.resize_with(index + 1, || Plan::Unresolved);
        }
        if matches!(self.plans[index], Plan::Unresolved) {
            self.plans[index] = self.plan(record.topic)?;
        }
        let Plan::Write(plan) = &self.plans[index] else { return Ok(()) };
        let mut value = match record.value() {
            Ok(value) => value,
            Err(error) => return self.undecodable(record, &error.to_string()),
        };
        // Records that do not fit an inferred definition are written as bytes.
        let schema = plan.schema.as_deref().filter(|schema| !is_raw(&value, schema));
        if plan.leaves.is_some_and(|leaves| schema.is_some() && leaves != count(&value, schema)) {
            return self.undecodable(record, "its fields differ from its schema");
        }
        if schema.is_some() {
            self.derived.append(record, &mut value)?;
        }
        self.line.clear();
        match &mut self.sink {
            Sink::Csv(csv) => {
                if let Some(log) = &self.log {
                    csv.write_field(log)?;
                }
                if row(csv, record, &value, schema, plan, self.times, &mut self.line)? {
                    let text =
                        format!("{} contains raw bytes, which CSV cannot represent", record.topic.name);
                    self.context.notices.warn("records with raw bytes", &text);
                    self.status = Status::Lost;
                }
            }
            Sink::Plain(out) => {
                if self.format == Format::Text {
                    self.times.push_text(record.time, &mut self.line);
                    self.line.push_str("  ");
                    self.line.push_str(&plan.name);
                    let blanks = self.width.saturating_sub(plan.width) + 2;
                    self.line.extend(std::iter::repeat_n(' ', blanks));
                    text(&value, schema, &plan.keep, &mut self.line);
                    self.line.push('\n');
                    out.write_all(self.line.as_bytes())?;
                } else {
                    self.object.clear();
                    if self.format == Format::Json && self.written > 0 {
                        self.object.extend_from_slice(b",\n");
                    }
                    json(record, &value, schema, plan, self.times, &mut self.object)?;
                    if self.format == Format::Ndjson {
                        if let Some(key) = &self.key {
                            self.object.splice(1..1, key.bytes());
                        }
                        self.object.push(b'\n');
                    }
                    out.write_all(&self.object)?;
                }
                out.end_record()?;
            }
        }
        self.written += 1;
        Ok(())
    }

    /// Returns the selected leaves of a topic's records, then those that are added.
    fn keep(&self, topic: &Topic) -> Option<Keep> {
        let keep = self.fields.keep(topic);
        let more = self.derived.names(topic.id).len();
        if more == 0 {
            return keep;
        }
        let leaves = topic.schema.as_deref().map_or(0, |schema| crate::select::leaves(schema).len());
        let mut kept: Vec<bool> =
            (0..leaves).map(|place| keep.as_ref().is_some_and(|keep| keep.leaf(place))).collect();
        kept.resize(leaves + more, true);
        Some(Keep::Leaves(kept))
    }

    fn plan(&self, topic: &Topic) -> Result<Plan, Failure> {
        let Some(keep) = self.keep(topic) else { return Ok(Plan::Skip) };
        let name = match self.format {
            Format::Text => escape(&topic.name).into_owned(),
            _ => serde_json::to_string(&topic.name)?,
        };
        let width = width(&name);
        let schema = topic.schema.clone();
        let leaves = schema.as_deref().map(|schema| crate::select::leaves(schema).len());
        Ok(Plan::Write(Layout { keep, name, width, schema, leaves }))
    }

    /// Counts a record that cannot be decoded as lost.
    fn undecodable(&mut self, record: &Record<'_>, why: &str) -> Result<(), Failure> {
        let text = format!(
            "record {} of {} (byte {}) cannot be decoded: {why}",
            record.seq, record.topic.name, record.offset
        );
        if self.context.global.strict {
            return Err(Failure::failed(text).at(self.file));
        }
        self.context.notices.warn("records cannot be decoded", &text);
        self.status = Status::Lost;
        Ok(())
    }

    /// Ends the output. Returns whether data was lost.
    pub(crate) fn finish(mut self) -> Result<Status, Failure> {
        match &mut self.sink {
            Sink::Csv(csv) => csv.flush()?,
            Sink::Plain(out) => {
                if self.format == Format::Json {
                    out.write_all(b"]}\n")?;
                }
                out.flush()?;
            }
        }
        Ok(self.status)
    }
}

/// Returns whether a value is the bytes of a record that does not fit its schema.
fn is_raw(value: &Value, schema: &Schema) -> bool {
    let Value::Struct(fields) = value else { return false };
    matches!(&fields[..], [(name, Value::Bytes(_))] if &**name == "raw")
        && !matches!(&schema.fields[..], [field] if &*field.name == "raw")
}

/// Returns the name of a field's value, if it has one.
fn state(field: &Field, value: &Value) -> Option<&'static str> {
    field.names?;
    match value {
        Value::Int(value, _) => field.name_of(*value),
        Value::UInt(value, _) => field.name_of(i64::try_from(*value).ok()?),
        _ => None,
    }
}

/// Writes `time=1 q=[1.0, 0.0] nav_state=Return pos={x=1.0}`, or single leaves by their flat names if only some are
/// selected.
fn text(value: &Value, schema: Option<&Schema>, keep: &Keep, line: &mut String) {
    let start = line.len();
    if *keep == Keep::All {
        let Value::Struct(fields) = value else { return plain(value, line) };
        for (number, (name, value)) in fields.iter().enumerate() {
            let field = schema.and_then(|schema| schema.fields.get(number));
            let before = if line.len() > start { " " } else { "" };
            entry(before, name, value, field.and_then(|field| state(field, value)), line);
        }
        return;
    }
    let mut place = 0;
    flatten(value, schema, &mut |name, value| {
        if keep.leaf(place) {
            let field = schema.and_then(|schema| schema.fields.iter().find(|field| *field.name == *name));
            let before = if line.len() > start { " " } else { "" };
            entry(before, name, value, field.and_then(|field| state(field, value)), line);
        }
        place += 1;
    });
}

/// Writes the JSON object of a record.
fn json(
    record: &Record<'_>,
    value: &Value,
    schema: Option<&Schema>,
    plan: &Layout,
    times: &Times,
    line: &mut Vec<u8>,
) -> Result<(), Failure> {
    let (time, t_ns) = (times.machine(record.time), times.t_ns(record.time));
    ndjson::head(time.as_deref(), t_ns, &plan.name, record, line)?;
    match (&plan.keep, value) {
        (Keep::Leaves(_), Value::Struct(fields)) => some_fields(fields, schema, &plan.keep, line)?,
        _ => serde_json::to_writer(&mut *line, value)?,
    }
    line.push(b'}');
    Ok(())
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
    csv: &mut csv::Writer<Out>,
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
    if csv.get_ref().terminal {
        csv.flush()?;
    }
    Ok(bytes)
}
