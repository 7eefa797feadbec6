//! Writing records: a line of text, a JSON object or a row of CSV each. Memory does not grow with the log.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rovelog::{FieldType, Record, Schema, Topic, Value};

use crate::args::{Context, Format};
use crate::output::{Out, escape};
use crate::report::{Failure, Status};
use crate::select::{FieldArgs, Keep, leaves};
use crate::when::Times;

/// Where records go.
enum Sink {
    Plain(Out),
    Csv(Box<csv::Writer<Out>>),
}

/// How the records of one topic are written, once that is settled.
enum Plan {
    Unsettled,
    /// No field of it is wanted.
    Skip,
    Write(Layout),
}

struct Layout {
    keep: Keep,
    /// The topic's name as the format spells it: JSON with its quotes, or text.
    name: String,
    /// What the name takes of a line.
    width: usize,
    /// The fields, and how many values a record has, where the schema says it.
    schema: Option<Arc<Schema>>,
    leaves: Option<usize>,
}

/// Writes records in one format.
pub(crate) struct Records<'a> {
    context: &'a Context,
    format: Format,
    fields: &'a FieldArgs,
    times: &'a Times,
    file: &'a Path,
    sink: Sink,
    /// By topic.
    plans: Vec<Plan>,
    /// The width of the column of topics, in text.
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
            times,
            file,
            sink,
            plans: Vec::new(),
            width: 0,
            written: 0,
            status: Status::Done,
            line: String::new(),
            object: Vec::new(),
        })
    }

    /// Makes room in the text for the name of `topic`.
    pub(crate) fn expect(&mut self, topic: &Topic) {
        self.width = self.width.max(escape(&topic.name).chars().count());
    }

    /// The first row of CSV, which `topic` decides; nothing in other formats.
    pub(crate) fn head(&mut self, topic: &Topic) -> Result<(), Failure> {
        let Sink::Csv(csv) = &mut self.sink else { return Ok(()) };
        let Some(schema) = &topic.schema else {
            return Err(Failure::failed(format!("the records of {} cannot be decoded", topic.name))
                .next("see why: rovelog check FILE")
                .at(self.file));
        };
        let keep = self.fields.keep(Some(schema)).unwrap_or(Keep::All);
        csv.write_field("time")?;
        csv.write_field("t_ns")?;
        for (_, name) in leaves(schema).iter().enumerate().filter(|(place, _)| keep.leaf(*place)) {
            csv.write_field(name)?;
        }
        csv.write_record(None::<&[u8]>)?;
        Ok(())
    }

    /// Writes one record.
    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let index = record.topic.id.index();
        if self.plans.len() <= index {
            self.plans.resize_with(index + 1, || Plan::Unsettled);
        }
        if matches!(self.plans[index], Plan::Unsettled) {
            self.plans[index] = self.plan(record.topic)?;
        }
        let Plan::Write(plan) = &self.plans[index] else { return Ok(()) };
        let value = match record.value() {
            Ok(value) => value,
            Err(error) => return self.undecodable(record, &error.to_string()),
        };
        // What only a guess would decode is given as bytes.
        let schema = plan.schema.as_deref().filter(|schema| !is_raw(&value, schema));
        if plan.leaves.is_some_and(|leaves| schema.is_some() && leaves != count(&value, schema)) {
            return self.undecodable(record, "it has other fields than its schema");
        }
        self.line.clear();
        match &mut self.sink {
            Sink::Csv(csv) => {
                if row(csv, record, &value, schema, plan, self.times, &mut self.line)? {
                    let text = format!("{} has bytes, which CSV cannot carry", record.topic.name);
                    self.context.report.warn("records with bytes", &text);
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
                        self.object.push(b'\n');
                    }
                    out.guarded(&self.object)?;
                }
                out.end_record()?;
            }
        }
        self.written += 1;
        Ok(())
    }

    fn plan(&self, topic: &Topic) -> Result<Plan, Failure> {
        let Some(keep) = self.fields.keep(topic.schema.as_deref()) else { return Ok(Plan::Skip) };
        let name = match self.format {
            Format::Text => escape(&topic.name).into_owned(),
            _ => serde_json::to_string(&topic.name)?,
        };
        let width = name.chars().count();
        let schema = topic.schema.clone();
        let leaves = schema.as_deref().map(|schema| leaves(schema).len());
        Ok(Plan::Write(Layout { keep, name, width, schema, leaves }))
    }

    /// A record that has to be left out is a loss.
    fn undecodable(&mut self, record: &Record<'_>, why: &str) -> Result<(), Failure> {
        let text = format!(
            "record {} of {} (byte {}) cannot be decoded: {why}",
            record.seq, record.topic.name, record.offset
        );
        if self.context.global.strict {
            return Err(Failure::failed(text).at(self.file));
        }
        self.context.report.warn("records cannot be decoded", &text);
        self.status = Status::Lost;
        Ok(())
    }

    /// Ends the output; what was lost on the way.
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

/// Whether a value is the bytes of a record that its schema does not fit.
fn is_raw(value: &Value, schema: &Schema) -> bool {
    let Value::Struct(fields) = value else { return false };
    matches!(&fields[..], [(name, Value::Bytes(_))] if &**name == "raw")
        && !matches!(&schema.fields[..], [field] if &*field.name == "raw")
}

/// Leaves in `value`: values without parts, and lists that have another length in each record.
fn count(value: &Value, schema: Option<&Schema>) -> usize {
    let mut leaves = 0;
    cells(value, schema, &mut |_| {
        leaves += 1;
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap_or_default();
    leaves
}

/// `time=1 q=[1.0, 0.0] pos={x=1.0}`; single leaves by their flat names where not all is wanted.
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

fn entry(before: &str, name: &str, value: &Value, line: &mut String) {
    line.push_str(before);
    line.push_str(&escape(name));
    line.push('=');
    plain(value, line);
}

/// A value as a person reads it.
pub(crate) fn plain(value: &Value, line: &mut String) {
    match value {
        Value::Text(text) => {
            let _ = write!(line, "\"{}\"", escape(text).replace('"', "\\\""));
        }
        Value::List(items) => {
            for (i, item) in items.iter().enumerate() {
                line.push_str(if i == 0 { "[" } else { ", " });
                plain(item, line);
            }
            line.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Struct(fields) => {
            for (i, (name, value)) in fields.iter().enumerate() {
                entry(if i == 0 { "{" } else { " " }, name, value, line);
            }
            line.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
        Value::Null => line.push_str("null"),
        leaf => {
            cell(leaf, line);
        }
    }
}

/// A leaf without quotes, as CSV has it; `false` where it has no text form.
pub(crate) fn cell(value: &Value, line: &mut String) -> bool {
    let _ = match value {
        Value::Null => Ok(()),
        Value::Bool(v) => write!(line, "{v}"),
        Value::Int(v, _) => write!(line, "{v}"),
        Value::UInt(v, _) => write!(line, "{v}"),
        Value::F32(v) if v.is_finite() => float(v, line),
        Value::F64(v) if v.is_finite() => float(v, line),
        Value::F32(v) => write!(line, "{v}"),
        Value::F64(v) => write!(line, "{v}"),
        Value::Text(v) => write!(line, "{v}"),
        Value::Bytes(v) => {
            let _ = write!(line, "<{} bytes>", v.len());
            return false;
        }
        _ => return false,
    };
    true
}

/// A finite float in the shortest digits that give the same number again, at the width of the field: as in
/// JSON, and several times as fast as `fmt`.
fn float(value: &impl serde::Serialize, line: &mut String) -> std::fmt::Result {
    let mut digits = [0; 32];
    let mut rest = digits.as_mut_slice();
    serde_json::to_writer(&mut rest, value).map_err(|_| std::fmt::Error)?;
    let len = 32 - rest.len();
    line.push_str(std::str::from_utf8(&digits[..len]).map_err(|_| std::fmt::Error)?);
    Ok(())
}

/// The JSON object of a record.
fn json(
    record: &Record<'_>,
    value: &Value,
    schema: Option<&Schema>,
    plan: &Layout,
    times: &Times,
    line: &mut Vec<u8>,
) -> Result<(), Failure> {
    match times.machine(record.time) {
        Some(time) => write!(line, "{{\"time\":\"{time}\"")?,
        None => line.extend_from_slice(b"{\"time\":null"),
    }
    match times.t_ns(record.time) {
        Some(nanos) => write!(line, ",\"t_ns\":\"{nanos}\"")?,
        None => line.extend_from_slice(b",\"t_ns\":null"),
    }
    let Record { seq, offset, .. } = record;
    write!(line, ",\"topic\":{},\"seq\":{seq},\"offset\":{offset},\"data\":", plan.name)?;
    match (&plan.keep, value) {
        (Keep::Leaves(_), Value::Struct(fields)) => some_fields(fields, schema, &plan.keep, line)?,
        _ => serde_json::to_writer(&mut *line, value)?,
    }
    line.push(b'}');
    Ok(())
}

/// The wanted fields: whole ones as they are, single leaves of others by their flat names.
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

/// A row of CSV; whether it had bytes, which are left out.
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
    cells(value, schema, &mut |leaf| {
        if plan.keep.leaf(place) {
            buffer.clear();
            if matches!(leaf, Value::List(_)) {
                buffer.push_str(&leaf.to_json());
            } else if !cell(leaf, buffer) {
                buffer.clear();
                bytes = true;
            }
            csv.get_ref().guard(buffer);
            csv.write_field(&buffer)?;
        }
        place += 1;
        Ok::<(), csv::Error>(())
    })?;
    csv.write_record(None::<&[u8]>)?;
    if csv.get_ref().terminal {
        csv.flush()?;
    }
    Ok(bytes)
}

/// The leaves of a value, without the cost of their names.
fn cells<E>(
    value: &Value,
    schema: Option<&Schema>,
    visit: &mut dyn FnMut(&Value) -> Result<(), E>,
) -> Result<(), E> {
    match (value, schema) {
        (Value::Struct(fields), Some(schema)) if fields.len() == schema.fields.len() => fields
            .iter()
            .zip(&schema.fields)
            .try_for_each(|((_, value), field)| cells_of(value, Some(&field.ty), visit)),
        _ => cells_of(value, None, visit),
    }
}

fn cells_of<E>(
    value: &Value,
    ty: Option<&FieldType>,
    visit: &mut dyn FnMut(&Value) -> Result<(), E>,
) -> Result<(), E> {
    match (value, ty) {
        (list, Some(FieldType::List(_))) => visit(list),
        (Value::Struct(_), Some(FieldType::Struct(schema))) => cells(value, Some(schema), visit),
        (Value::Struct(fields), _) => fields.iter().try_for_each(|(_, value)| cells_of(value, None, visit)),
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            items.iter().try_for_each(|value| cells_of(value, element, visit))
        }
        (leaf, _) => visit(leaf),
    }
}

/// The leaves of a value with their flat names; a list of any length is one.
fn flatten(value: &Value, schema: Option<&Schema>, visit: &mut dyn FnMut(&str, &Value)) {
    let Value::Struct(fields) = value else { return value.flatten(visit) };
    for (number, (name, value)) in fields.iter().enumerate() {
        let ty = schema.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
        flatten_under(&mut name.to_string(), value, ty, visit);
    }
}

fn flatten_under(
    path: &mut String,
    value: &Value,
    ty: Option<&FieldType>,
    visit: &mut dyn FnMut(&str, &Value),
) {
    let len = path.len();
    match (value, ty) {
        (list, Some(FieldType::List(_))) => visit(path, list),
        (Value::Struct(fields), ty) => {
            let nested = if let Some(FieldType::Struct(schema)) = ty { Some(schema) } else { None };
            for (number, (name, value)) in fields.iter().enumerate() {
                let ty = nested.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
                path.push('.');
                path.push_str(name);
                flatten_under(path, value, ty, visit);
                path.truncate(len);
            }
        }
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            for (i, value) in items.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                flatten_under(path, value, element, visit);
                path.truncate(len);
            }
        }
        (leaf, _) => visit(path, leaf),
    }
}
