//! Prints records as lines of text, JSON objects or CSV rows.
//!
//! Several threads convert batches of records to text. One thread writes these texts in the order
//! of the records. The number of batches in memory is limited, so memory does not grow with the
//! size of the log.

mod derived;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use rovelog::core::Fields;
use rovelog::core::internal::layout::Layout;
use rovelog::core::internal::parallel::{self, BufferPool};
use rovelog::{FieldType, Record, Schema, Topic, TopicId, Value};
use rovelog_export::ndjson;
use rovelog_export::table::quoted;
use rovelog_export::text::{self, CsvRows, Keep, Selected};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::output::Out;
use crate::select::FieldArgs;
use crate::text::{count, escape, width};
use crate::times::Times;
pub(crate) use derived::Derived;

/// Describes how the records of a topic are printed. It is determined at the first record of the
/// topic.
enum Plan {
    /// No record of the topic has been printed yet.
    Unresolved,
    /// The records are not printed, because no field of the topic is selected.
    Skip,
    /// The records are printed.
    Write(TopicPlan),
}

/// Options for printing the records of one topic.
struct TopicPlan {
    /// The selected fields. A field inside of a struct or an array, such as `pos.x` or `q[0]`, is
    /// selected separately.
    keep: Keep,
    /// Name of the topic, either as text or as a JSON string with quotes.
    name: String,
    /// Width of the topic's name in columns of the terminal.
    width: usize,
    /// Schema of the topic. `None` if it is not known.
    schema: Option<Arc<Schema>>,
    /// Names of all fields according to the schema, including the path of nested fields and the
    /// array index, as in `pos.x` and `q[0]`.
    leaves: Vec<String>,
    /// Field layout of the last record, and whether it matches the schema of the topic.
    fit: Option<(Arc<Layout>, Fit)>,
}

/// Shows whether the fields of a record match the schema of its topic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// The record has the fields of the schema.
    Fields,
    /// The record has the single field `raw` with its bytes, because it does not match an inferred
    /// definition.
    Raw,
    /// The record has fields that do not match the schema.
    Other,
}

/// The content of a record that is printed.
enum Content<'r> {
    /// The encoded fields of the record.
    Encoded(Fields<'r>, Fit),
    /// Selected fields of the record, followed by derived fields and expressions.
    Values(Vec<(Arc<str>, Value)>, Fit),
}

/// Prints the records of a log in one output format.
pub(crate) struct Records<'a> {
    context: &'a Context,
    file: &'a Path,
    derived: Derived<'a>,
    out: Out,
    render: Renderer<'a>,
    /// True if a record has been printed.
    started: bool,
    /// For each topic, the number of records whose raw bytes are missing in the CSV output.
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
        let log = LogName { name: context.parts.name(), key: context.parts.key() };
        let render = Renderer::new(format, fields, times.clone(), log, context.global.strict);
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

    /// Adds derived fields and expressions to the records of their topics.
    pub(crate) fn with_derived(mut self, derived: Derived<'a>) -> Self {
        self.render.added = derived.counts();
        self.derived = derived;
        self
    }

    /// Makes the column of topics wide enough for the name of `topic`.
    pub(crate) fn expect(&mut self, topic: &Topic) {
        self.render.width = self.render.width.max(width(&escape(&topic.name)));
    }

    /// Writes the CSV header with the fields of `topic`. Does nothing if the output format is not
    /// CSV.
    pub(crate) fn head(&mut self, topic: &Topic) -> Result<(), Failure> {
        if self.render.format != Format::Csv {
            return Ok(());
        }
        let Some(schema) = &topic.schema else {
            return Err(Failure::failed(format!("the records of {} cannot be decoded", topic.name))
                .next("find the reason with rovelog check FILE")
                .at(self.file));
        };
        let keep = self.render.selected_leaves(topic).unwrap_or(Keep::All);
        // The columns `time` and `t_ns` come first. If a field of the log has one of these names
        // too, it gets another name.
        let mut taken = BTreeSet::from(["time", "t_ns"].map(str::to_owned));
        let mut head = vec!["time".to_owned(), "t_ns".to_owned()];
        if self.render.log.name.is_some() {
            head.insert(0, "file".to_owned());
            taken.insert("file".to_owned());
        }
        let derived = self.derived.names(topic.id).iter().map(|name| (**name).to_owned());
        let names = text::columns(schema, &keep).into_iter().chain(derived);
        head.extend(names.map(|name| rovelog_export::table::free_name(&mut taken, &name)));
        if self.context.parts.needs_header(&head.iter().map(String::as_str).collect::<Vec<_>>())? {
            let mut csv = csv::Writer::from_writer(&mut self.out);
            csv.write_record(&head)?;
            csv.flush()?;
        }
        Ok(())
    }

    /// Prints one record.
    pub(crate) fn write(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        let added = self.derived.values(record)?;
        let rendered = self.render.records(std::slice::from_ref(record), &added, Vec::new())?;
        self.write_rendered(rendered, &BufferPool::default())
    }

    /// Prints all records of a log, using several threads. If derived fields or expressions are
    /// added, only one thread is used, because their values depend on previous records.
    pub(crate) fn write_all<'l>(
        &mut self,
        records: impl Iterator<Item = rovelog::Result<Record<'l>>>,
    ) -> Result<(), Failure> {
        let context = self.context;
        if !self.render.added.is_empty() {
            for record in records {
                let record = record?;
                context.progress.at(record.offset);
                self.write(&record)?;
            }
            return Ok(());
        }
        let render = self.render.for_thread();
        let spare: BufferPool<Vec<u8>> = BufferPool::default();
        parallel::in_order(
            context.jobs(),
            || render.for_thread(),
            |render, records: Vec<Record<'_>>| render.records(&records, &[], spare.take()),
            |push| {
                ndjson::for_each_batch(records, &mut |batch| {
                    if let Some(record) = batch.last() {
                        context.progress.at(record.offset);
                    }
                    push(batch)
                })
            },
            |rendered| self.write_rendered(rendered?, &spare),
        )
    }

    /// Writes the text of converted records, and prints the warnings about these records.
    fn write_rendered(&mut self, rendered: Rendered, spare: &BufferPool<Vec<u8>>) -> Result<(), Failure> {
        let Rendered { mut text, lost, raw, failure } = rendered;
        // In JSON, the text of each record starts with a comma. The comma of the first record is
        // skipped.
        let comma = if self.render.format == Format::Json && !self.started { COMMA.len() } else { 0 };
        self.started |= !text.is_empty();
        self.out.write_all(text.get(comma..).unwrap_or_default())?;
        self.out.end_record()?;
        text.clear();
        spare.put(text);
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

    /// Completes the output and returns the status. `written` is the result of printing the
    /// records. If it is a failure, its message is added to a JSON document, so that the document
    /// remains valid JSON.
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
            if let Some(Failure::Message(message)) = failure {
                self.out.write_all(b",\"error\":")?;
                self.out.json(&message.cause)?;
            }
            self.out.write_all(b"}\n")?;
        }
        Ok(self.out.flush()?)
    }
}

/// Text between two records of a JSON document.
const COMMA: &[u8] = b",\n";

/// A batch of records that was converted to text.
#[derive(Default)]
struct Rendered {
    text: Vec<u8>,
    /// Warnings about records that could not be decoded.
    lost: Vec<String>,
    /// For each CSV row that does not contain the raw bytes of its record, the topic of the record.
    raw: Vec<String>,
    /// Message of the failure that ended the conversion, if there was one.
    failure: Option<String>,
}

/// Name of the log, and the NDJSON key with this name. Both are `None` if the command reads a
/// single log.
#[derive(Clone)]
struct LogName {
    name: Option<String>,
    key: Option<String>,
}

/// Converts records to text. Each thread has its own converter.
struct Renderer<'a> {
    format: Format,
    fields: &'a FieldArgs,
    times: Times,
    log: LogName,
    /// True if a record that cannot be decoded is a failure. This is the case with `--strict`.
    strict: bool,
    /// Width of the column with topic names in text output.
    width: usize,
    /// For each topic, the number of derived fields and expressions that are added to its records.
    added: HashMap<TopicId, usize>,
    /// For each topic, describes how its records are printed. The position in the list is the index
    /// of the topic.
    plans: Vec<Plan>,
    lines: ndjson::Lines,
    rows: CsvRows,
    line: String,
}

/// Derived fields and expressions that are added to a record, as pairs of name and value.
type AddedFields = [(Arc<str>, Value)];

impl<'a> Renderer<'a> {
    fn new(format: Format, fields: &'a FieldArgs, times: Times, log: LogName, strict: bool) -> Self {
        let (added, plans) = (HashMap::new(), Vec::new());
        let (lines, rows, line) = (ndjson::Lines::default(), CsvRows::default(), String::new());
        Self { format, fields, times, log, strict, width: 0, added, plans, lines, rows, line }
    }

    /// Returns a copy of the converter for another thread. The copy adds no derived fields or
    /// expressions to the records.
    fn for_thread(&self) -> Self {
        let (times, log) = (self.times.clone(), self.log.clone());
        Self { width: self.width, ..Self::new(self.format, self.fields, times, log, self.strict) }
    }

    /// Converts records and appends their text to `text`. If `added` is not empty, there is a
    /// single record, and the fields in `added` are added to it.
    fn records(
        &mut self,
        records: &[Record<'_>],
        added: &AddedFields,
        text: Vec<u8>,
    ) -> Result<Rendered, Failure> {
        let mut rendered = Rendered { text, ..Rendered::default() };
        for record in records {
            self.resolve(record.topic);
            match self.content(record, added) {
                Ok(None) => {}
                Ok(Some(Content::Encoded(fields, fit))) if self.format == Format::Csv => {
                    if self.row(record, &fields, fit, added, &mut rendered.text)? {
                        rendered.raw.push(record.topic.name.clone());
                    }
                }
                Ok(Some(content)) => self.print(record, &content, &mut rendered.text)?,
                Err(why) => {
                    if self.record_failure(record, &why, &mut rendered) {
                        break;
                    }
                }
            }
        }
        Ok(rendered)
    }

    /// Records the reason why a record could not be decoded. Returns true if the conversion must
    /// stop.
    fn record_failure(&self, record: &Record<'_>, why: &str, rendered: &mut Rendered) -> bool {
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

    /// Returns the part of a record to print, or `None` if no field is selected. The error is the
    /// reason why the record cannot be decoded.
    fn content<'r>(
        &mut self,
        record: &'r Record<'_>,
        added: &AddedFields,
    ) -> Result<Option<Content<'r>>, String> {
        let Plan::Write(plan) = &mut self.plans[record.topic.id.index()] else { return Ok(None) };
        let fields = record.fields().map_err(|error| error.to_string())?;
        let fit = plan.fit(&fields);
        // Names and values are paired by position. If a record has a different number of fields
        // than its schema, it cannot be printed.
        if fit == Fit::Other {
            return Err("the fields of the record differ from its schema".to_owned());
        }
        // The bytes are converted directly to CSV, and to JSON if all fields are selected. This is
        // much faster than building a tree of values first.
        let is_json = matches!(self.format, Format::Json | Format::Ndjson);
        if self.format == Format::Csv || is_json && plan.keep == Keep::All && added.is_empty() {
            return Ok(Some(Content::Encoded(fields, fit)));
        }
        let Value::Struct(mut values) = fields.value().map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        if fit == Fit::Fields && plan.schema.is_some() {
            values.extend(added.iter().cloned());
        }
        Ok(Some(Content::Values(values, fit)))
    }

    /// Converts a record to text or JSON.
    fn print(
        &mut self,
        record: &Record<'_>,
        content: &Content<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(()) };
        if let (Format::Text, Content::Values(fields, fit)) = (self.format, content) {
            self.line.clear();
            self.times.push_text(record.time, &mut self.line);
            self.line.push_str("  ");
            self.line.push_str(&plan.name);
            let blanks = self.width.saturating_sub(plan.width) + 2;
            self.line.extend(std::iter::repeat_n(' ', blanks));
            text::fields(&plan.selected(fields, *fit), &mut self.line);
            self.line.push('\n');
            out.extend_from_slice(self.line.as_bytes());
            return Ok(());
        }
        if self.format == Format::Json {
            out.extend_from_slice(COMMA);
        }
        // The key with the name of the log is inserted after the opening brace.
        let inside = out.len() + 1;
        self.times.head(record, &plan.name, &mut self.lines, out);
        if let (Format::Ndjson, Some(key)) = (self.format, &self.log.key) {
            out.splice(inside..inside, key.bytes());
        }
        match content {
            Content::Encoded(fields, _) => self.lines.data(record.topic.id, fields, out)?,
            Content::Values(fields, fit) => text::json(&plan.selected(fields, *fit), out),
        }
        out.extend_from_slice(if self.format == Format::Ndjson { b"}\n" } else { b"}" });
        Ok(())
    }

    /// Converts a record to a CSV row. Returns true if the raw bytes of the record are missing in
    /// the row.
    fn row(
        &mut self,
        record: &Record<'_>,
        fields: &Fields<'_>,
        fit: Fit,
        added: &AddedFields,
        out: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let Plan::Write(plan) = &self.plans[record.topic.id.index()] else { return Ok(false) };
        if let Some(log) = &self.log.name {
            quoted(log, b',', out);
            out.push(b',');
        }
        let (times, rows) = (&self.times, &mut self.rows);
        self.line.clear();
        times.push_csv(record.time, &mut self.line);
        quoted(&self.line, b',', out);
        out.push(b',');
        if let Some(nanos) = times.t_ns(record.time) {
            rows.integer(nanos, out);
        }
        let date = |nanos, cell: &mut String| times.push_date(nanos, cell);
        let has_bytes = rows.write(fields, &plan.keep, &date, out)?;
        match (fit, &plan.schema) {
            // Each field of the topic has an empty cell. The raw bytes have the first of them.
            (Fit::Raw, Some(schema)) => {
                let columns = text::columns(schema, &plan.keep).len();
                out.extend(std::iter::repeat_n(b',', columns - 1));
            }
            _ => added.iter().for_each(|(_, value)| rows.float(value.as_f64(), out)),
        }
        out.push(b'\n');
        Ok(has_bytes)
    }

    /// Returns the selected fields of a topic, including nested fields and array elements. Derived
    /// fields and expressions come last, and are always selected.
    fn selected_leaves(&self, topic: &Topic) -> Option<Keep> {
        let keep = self.fields.selected_leaves(topic);
        let Some(more) = self.added.get(&topic.id) else { return keep };
        let leaves = topic.schema.as_deref().map_or(0, |schema| text::names(schema).len());
        let mut kept: Vec<bool> =
            (0..leaves).map(|place| keep.as_ref().is_some_and(|keep| keep.leaf(place))).collect();
        kept.resize(leaves + more, true);
        Some(Keep::Leaves(kept))
    }

    /// Determines how the records of a topic are printed. This happens at the first record of the
    /// topic.
    fn resolve(&mut self, topic: &Topic) {
        let index = topic.id.index();
        if self.plans.len() <= index {
            self.plans.resize_with(index + 1, || Plan::Unresolved);
        }
        if !matches!(self.plans[index], Plan::Unresolved) {
            return;
        }
        self.plans[index] = match self.selected_leaves(topic) {
            None => Plan::Skip,
            Some(keep) => {
                let name = match self.format {
                    Format::Text => escape(&topic.name).into_owned(),
                    _ => serde_json::Value::from(&*topic.name).to_string(),
                };
                let width = width(&name);
                let schema = topic.schema.clone();
                let leaves = schema.as_deref().map(text::names).unwrap_or_default();
                Plan::Write(TopicPlan { keep, name, width, schema, leaves, fit: None })
            }
        };
    }
}

impl TopicPlan {
    /// Returns whether a record with these fields matches the schema of its topic.
    fn fit(&mut self, fields: &Fields<'_>) -> Fit {
        if let Some((layout, fit)) = &self.fit
            && Arc::ptr_eq(layout, fields.layout)
        {
            return *fit;
        }
        let fit = match (&self.schema, fields.layout.schema()) {
            (None, _) => Fit::Fields,
            (Some(schema), found) if Arc::ptr_eq(schema, found) => Fit::Fields,
            (Some(schema), found) if is_raw(found) && !is_raw(schema) => Fit::Raw,
            (Some(_), found) if text::names(found).len() == self.leaves.len() => Fit::Fields,
            _ => Fit::Other,
        };
        self.fit = Some((Arc::clone(fields.layout), fit));
        fit
    }

    /// Returns the selected fields of a record, including nested fields and array elements.
    fn selected<'a>(&'a self, fields: &'a AddedFields, fit: Fit) -> Selected<'a> {
        let schema = self.schema.as_deref().filter(|_| fit == Fit::Fields);
        Selected { fields, schema, keep: &self.keep, names: schema.map_or(&[], |_| &self.leaves) }
    }
}

/// Returns true if the schema has only the field `raw`, which contains the bytes of a record.
fn is_raw(schema: &Schema) -> bool {
    matches!(&schema.fields[..], [field] if &*field.name == "raw" && field.ty == FieldType::Bytes)
}
