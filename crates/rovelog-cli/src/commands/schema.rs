//! `rovelog schema`: the fields of the topics.

use std::collections::BTreeMap;
use std::io::Write as _;

use rovelog::{AnyLog, Field, Schema, Topic};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{LogArg, natural};
use crate::output::Out;
use crate::select::unknown_topic;
use crate::table::{Align, Table};
use crate::text::escape;

const MORE: &str = "\
Topics of one type are listed together. Nested fields have flat names such as esc[].rpm.

Examples:
  rovelog schema flight.ulg                    every type in the log
  rovelog schema flight.ulg vehicle_attitude
  rovelog schema flight.ulg vehicle_attitude --raw";

/// Show the fields of topics: names, types, units
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    /// Only this topic; /0 is optional
    topic: Option<String>,
    /// Print the definitions as stored in the log
    #[arg(long)]
    raw: bool,
}

/// A type, and the topics with this type.
struct Kind<'a> {
    name: &'a str,
    schema: Option<&'a Schema>,
    topics: Vec<&'a Topic>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    types: Vec<KindDoc<'a>>,
}

#[derive(Serialize)]
struct KindDoc<'a> {
    name: &'a str,
    topics: Vec<&'a str>,
    /// `null` if the records cannot be decoded.
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
            fields: field.ty.nested().map(|schema| schema.fields.iter().map(Self::new).collect()),
        }
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let input = args.log.input()?;
    let log = input.open(context)?;
    let kinds = kinds(&log, args.topic.as_deref()).map_err(|failure| failure.at(&input.path))?;
    let mut out = context.out();
    if args.raw {
        for kind in &kinds {
            let definition = definition(&log, kind).ok_or_else(|| {
                Failure::failed(format!("the log has no definition of {}", kind.name)).at(&input.path)
            })?;
            // The text unchanged: its lines are lines here too.
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
        Format::Json => {
            let types = docs.collect();
            out.document(&Document { schema: "rovelog.schema/1", file: input.name(), types })?;
        }
        Format::Ndjson => docs.into_iter().try_for_each(|doc| out.line(&doc))?,
        Format::Csv => {
            let rows = kinds.iter().flat_map(|kind| {
                rows(kind.schema)
                    .into_iter()
                    .map(|[name, ty, source, unit]| [kind.name.to_owned(), name, ty, source, unit])
            });
            out.csv(["topic_type", "field", "type", "source_type", "unit"], rows)?;
            return Ok(Status::Done);
        }
    }
    out.flush()?;
    Ok(Status::Done)
}

/// Returns the definition text of a type.
fn definition(log: &AnyLog, kind: &Kind<'_>) -> Option<String> {
    log.own(kind.topics.first()?).ok()?.definition()
}

/// Returns the types of a log, or that of one topic, by name; a type that changed during the log
/// appears twice.
fn kinds<'a>(log: &'a AnyLog, topic: Option<&str>) -> Result<Vec<Kind<'a>>, Failure> {
    let topics: Vec<&Topic> = match topic {
        Some(name) => vec![log.topic(name).ok_or_else(|| unknown_topic(name, log.topics()))?.get()],
        None => log.topics().iter().collect(),
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
        if kind.schema.is_none() {
            writeln!(out, "cannot be decoded; for the reason: rovelog check")?;
            continue;
        }
        let mut table = Table::new(&[
            ("FIELD", Align::Left),
            ("TYPE", Align::Left),
            ("LOGGED AS", Align::Left),
            ("UNIT", Align::Left),
        ]);
        for row in rows(kind.schema) {
            table.row(row);
        }
        table.write(out)?;
    }
    Ok(())
}

/// Returns name, type, type in the log, and unit of every field, followed by those of its nested
/// type.
fn rows(schema: Option<&Schema>) -> Vec<[String; 4]> {
    fn add(path: &str, schema: &Schema, rows: &mut Vec<[String; 4]>) {
        for field in &schema.fields {
            let name = format!("{path}{}", field.name);
            let unit = field.unit.clone().unwrap_or_default();
            rows.push([name.clone(), field.ty.to_string(), field.source_type.clone(), unit]);
            if let Some(nested) = field.ty.nested() {
                let list = if matches!(field.ty, rovelog::FieldType::Array(..) | rovelog::FieldType::List(..))
                {
                    "[]"
                } else {
                    ""
                };
                add(&format!("{name}{list}."), nested, rows);
            }
        }
    }
    let mut rows = Vec::new();
    if let Some(schema) = schema {
        add("", schema, &mut rows);
    }
    rows
}
