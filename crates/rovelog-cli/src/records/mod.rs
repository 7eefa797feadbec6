//! Writing records as lines of text, JSON objects or CSV rows. Memory does not grow with the log.

mod derived;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rovelog::core::parallel::{self, Spare};
use rovelog::{Record, Schema, Topic, TopicId, Value};
use rovelog_export::ndjson;
use rovelog_export::text::{self, Keep};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::output::Out;
use crate::select::FieldArgs;
use crate::text::{count, escape, width};
use crate::times::Times;
pub(crate) use derived::Derived;

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
    derived: Derived<'a>,
    out: Out,
    render: Render<'a>,
    /// True after the first record.
    started: bool,
    /// Number of CSV rows without bytes that their records have, by topic.
    raw: BTreeMap<String, u64>,
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
        let log = Several { name: context.parts.name(), key: context.parts.key() };
        let render = Render::new(format, fields, times.clone(), log, context.global.strict);
        let derived = Derived::default();
        Ok(Self {
            context,
            file,
            derived,
            out,
            render,
            started: false,
            raw: BTreeMap::new(),
            status: Status::Done,
        })
    }

    /// Adds further fields.
    pub(crate) fn with_derived(mut self, derived: Derived<'a>) -> Self {
        self.render.further = derived.counts();
        self.derived = derived;
        self
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
        let keep = self.render.keep(topic).unwrap_or(Keep::All);
        let mut taken = BTreeSet::from(["time", "t_ns"].map(str::to_owned));
        let mut head = vec!["time".to_owned(), "t_ns".to_owned()];
        if self.render.log.name.is_some() {
            head.insert(0, "file".to_owned());
            taken.insert("file".to_owned());
        }
        let derived = self.derived.names(topic.id).iter().map(|name| (**name).to_owned());
        let names = text::columns(schema, &keep).into_iter().chain(derived);
        head.extend(names.map(|name| rovelog_export::table::free_name(&mut taken, &name)));
        if self.context.parts.takes_head(&head.iter().map(String::as_str).collect::<Vec<_>>())? {
            let mut csv = csv::Writer::from_writer(&mut self.out);
            csv.write_record(&head)?;
            csv.flush()?;
        }
        Ok(())
    }

    /// Writes one record.
    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let further = self.derived.of(record)?;
        let rendered = self.render.records(std::slice::from_ref(record), &further, Vec::new())?;
        self.put(rendered, &Spare::default())
    }

    /// Writes all records of a log, with several threads; with one, if fields are added, whose values
    /// depend on the records before.
    pub(crate) fn write_all<'l>(
        &mut self,
        records: impl Iterator<Item = rovelog::Result<Record<'l>>>,
    ) -> Result<(), Failure> {
        let context = self.context;
        if !self.render.further.is_empty() {
            for record in records {
                let record = record?;
                context.progress.at(record.offset);
                self.write(&record)?;
            }
            return Ok(());
        }
        let render = self.render.again();
        let spare: Spare<Vec<u8>> = Spare::default();
        parallel::in_order(
            context.jobs(),
            || render.again(),
            |render, records: Vec<Record<'_>>| render.records(&records, &[], spare.take()),
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
        for topic in raw {
            *self.raw.entry(topic).or_default() += 1;
            self.status = Status::Lost;
        }
        match failure {
            Some(text) => Err(Failure::failed(text).at(self.file)),
            None => Ok(()),
        }
    }

    /// Ends the output after records were `written`, or after a failure to: a document of JSON says
    /// then why it has no more. Returns whether data was lost.
    pub(crate) fn finish(mut self, written: Result<(), Failure>) -> Outcome {
        let ended = self.end(written.as_ref().err());
        for (topic, rows) in &self.raw {
            let contain = if *rows == 1 { "contains" } else { "contain" };
            let text = format!(
                "{} of {topic} {contain} raw bytes, which CSV cannot represent",
                count(*rows, "record")
            );
            self.context.notices.warn("topics with raw bytes", &text);
        }
        written?;
        ended?;
        Ok(self.status)
    }

    fn end(&mut self, failure: Option<&Failure>) -> Result<(), Failure> {
        if self.render.format == Format::Json {
            self.out.write_all(b"]")?;
            if let Some(Failure::Said(said)) = failure {
                self.out.write_all(b",\"error\":")?;
                self.out.json(&said.cause)?;
            }
            self.out.write_all(b"}\n")?;
        }
        Ok(self.out.flush()?)
    }
}

/// Text between two records of a JSON document.
const COMMA: &[u8] = b",\n";

/// Records as text.
#[derive(Default)]
struct Rendered {
    text: Vec<u8>,
    /// Warnings about records that cannot be decoded.
    lost: Vec<String>,
    /// Topics of rows without the bytes that their records have.
    raw: Vec<String>,
    /// Why nothing more is written.
    failure: Option<String>,
}

/// The log, if there are several, and its key in NDJSON.
#[derive(Clone)]
struct Several {
    name: Option<String>,
    key: Option<String>,
}

/// Makes text of records; one for each thread.
struct Render<'a> {
    format: Format,
    fields: &'a FieldArgs,
    times: Times,
    log: Several,
    /// True if a record that cannot be decoded is a failure.
    strict: bool,
    /// Width of the column of topics, in text.
    width: usize,
    /// Number of further fields by topic.
    further: HashMap<TopicId, usize>,
    /// Plan by topic.
    plans: Vec<Plan>,
    lines: ndjson::Lines,
    line: String,
}

/// Further fields of a record.
type Further = [(Arc<str>, Value)];

impl<'a> Render<'a> {
    fn new(format: Format, fields: &'a FieldArgs, times: Times, log: Several, strict: bool) -> Self {
        let (further, plans) = (HashMap::new(), Vec::new());
        let (lines, line) = (ndjson::Lines::default(), String::new());
        Self { format, fields, times, log, strict, width: 0, further, plans, lines, line }
    }

    /// Returns the same for another thread, without further fields.
    fn again(&self) -> Self {
        let (times, log) = (self.times.clone(), self.log.clone());
        Self { width: self.width, ..Self::new(self.format, self.fields, times, log, self.strict) }
    }

    /// Returns the text of records with these further fields, which only one record can have.
    fn records(
        &mut self,
        records: &[Record<'_>],
        further: &Further,
        text: Vec<u8>,
    ) -> Result<Rendered, Failure> {
        let mut rendered = Rendered { text, ..Rendered::default() };
        if self.format == Format::Csv {
            let mut csv = csv::Writer::from_writer(std::mem::take(&mut rendered.text));
            for record in records {
                let done = self.row(record, further, &mut csv, &mut rendered.raw)?;
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
            let done = self.record(record, further, &mut rendered.text)?;
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
    fn record(
        &mut self,
        record: &Record<'_>,
        further: &Further,
        out: &mut Vec<u8>,
    ) -> Result<Result<(), String>, Failure> {
        self.resolve(record.topic)?;
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(Ok(())) };
        if self.format != Format::Text {
            if self.format == Format::Json {
                out.extend_from_slice(COMMA);
            }
            let inside = out.len() + 1;
            self.times.head(record, &plan.name, &mut self.lines, out);
            if let (Format::Ndjson, Some(key)) = (self.format, &self.log.key) {
                out.splice(inside..inside, key.bytes());
            }
            // Records with all of their fields are written straight from their bytes.
            if further.is_empty() && plan.is_whole(record) {
                if let Err(error) = self.lines.data(record, out) {
                    return Ok(Err(error.to_string()));
                }
            } else {
                let (value, schema) = match plan.value(record, further) {
                    Ok(value) => value,
                    Err(why) => return Ok(Err(why)),
                };
                match (&plan.keep, &value) {
                    (Keep::Leaves(_), Value::Struct(fields)) => {
                        text::some_fields(fields, schema, &plan.keep, out)?;
                    }
                    _ => serde_json::to_writer(&mut *out, &value)?,
                }
            }
            out.extend_from_slice(if self.format == Format::Ndjson { b"}\n" } else { b"}" });
            return Ok(Ok(()));
        }
        let (value, schema) = match plan.value(record, further) {
            Ok(value) => value,
            Err(why) => return Ok(Err(why)),
        };
        self.line.clear();
        self.times.push_text(record.time, &mut self.line);
        self.line.push_str("  ");
        self.line.push_str(&plan.name);
        let blanks = self.width.saturating_sub(plan.width) + 2;
        self.line.extend(std::iter::repeat_n(' ', blanks));
        text::fields(&value, schema, &plan.keep, &mut self.line);
        self.line.push('\n');
        out.extend_from_slice(self.line.as_bytes());
        Ok(Ok(()))
    }

    /// Writes a record as a row of CSV; returns why it cannot be decoded.
    fn row(
        &mut self,
        record: &Record<'_>,
        further: &Further,
        csv: &mut csv::Writer<Vec<u8>>,
        raw: &mut Vec<String>,
    ) -> Result<Result<(), String>, Failure> {
        self.resolve(record.topic)?;
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(Ok(())) };
        let (value, schema) = match plan.value(record, further) {
            Ok(value) => value,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(log) = &self.log.name {
            csv.write_field(log)?;
        }
        let (times, cell) = (&self.times, &mut self.line);
        cell.clear();
        times.push_csv(record.time, cell);
        csv.write_field(&*cell)?;
        cell.clear();
        if let Some(nanos) = times.t_ns(record.time) {
            let _ = write!(cell, "{nanos}");
        }
        csv.write_field(&*cell)?;
        let date = |nanos, cell: &mut String| times.push_date(nanos, cell);
        let has_bytes =
            text::row(&value, schema, &plan.keep, &date, cell, &mut |cell| Ok(csv.write_field(cell)?))?;
        csv.write_record(None::<&[u8]>)?;
        if has_bytes {
            raw.push(record.topic.name.clone());
        }
        Ok(Ok(()))
    }

    /// Returns the selected leaves of a topic's records, then those that are added.
    fn keep(&self, topic: &Topic) -> Option<Keep> {
        let keep = self.fields.keep(topic);
        let Some(more) = self.further.get(&topic.id) else { return keep };
        let leaves = topic.schema.as_deref().map_or(0, |schema| text::names(schema).len());
        let mut kept: Vec<bool> =
            (0..leaves).map(|place| keep.as_ref().is_some_and(|keep| keep.leaf(place))).collect();
        kept.resize(leaves + more, true);
        Some(Keep::Leaves(kept))
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
        self.plans[index] = match self.keep(topic) {
            None => Plan::Skip,
            Some(keep) => {
                let name = match self.format {
                    Format::Text => escape(&topic.name).into_owned(),
                    _ => serde_json::to_string(&topic.name)?,
                };
                let width = width(&name);
                let schema = topic.schema.clone();
                let leaves = schema.as_deref().map(|schema| text::names(schema).len());
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

    /// Returns the value of a record and its further fields, with its schema if it has just the
    /// fields of that; or why it cannot be decoded.
    fn value(&self, record: &Record<'_>, further: &Further) -> Result<(Value, Option<&Schema>), String> {
        let mut value = record.value().map_err(|error| error.to_string())?;
        // Records that do not fit an inferred definition are written as bytes.
        let schema = self.schema.as_deref().filter(|schema| !is_raw(&value, schema));
        if self.leaves.is_some_and(|leaves| schema.is_some() && leaves != text::count(&value, schema)) {
            return Err("its fields differ from its schema".to_owned());
        }
        if let (Some(_), Value::Struct(fields)) = (schema, &mut value) {
            fields.extend(further.iter().cloned());
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
