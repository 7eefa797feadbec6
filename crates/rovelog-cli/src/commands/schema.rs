//! The command `rovelog schema`, which shows the fields of topics.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use rovelog::{AnyLog, Field, FieldType, Schema, Topic};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, logs_and_names};
use crate::output::Out;
use crate::select::unknown_topic;
use crate::table::Table;
use crate::text::{escape, natural};

const MORE: &str = "\
Topics of the same type are listed together. A nested field is shown with its path, such as \
esc[].rpm.

Examples:
  rovelog schema flight.ulg                    every type in the log
  rovelog schema flight.ulg vehicle_attitude
  rovelog schema flight.ulg vehicle_attitude --raw
  rovelog schema flights/ battery_status -f csv";

/// Show the fields of topics: names, types, units
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files, folders and patterns ('*.ulg'), or - for stdin; then exact names of topics to
    /// show (imu means imu/0); default: all topics
    #[arg(value_names = ["FILE", "TOPIC"], num_args = 0..)]
    words: Vec<PathBuf>,
    /// Print the type definitions exactly as the log stores them
    #[arg(long)]
    raw: bool,
}

/// A message type and the topics that have this type.
struct Kind<'a> {
    name: &'a str,
    schema: Option<&'a Schema>,
    topics: Vec<&'a Topic>,
}

#[derive(Serialize)]
struct KindDoc<'a> {
    name: &'a str,
    topics: Vec<&'a str>,
    /// Fields of the message type. They are `null` if records of this type cannot be decoded.
    fields: Option<Vec<FieldDoc<'a>>>,
    definition: Option<String>,
}

#[derive(Serialize)]
struct FieldDoc<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: String,
    source_type: &'a str,
    unit: Option<&'a str>,
    /// Names of the values of an enumeration. `None` for any other field.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<BTreeMap<i64, &'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<FieldDoc<'a>>>,
}

impl<'a> FieldDoc<'a> {
    fn new(field: &'a Field) -> Self {
        Self {
            name: &field.name,
            ty: field.ty.to_string(),
            source_type: &field.source_type,
            unit: field.unit.as_deref(),
            values: field.names.map(|names| names.iter().copied().collect()),
            fields: field.ty.nested().map(|schema| schema.fields.iter().map(Self::new).collect()),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let (first, rest) = args.words.split_at(args.words.len().min(1));
    let (others, topics) = logs_and_names(rest);
    let inputs = Input::all(&[first, others.as_slice()].concat())?;
    Input::each(&inputs, context, |input| one(args.raw, &topics, input, format, context))
}

/// Shows the fields of the topics in one log.
fn one(raw: bool, topics: &[String], input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open(context)?;
    let kinds = kinds(&log, topics).map_err(|failure| failure.at(&input.path))?;
    let mut out = context.out();
    if raw {
        for kind in &kinds {
            let definition = definition(&log, kind).ok_or_else(|| {
                Failure::failed(format!("the log has no definition of {}", kind.name)).at(&input.path)
            })?;
            // Each line of the definition is escaped separately, so that the line breaks are kept.
            let mut lines = definition.split_terminator('\n');
            lines.try_for_each(|line| writeln!(out, "{}", escape(line)))?;
        }
        out.flush()?;
        return Ok(Status::Done);
    }
    let docs = kinds.iter().map(|kind| KindDoc {
        name: kind.name,
        topics: kind.topics.iter().map(|topic| topic.name.as_str()).collect(),
        fields: kind.schema.map(|schema| schema.fields.iter().map(FieldDoc::new).collect()),
        definition: definition(&log, kind),
    });
    match format {
        Format::Text | Format::Qgc | Format::Octave => text(&mut out, &kinds)?,
        Format::Json | Format::Ndjson => {
            out.list(format, ("rovelog.schema/1", "types"), &input.name(), docs)?;
        }
        Format::Csv => {
            let rows = kinds.iter().flat_map(|kind| {
                kind.schema.map(rows).into_iter().flatten().map(|[name, ty, source, unit, values]| {
                    [kind.name.to_owned(), name, ty, source, unit, values]
                })
            });
            out.csv(["topic_type", "field", "type", "source_type", "unit", "values"], rows)?;
        }
    }
    out.flush()?;
    Ok(Status::Done)
}

/// Returns the definition of a message type in the form in which it is stored in the log.
fn definition(log: &AnyLog, kind: &Kind<'_>) -> Option<String> {
    log.own(kind.topics.first()?).ok()?.definition()
}

/// Returns the message types of the topics `names`, sorted by name. If `names` is empty, returns
/// the types of all topics. If the definition of a type changed during the log, each definition of
/// the type is listed.
fn kinds<'a>(log: &'a AnyLog, names: &[String]) -> Result<Vec<Kind<'a>>, Failure> {
    let find = |name: &String| {
        let topic = log.topic(name).ok_or_else(|| unknown_topic(name, log.topics()))?;
        Ok::<_, Failure>(topic.get())
    };
    let topics: Vec<&Topic> = match names {
        [] => log.topics().iter().collect(),
        names => names.iter().map(find).collect::<Result<_, _>>()?,
    };
    let mut kinds: BTreeMap<&str, Vec<Kind<'a>>> = BTreeMap::new();
    for topic in topics {
        let alike = kinds.entry(&topic.type_name).or_default();
        let schema = topic.schema.as_deref();
        match alike.iter_mut().find(|kind| kind.schema == schema) {
            Some(kind) => kind.topics.push(topic),
            None => alike.push(Kind { name: &topic.type_name, schema, topics: vec![topic] }),
        }
    }
    let mut kinds: Vec<_> = kinds.into_values().flatten().collect();
    for kind in &mut kinds {
        kind.topics.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
    }
    Ok(kinds)
}

fn text(out: &mut Out, kinds: &[Kind<'_>]) -> Result<(), Failure> {
    for (i, kind) in kinds.iter().enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        let topics: Vec<_> = kind.topics.iter().map(|topic| escape(&topic.name)).collect();
        writeln!(out, "{}  ({})", out.paint.bold(&escape(kind.name)), topics.join(", "))?;
        let Some(schema) = kind.schema else {
            writeln!(out, "cannot be decoded; `rovelog check` shows the reason")?;
            continue;
        };
        let rows = rows(schema);
        let has_values = rows.iter().any(|row| !row[4].is_empty());
        let columns = if has_values { 5 } else { 4 };
        let names = ["FIELD", "TYPE", "LOGGED AS", "UNIT", "VALUES"];
        let mut table = Table::default().left(names.into_iter().take(columns));
        for row in rows {
            table.row(row.into_iter().take(columns));
        }
        table.write(out)?;
    }
    Ok(())
}

/// Returns a table row for each field, including nested fields. The cells are the name, the type,
/// the type as written in the log, the unit, and the names of enumeration values.
fn rows(schema: &Schema) -> Vec<[String; 5]> {
    fn add(path: &str, schema: &Schema, rows: &mut Vec<[String; 5]>) {
        for field in &schema.fields {
            let name = format!("{path}{}", field.name);
            let unit = field.unit.clone().unwrap_or_default();
            let values =
                field.names.unwrap_or_default().iter().map(|(value, name)| format!("{value}={name}"));
            let values = values.collect::<Vec<_>>().join(", ");
            rows.push([name.clone(), field.ty.to_string(), field.source_type.clone(), unit, values]);
            if let Some(nested) = field.ty.nested() {
                let is_list = matches!(field.ty, FieldType::Array(..) | FieldType::List(..));
                let list = if is_list { "[]" } else { "" };
                add(&format!("{name}{list}."), nested, rows);
            }
        }
    }
    let mut rows = Vec::new();
    add("", schema, &mut rows);
    rows
}
