//! `rovelog stats`: least, greatest, mean and deviation of every field; for power logs charge and energy too.

mod power;
mod records;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;

use rovelog::AnyLog;
use serde::{Serialize, Serializer};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::LogArg;
use crate::output::Out;
use crate::select::{FieldArgs, TopicArgs};
use crate::table::{Align, Table};
use crate::text::escape;

const MORE: &str = "\
One pass. In a power log (RLD) a current of two ranges is one field, settled beside switches; sums are \
exact. Energy needs to know which voltage belongs to which current, unless there is one of each.

Examples:
  rovelog stats flight.ulg --topics battery_status
  rovelog stats power.rld --energy --power 'V1*I1' --power '(V2-V3)*I2'
  rovelog stats power.rld --energy --window 1s -f csv > seconds.csv
  rovelog stats power.rld --energy --by DI1,DI2      one line for each state
  rovelog stats power.rld --energy --above I1=0.005  one for each time > 5 mA";

/// Show least, greatest, mean and deviation of every field; of power logs charge and energy
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    power: power::PowerArgs,
}

/// One field of one stretch of a log.
#[derive(Clone, Debug, Default, Serialize)]
struct Line {
    topic: String,
    field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    count: String,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    std: Option<f64>,
    /// The integral over time: charge of a current, energy of a power.
    #[serde(skip_serializing_if = "Option::is_none")]
    integral: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    integral_unit: Option<&'static str>,
    /// What else is to be said: values that are missing, how many are from the low range.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

/// A stretch of a log: all of it, a window, an event, a state.
#[derive(Clone, Debug, Default, Serialize)]
struct Section {
    /// What it is: `window 3`, `DI1=1`; nothing for the whole log.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<String>,
    fields: Vec<Line>,
}

/// Sections, made when they are asked for.
type Sections<'a> = Box<dyn Iterator<Item = Section> + 'a>;

/// The document `rovelog.stats/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    #[serde(serialize_with = "one_by_one")]
    sections: RefCell<Sections<'a>>,
}

fn one_by_one<S: Serializer>(sections: &RefCell<Sections<'_>>, out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(&mut *sections.borrow_mut())
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    let input = args.log.input()?;
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let topics = args.topics.pick(log.topics()).map_err(here)?;
    let mut power;
    let sections: Sections<'_> = match &log {
        AnyLog::Rld(reader) => {
            power = power::Power::new(reader, &args.power, context)?;
            power.sections(&args.power)?
        }
        other if args.power.is_asked() => {
            let what = format!("{} logs have no charge and energy", other.format().name);
            return Err(Failure::usage(what).next("leave out --energy, --power, --window, --by and --above"));
        }
        other => Box::new(std::iter::once(records::section(&**other, &topics, context)?)),
    };
    // All sections have the same fields.
    let mut sections = sections.peekable();
    let lines = sections.peek().into_iter().flat_map(|section| &section.fields);
    args.fields.demand_of(&lines.map(|line| line.field.clone()).collect::<Vec<_>>()).map_err(here)?;
    let picked: HashSet<&str> = topics.iter().map(|topic| &*topic.name).collect();
    let sections: Sections<'_> = Box::new(sections.map(|mut section| {
        section.fields.retain(|line| picked.contains(&*line.topic) && args.fields.keeps(&line.field));
        section
    }));
    let out = context.out();
    match format {
        Format::Json => {
            let file = input.name();
            let mut out = out;
            let sections = RefCell::new(sections);
            out.document(&Document { schema: "rovelog.stats/1", file, sections })?;
        }
        Format::Ndjson => ndjson(out, sections)?,
        Format::Csv => csv(out, sections)?,
        _ => text(out, sections)?,
    }
    Ok(context.notices.loss(&log.info().lost, &input.path).max(Status::Done))
}

fn ndjson(mut out: Out, sections: Sections<'_>) -> Result<(), Failure> {
    for section in sections {
        out.line(&section)?;
    }
    Ok(out.flush()?)
}

fn csv(out: Out, sections: Sections<'_>) -> Result<(), Failure> {
    let head = [
        "section",
        "start",
        "rows",
        "duration_ns",
        "topic",
        "field",
        "unit",
        "count",
        "min",
        "max",
        "mean",
        "std",
        "integral",
        "integral_unit",
    ];
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = sections.flat_map(|mut section| {
        let fields = std::mem::take(&mut section.fields);
        fields.into_iter().map(move |line| (section.clone(), line))
    });
    let rows = rows.map(|(section, line)| {
        [
            section.name.clone().unwrap_or_default(),
            section.start.clone().unwrap_or_default(),
            section.rows.clone().unwrap_or_default(),
            section.duration_ns.clone().unwrap_or_default(),
            line.topic.clone(),
            line.field.clone(),
            line.unit.clone().unwrap_or_default(),
            line.count.clone(),
            number(line.min),
            number(line.max),
            number(line.mean),
            number(line.std),
            number(line.integral),
            line.integral_unit.unwrap_or_default().to_owned(),
        ]
    });
    out.csv(head, rows)
}

fn text(mut out: Out, sections: Sections<'_>) -> Result<(), Failure> {
    for (i, section) in sections.enumerate() {
        if i > 0 {
            writeln!(out)?;
        }
        let mut head = section.name.clone().unwrap_or_default();
        for (what, value) in [("from", &section.start), ("rows", &section.rows), ("ns", &section.duration_ns)]
        {
            if let Some(value) = value {
                let _ = match what {
                    "from" => write!(head, "  {value}"),
                    what => write!(head, "  {value} {what}"),
                };
            }
        }
        if !head.trim().is_empty() {
            writeln!(out, "{}", out.paint.bold(&escape(head.trim())))?;
        }
        let with_integral = section.fields.iter().any(|line| line.integral.is_some());
        let mut columns = vec![("FIELD", Align::Left), ("UNIT", Align::Left), ("COUNT", Align::Right)];
        columns.extend(["MIN", "MAX", "MEAN", "STD"].map(|name| (name, Align::Right)));
        if with_integral {
            columns.push(("INTEGRAL", Align::Right));
        }
        columns.push(("", Align::Left));
        let mut table = Table::new(&columns);
        let one_topic = section.fields.windows(2).all(|pair| pair[0].topic == pair[1].topic);
        for line in &section.fields {
            let name = if one_topic { line.field.clone() } else { format!("{}.{}", line.topic, line.field) };
            let mut cells = vec![name, line.unit.clone().unwrap_or_default(), line.count.clone()];
            cells.extend([line.min, line.max, line.mean, line.std].map(short));
            if with_integral {
                let unit = line.integral_unit.unwrap_or_default();
                cells.push(
                    line.integral.map_or_else(String::new, |value| format!("{} {unit}", short(Some(value)))),
                );
            }
            cells.push(line.remark.clone().unwrap_or_default());
            table.row(cells);
        }
        table.write(&mut out)?;
    }
    Ok(out.flush()?)
}

/// Seven digits are enough for people; machine formats have all.
fn short(value: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    let text = format!("{value:.6e}");
    let rounded: f64 = text.parse().unwrap_or(value);
    let plain = rounded.to_string();
    // `e-5` and below, and what is long, is shorter with an exponent.
    if plain.len() <= 14 { plain } else { format!("{rounded:e}") }
}
