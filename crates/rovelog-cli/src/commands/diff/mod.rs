//! The command `rovelog diff`, which compares two logs: topics, fields, rates, parameters and
//! values.

mod statistics;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rovelog::core::internal::parallel::Jobs;
use rovelog::{AnyLog, Schema, Topic, Value};
use rovelog_export::Loss;
use serde::Serialize;

use self::statistics::{Chosen, Pair};
use super::params::model::{Differing, differing, is_calibration, parameters, shown};
use super::topics::rate;
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::Input;
use crate::machine::Count;
use crate::output::Out;
use crate::progress::Progress;
use crate::select::{FieldArgs, TopicArgs};
use crate::text::{escape, natural, padded, width};

const MORE: &str = "\
The marks mean: - exists only in A, + exists only in B, ~ differs. Rates differ if they are more \
than 1 % apart. A message type is compared if both logs have topics of this type. Parameters are \
compared by their values at the start of the logs. --stats compares the values of all fields that \
both logs have. --fields compares the values of the given fields, which can also be expressions \
(see rovelog plot --help). CSV and NDJSON output has a row for each difference and for each \
statistic.

Examples:
  rovelog diff before.ulg after.ulg
  rovelog diff before.ulg after.ulg --ignore-calibration --ignore-counts
  rovelog diff before.ulg after.ulg --stats --topics battery_status,cpuload
  rovelog diff before.ulg after.ulg --fields 'q.roll,norm(gyro_rad)'
  rovelog diff a.ulg b.ulg --exit-code -q > /dev/null || echo 'they differ'
  rovelog diff a.ulg b.ulg -f json | jq .formats";

/// Compare two logs: topics, fields, record counts, rates, parameters
#[derive(clap::Args)]
#[command(after_help = MORE)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// First log file, or - for stdin
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Second log file, or - for stdin if the first log is a file
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Also compare min, max, mean and standard deviation of every field, or of the fields given
    /// with --fields
    #[arg(long)]
    stats: bool,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    fields: FieldArgs,
    /// Exit with code 1 instead of 0 if the logs differ
    #[arg(long)]
    exit_code: bool,
    /// Compare topics by their rate only, and ignore different numbers of records
    #[arg(long)]
    ignore_counts: bool,
    /// Skip parameters that normally differ between vehicles, such as calibration and flight
    /// counters
    #[arg(long)]
    ignore_calibration: bool,
}

/// Kind of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// The item exists only in log A.
    Removed,
    /// The item exists only in log B.
    Added,
    /// The item exists in both logs, but differs.
    Changed,
}

impl Change {
    fn of<T>(a: Option<T>, b: Option<T>) -> Self {
        match (a, b) {
            (Some(_), None) => Self::Removed,
            (None, _) => Self::Added,
            _ => Self::Changed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Added => "added",
            Self::Changed => "changed",
        }
    }

    fn sign(self) -> char {
        match self {
            Self::Removed => '-',
            Self::Added => '+',
            Self::Changed => '~',
        }
    }
}

/// Properties of a topic in one of the two compared logs.
#[derive(Serialize)]
struct TopicDoc {
    #[serde(rename = "type")]
    type_name: String,
    count: Count,
    rate_hz: Option<f64>,
}

#[derive(Serialize)]
struct TopicDiff {
    name: String,
    change: Change,
    a: Option<TopicDoc>,
    b: Option<TopicDoc>,
}

#[derive(Serialize)]
struct FieldDiff {
    format: String,
    /// Name of the field that differs. `None` if only the order of the fields differs.
    field: Option<String>,
    change: Change,
    a: Option<String>,
    b: Option<String>,
}

#[derive(Serialize)]
struct ParamDiff {
    name: String,
    change: Change,
    a: Option<Value>,
    b: Option<Value>,
}

/// JSON document with the schema `rovelog.diff/2`, which `rovelog diff -f json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    a: String,
    b: String,
    different: bool,
    topics: Vec<TopicDiff>,
    formats: Vec<FieldDiff>,
    params: Vec<ParamDiff>,
    /// Statistics of the signals that exist in both logs. `None` if the user did not give
    /// `--stats`.
    #[serde(skip_serializing_if = "Option::is_none")]
    statistics: Option<Vec<Pair>>,
    /// Records that are missing in the statistics, because they cannot be decoded.
    #[serde(skip)]
    losses: Vec<Loss>,
}

/// A row of the output in CSV and NDJSON, which describes one difference or one statistic.
#[derive(Serialize)]
struct Row {
    /// Kind of the compared item: `topic`, `field`, `param` or `signal`.
    what: &'static str,
    /// Name of the compared topic, field, parameter or signal.
    name: String,
    /// Property that is compared, such as `type`, `count`, `rate_hz` or `min`.
    property: &'static str,
    change: &'static str,
    a: Option<String>,
    b: Option<String>,
}

impl Row {
    /// Columns of the CSV output.
    const HEAD: [&'static str; 6] = ["what", "name", "property", "change", "a", "b"];
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let (a, b) = (Input::new(Some(&args.a))?, Input::new(Some(&args.b))?);
    if a.is_stdin() && b.is_stdin() {
        return Err(Failure::usage("only one of the two logs can be stdin")
            .next("name a file for at least one of the two logs"));
    }
    let (log_a, log_b) = (a.open_all(context)?, b.open_all(context)?);
    let chosen = Chosen {
        ignore_counts: args.ignore_counts,
        ignore_calibration: args.ignore_calibration,
        stats: args.stats,
        topics: &args.topics,
        fields: &args.fields,
        jobs: context.jobs(),
        progress: &context.progress,
    };
    let document = Document::of((&a.name(), &log_a), (&b.name(), &log_b), &chosen)?;
    let different = document.different;
    let mut out = context.out();
    match format {
        Format::Json => out.document(&document)?,
        Format::Ndjson => document.rows().iter().try_for_each(|row| out.line(row))?,
        Format::Csv => out.csv(Row::HEAD, document.rows())?,
        _ => text(&mut out, &document, !args.fields.is_empty())?,
    }
    out.flush()?;
    let lost = context.notices.end_of_log(log_a.as_log(), &a.path);
    let lost = lost.max(context.notices.end_of_log(log_b.as_log(), &b.path));
    let lost = lost.max(context.notices.losses(&document.losses));
    Ok(if different && args.exit_code { Status::Failed } else { lost })
}

/// Options of [`diff`].
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// Compares topics by their rates, but not by their numbers of records.
    pub ignore_counts: bool,
    /// Skips parameters that a vehicle changes by itself, such as calibration and flight counters.
    pub ignore_calibration: bool,
    /// Compares the values of all signals that both logs have, by statistics such as minimum and
    /// mean.
    pub stats: bool,
    /// If not empty, compares only the values of these signals. An item is the name of a field or
    /// derived field, or an expression.
    pub fields: Vec<String>,
    /// Compares only the topics with these names. An empty list selects all topics.
    pub topics: Vec<String>,
}

/// Error of a comparison of two logs.
#[derive(Clone, Debug)]
pub struct NoDiff {
    /// True if the user named a topic or signal that a log does not have.
    pub is_usage: bool,
    /// Description of the error.
    pub cause: String,
    /// Advice on what to do next.
    pub next: Option<String>,
    /// Path of the log that caused the error.
    pub file: Option<PathBuf>,
}

impl From<Failure> for NoDiff {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Message(message) => {
                Self { is_usage: message.usage, cause: message.cause, next: message.next, file: message.file }
            }
            Failure::Closed => {
                Self { is_usage: false, cause: "the output is closed".to_owned(), next: None, file: None }
            }
        }
    }
}

/// Compares two logs. Each log is given as a pair of its name and its reader. Returns the same JSON
/// document that `rovelog diff A B -f json` prints.
///
/// # Errors
/// Returns an error if a log does not have a selected topic or signal, or if a log cannot be read.
pub fn diff(a: (&str, &AnyLog), b: (&str, &AnyLog), options: &DiffOptions) -> Result<String, NoDiff> {
    let chosen = Chosen {
        ignore_counts: options.ignore_counts,
        ignore_calibration: options.ignore_calibration,
        stats: options.stats,
        topics: &TopicArgs::named(&options.topics),
        fields: &FieldArgs::named(&options.fields)?,
        jobs: Jobs::default(),
        progress: &Progress::default(),
    };
    let document = Document::of(a, b, &chosen)?;
    serde_json::to_string(&document).map_err(|error| Failure::from(error).into())
}

impl Document {
    /// Compares two logs, each given as a pair of its name and its reader.
    fn of(
        (name_a, a): (&str, &AnyLog),
        (name_b, b): (&str, &AnyLog),
        chosen: &Chosen<'_>,
    ) -> Result<Self, Failure> {
        let all: Vec<Topic> = a.topics().iter().chain(b.topics()).cloned().collect();
        chosen.topics.require_matches(&all).map_err(|failure| failure.at(Path::new(name_a)))?;
        let of = |log: &AnyLog| -> Vec<Topic> {
            log.topics().iter().filter(|topic| chosen.topics.selects(topic)).cloned().collect()
        };
        let (topics_a, topics_b) = (of(a), of(b));
        let topics = topics(&topics_a, &topics_b, chosen.ignore_counts);
        let formats = formats(&topics_a, &topics_b);
        let params = params(a, b, chosen.ignore_calibration);
        let different = !(topics.is_empty() && formats.is_empty() && params.is_empty());
        let (statistics, losses) = if chosen.stats || !chosen.fields.is_empty() {
            let (pairs, losses) = statistics::pairs((Path::new(name_a), a), (Path::new(name_b), b), chosen)?;
            (Some(pairs), losses)
        } else {
            (None, Vec::new())
        };
        let (a, b) = (name_a.to_owned(), name_b.to_owned());
        Ok(Self { schema: "rovelog.diff/2", a, b, different, topics, formats, params, statistics, losses })
    }

    /// Returns a row for each difference and for each statistic.
    fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = self.topics.iter().flat_map(TopicDiff::rows).collect();
        rows.extend(self.formats.iter().map(|diff| {
            let (name, property) = match &diff.field {
                Some(field) => (format!("{}.{field}", diff.format), "type"),
                None => (diff.format.clone(), "order"),
            };
            let (a, b) = (diff.a.clone(), diff.b.clone());
            Row { what: "field", name, property, change: diff.change.name(), a, b }
        }));
        rows.extend(self.params.iter().map(|diff| {
            let value = |value: &Option<Value>| value.as_ref().map(|value| shown(Some(value)));
            let (name, change) = (diff.name.clone(), diff.change.name());
            Row { what: "param", name, property: "value", change, a: value(&diff.a), b: value(&diff.b) }
        }));
        rows.extend(self.statistics.iter().flatten().flat_map(Pair::rows));
        rows
    }
}

impl TopicDiff {
    /// Returns a row for each property of the topic that differs.
    fn rows(&self) -> Vec<Row> {
        let of = |property, get: fn(&TopicDoc) -> Option<String>| {
            let (a, b) = (self.a.as_ref().and_then(get), self.b.as_ref().and_then(get));
            Row { what: "topic", name: self.name.clone(), property, change: self.change.name(), a, b }
        };
        let mut rows = vec![
            of("type", |topic| Some(topic.type_name.clone())),
            of("count", |topic| Some(topic.count.to_string())),
        ];
        let rate = |topic: &Option<TopicDoc>| topic.as_ref().and_then(|topic| topic.rate_hz);
        if rates_differ(rate(&self.a), rate(&self.b)) {
            rows.push(of("rate_hz", |topic| topic.rate_hz.map(|hz| hz.to_string())));
        }
        rows.retain(|row| row.a != row.b);
        rows
    }
}

/// Returns the topics that differ, sorted by name.
fn topics(a: &[Topic], b: &[Topic], ignore_counts: bool) -> Vec<TopicDiff> {
    let by_name = |topics: &'_ [Topic]| -> HashMap<String, usize> {
        topics.iter().enumerate().map(|(i, topic)| (topic.name.clone(), i)).collect()
    };
    let (in_a, in_b) = (by_name(a), by_name(b));
    let mut names: Vec<_> = in_a.keys().chain(in_b.keys().filter(|name| !in_a.contains_key(*name))).collect();
    names.sort_unstable_by(|a, b| natural(a).cmp(&natural(b)));
    let doc = |topic: &Topic| TopicDoc {
        type_name: topic.type_name.clone(),
        count: Count(topic.count),
        rate_hz: topic.rate_hz(),
    };
    let mut diffs = Vec::new();
    for name in names {
        let (a, b) = (in_a.get(name).map(|i| &a[*i]), in_b.get(name).map(|i| &b[*i]));
        if let (Some(a), Some(b)) = (a, b) {
            // A topic that has records in only one of the logs is a difference, even if counts are
            // ignored.
            let counts = if ignore_counts { (a.count == 0) != (b.count == 0) } else { a.count != b.count };
            if a.type_name == b.type_name && !counts && !rates_differ(a.rate_hz(), b.rate_hz()) {
                continue;
            }
        }
        let change = Change::of(a, b);
        diffs.push(TopicDiff { name: name.clone(), change, a: a.map(doc), b: b.map(doc) });
    }
    diffs
}

/// Returns true if two rates differ by more than 1 %, or if only one of the rates is known.
fn rates_differ(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() > 0.01 * a.abs().max(b.abs()),
        (a, b) => a.is_some() != b.is_some(),
    }
}

/// Fields of a message format, as pairs of name and type.
type Fields = Vec<(Arc<str>, String)>;

/// Returns the fields of each format that the topics use, by the name of the format. Nested formats
/// are included.
fn collect_formats(topics: &[Topic]) -> BTreeMap<String, Fields> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<&Arc<Schema>> = topics.iter().filter_map(|topic| topic.schema.as_ref()).collect();
    while let Some(schema) = waiting.pop() {
        if found.contains_key(&schema.name) {
            continue;
        }
        let fields = schema.fields.iter().map(|field| (Arc::clone(&field.name), field.ty.to_string()));
        found.insert(schema.name.clone(), fields.collect());
        waiting.extend(schema.fields.iter().filter_map(|field| field.ty.nested()));
    }
    found
}

/// Compares the message formats that exist in both logs, field by field. If two formats have equal
/// fields in different orders, this is reported as one difference.
fn formats(a: &[Topic], b: &[Topic]) -> Vec<FieldDiff> {
    let (in_a, in_b) = (collect_formats(a), collect_formats(b));
    let mut diffs = Vec::new();
    for (format, a) in &in_a {
        let Some(b) = in_b.get(format).filter(|b| *b != a) else { continue };
        let before = diffs.len();
        let ty = |fields: &Fields, name: &Arc<str>| {
            fields.iter().find(|(other, _)| other == name).map(|(_, ty)| ty.clone())
        };
        let new = b.iter().filter(|(name, _)| ty(a, name).is_none());
        for (name, _) in a.iter().chain(new) {
            let (a, b) = (ty(a, name), ty(b, name));
            if a != b {
                let (format, field) = (format.clone(), Some(name.to_string()));
                diffs.push(FieldDiff { format, field, change: Change::of(a.as_ref(), b.as_ref()), a, b });
            }
        }
        // The formats differ, but no field does. So the fields have different orders.
        if diffs.len() == before {
            let order = |fields: &Fields| {
                let names: Vec<_> = fields.iter().map(|(name, _)| name.as_ref()).collect();
                Some(names.join(", "))
            };
            let (a, b) = (order(a), order(b));
            diffs.push(FieldDiff { format: format.clone(), field: None, change: Change::Changed, a, b });
        }
    }
    diffs
}

/// Compares the parameters at the start of the two logs. Returns no differences if one of the logs
/// has no parameters.
fn params(a: &AnyLog, b: &AnyLog, ignore_calibration: bool) -> Vec<ParamDiff> {
    let (Some(a), Some(b)) = (parameters(a), parameters(b)) else { return Vec::new() };
    let diff = |(name, a, b): Differing<'_>| {
        let (name, change) = (name.clone(), Change::of(a, b));
        ParamDiff { name, change, a: a.cloned(), b: b.cloned() }
    };
    let is_kept = |(name, ..): &Differing<'_>| !(ignore_calibration && is_calibration(name));
    differing(&a, &b).filter(is_kept).map(diff).collect()
}

/// Prints the differences. If `all` is true, the statistics of signals without differences are also
/// printed.
fn text(out: &mut Out, document: &Document, all: bool) -> Result<(), Failure> {
    if !document.different {
        writeln!(out, "no differences")?;
        return document.statistics.as_ref().map_or(Ok(()), |pairs| statistics::text(out, pairs, all));
    }
    writeln!(out, "- {}\n+ {}", escape(&document.a), escape(&document.b))?;
    let rows = document.topics.iter().map(|topic| {
        let count = |doc: &TopicDoc| doc.count.to_string();
        let hz = |doc: &TopicDoc| doc.rate_hz.map_or("no rate".to_owned(), |hz| format!("{} Hz", rate(hz)));
        let (a, b) = (topic.a.as_ref(), topic.b.as_ref());
        let mut what = both(a.map(count), b.map(count));
        what.push_str(if what == "1" { " record" } else { " records" });
        if [a, b].into_iter().flatten().any(|doc| doc.rate_hz.is_some()) {
            let _ = write!(what, ", {}", both(a.map(hz), b.map(hz)));
        }
        (topic.change, topic.name.clone(), what)
    });
    section(out, "topics", rows.collect())?;
    let rows = document.formats.iter().map(|diff| match &diff.field {
        Some(field) => {
            (diff.change, format!("{}.{field}", diff.format), both(diff.a.clone(), diff.b.clone()))
        }
        None => (diff.change, diff.format.clone(), "same fields in a different order".to_owned()),
    });
    section(out, "fields", rows.collect())?;
    let value = |value: &Option<Value>| value.as_ref().map(|value| shown(Some(value)));
    let rows = document.params.iter();
    let rows = rows.map(|diff| (diff.change, diff.name.clone(), both(value(&diff.a), value(&diff.b))));
    section(out, "params", rows.collect())?;
    if let Some(pairs) = &document.statistics {
        writeln!(out, "statistics:")?;
        statistics::text(out, pairs, all)?;
    }
    Ok(())
}

/// Returns a text such as `1 -> 2` if the values differ. If the values are equal or only one of
/// them is known, returns this value alone.
fn both(a: Option<String>, b: Option<String>) -> String {
    match (a, b) {
        (Some(a), Some(b)) if a == b => a,
        (Some(a), Some(b)) => format!("{a} -> {b}"),
        (a, b) => a.or(b).unwrap_or_default(),
    }
}

fn section(out: &mut Out, title: &str, rows: Vec<(Change, String, String)>) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "{title}:")?;
    let name_width = rows.iter().map(|(_, name, _)| width(&escape(name))).max().unwrap_or_default();
    for (change, name, what) in rows {
        writeln!(out, "{} {}  {}", change.sign(), padded(&escape(&name), name_width), escape(&what))?;
    }
    Ok(())
}
