//! The command `rovelog stats`, which computes the minimum, maximum, mean and standard deviation of
//! each field. For power logs, it also computes charge and energy.

mod derived;
mod power;
mod records;
mod section;

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Write as _;

use rovelog::rld_format::RldReader;
use rovelog::{AnyLog, LogReader, Select, Topic};
use rovelog_export::plot::{has_prefixes, significant, with_prefix};
use rovelog_export::statistics::{LogStatistics, Number, short};
use serde::{Serialize, Serializer};

pub(super) use self::derived::lines as derived_lines;
pub(super) use self::records::section;
pub(super) use self::section::Line;
use self::section::{Section, Sections};
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::health::{HealthDoc, Report};
use crate::input::{Input, LogArgs};
use crate::output::Out;
use crate::select::{FieldArgs, TopicArgs, note_further_series};
use crate::table::Table;
use crate::text::{cell, count, escape};
use crate::window::{Window, WindowArgs, select_window, span};
use rovelog_export::duration_text;

const MORE: &str = "\
The first line summarizes the time stamps. A gap is a pause that is longer than three periods of a \
topic with a steady rate. A field is stuck if it keeps its value for 20 or more records, although \
it usually changes in nine of ten records. Statistics are computed in one pass, and sums are \
exact.

In power logs (RLD), a current that was measured in a low and a high range is shown as one field. \
The low range is used where it is valid and has settled (--settle, --ranges). To compute the \
energy of a current, its voltage must be known. By default, this is the voltage with the same \
number, such as V1 for I1. Name other pairs with --power.

Examples:
  rovelog stats flight.ulg --topics battery_status
  rovelog stats flight.ulg --timing            rate, jitter, gaps of topics
  rovelog stats power.rld --energy             V1*I1, V2*I2 and so on
  rovelog stats power.rld --energy --power 'V1*I1' --power '(V2-V3)*I2'
  rovelog stats flight.ulg --fields 'norm(gyro_rad)'   computed values
  rovelog stats power.rld --energy --window 1s -f csv > seconds.csv
  rovelog stats power.rld --energy --by DI1,DI2      for each state
  rovelog stats power.rld --energy --above I1=0.005  I1 above 5 mA
  rovelog stats flight.ulg --topics cpuload -S +10s -E +20s";

/// Show min, max, mean and standard deviation of every field; charge and energy of power logs
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    window: WindowArgs,
    /// Show the timing of each topic instead of its values: rate, jitter, gaps, and times that
    /// repeat or go back
    #[arg(long, conflicts_with_all = ["fields", "energy", "power", "window", "by", "above"])]
    timing: bool,
    /// Print text output without unit prefixes: 0.00000122 instead of 1.22 µA
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    power: power::PowerArgs,
}

/// JSON document with the schema `rovelog.stats/2`, which `rovelog stats -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    health: HealthDoc<'a>,
    #[serde(serialize_with = "one_by_one")]
    sections: RefCell<Sections<'a>>,
}

/// JSON document with the schema `rovelog.timing/2`, which `rovelog stats --timing -f json` prints.
#[derive(Serialize)]
struct TimingDocument<'a> {
    schema: &'static str,
    file: String,
    health: HealthDoc<'a>,
}

/// Serializes the sections one after the other, so that only one section is in memory at a time.
/// There may be as many sections as rows in the log.
fn one_by_one<S: Serializer>(sections: &RefCell<Sections<'_>>, out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(&mut *sections.borrow_mut())
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv])?;
    args.logs.each(context, |input| one(args, input, format, context))
}

/// Number of topics above which their times are read before their statistics.
const MANY_TOPICS: usize = 10_000;

/// Prints the statistics of one log.
fn one(args: &Args, input: &Input, format: Format, context: &Context) -> Outcome {
    let log = input.open_records(context, &|log| select_window(log, &args.topics, &args.window, context))?;
    let here = |failure: Failure| failure.at(&input.path);
    let topics = args.topics.pick(log.topics()).map_err(here)?;
    note_further_series(log.as_log(), &topics, context);
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&*log)).map_err(here)?;
    let is_all = topics.len() == log.topics().len();
    let names = topics.iter().map(|topic| topic.name.clone());
    let select = if is_all { Select::all() } else { Select::topics(names) };
    let select = select.between(window.start, window.end);
    let health = |known| rovelog::health_with(&log, &select, known).map_err(Failure::from).map_err(here);
    if args.timing {
        let health = health(Vec::new())?;
        timing(&Report::new(&health, log.topics(), &times), input, format, context)?;
        return Ok(context.notices.end_of_log(log.as_log(), &input.path));
    }
    // The times of very many topics need as much memory as the statistics. If there are so many
    // topics, their times are read before the statistics, so that not both are in memory together.
    let has_health = !matches!(format, Format::Ndjson | Format::Csv);
    let is_early = has_health && log.topics().len() > MANY_TOPICS;
    let early = is_early.then(|| health(Vec::new())).transpose()?;
    let mut power = None;
    let (sections, LogStatistics { losses, paces, .. }): (Sections<'_>, _) = match &log {
        AnyLog::Rld(reader) => {
            rld_sections(reader, &topics, args, window, context, &mut power).map_err(here)?
        }
        other if args.power.is_asked() => {
            let what = format!("charge and energy cannot be computed for {} logs", other.format().name);
            let failure = Failure::usage(what);
            return Err(here(failure.next("leave out --energy, --power, --window, --by and --above")));
        }
        other => {
            let (jobs, progress) = (context.jobs(), &context.progress);
            let (section, result) = section(&**other, &topics, &args.fields, window, jobs, progress)?;
            (Box::new(std::iter::once(section)), result)
        }
    };
    let sections = selected(args, &*log, &topics, window, sections, context).map_err(here)?;
    let out = context.out();
    let health = || early.map_or_else(|| health(paces), Ok);
    match format {
        Format::Json => {
            let file = input.name();
            let mut out = out;
            let sections = RefCell::new(sections);
            let health = health()?;
            let health = Report::new(&health, log.topics(), &times).doc();
            out.document(&Document { schema: "rovelog.stats/2", file, health, sections })?;
        }
        Format::Ndjson => ndjson(out, sections)?,
        Format::Csv => csv(out, sections)?,
        _ => {
            // Merged currents have their own lines, so their ranges are shown only on request.
            let hides_ranges = args.fields.is_empty();
            let sections = sections.map(|mut section| {
                section.fields.retain(|line| !(hides_ranges && line.is_range));
                section
            });
            text(out, &Report::new(&health()?, log.topics(), &times), Box::new(sections), args.exact)?;
        }
    }
    let lost = context.notices.losses(&losses);
    Ok(lost.max(context.notices.end_of_log(log.as_log(), &input.path)))
}

/// Selects the fields of the sections, and adds the derived fields to the first section.
fn selected<'s>(
    args: &'s Args,
    log: &dyn LogReader,
    topics: &[&'s Topic],
    window: Window,
    sections: Sections<'s>,
    context: &Context,
) -> Result<Sections<'s>, Failure> {
    // All sections have the same fields. The names given by the user are therefore checked against
    // the first section only.
    let mut sections = sections.peekable();
    let mut derived = Vec::new();
    match sections.peek() {
        Some(first) if args.power.is_asked() => args.fields.require_matches_in(&derived::names(first))?,
        Some(first) => derived = derived::lines(&args.fields, first, log, topics, window)?,
        None => context.note(&format!("there are no rows to show, because {}", args.power.missing_rows())),
    }
    let picked: HashSet<&str> = topics.iter().map(|topic| &*topic.name).collect();
    Ok(Box::new(sections.map(move |mut section| {
        section
            .fields
            .retain(|line| picked.contains(&*line.topic) && args.fields.selects(&line.topic, &line.field));
        // Derived fields are computed for the whole time window and added to the first section
        // only. `append` leaves the list `derived` empty, so that nothing is added to the next
        // sections.
        section.fields.append(&mut derived);
        section
    })))
}

/// Computes the statistics of a power log. Returns the sections of its rows, and the statistics of
/// the ambient sensors. The last section also contains the fields of the ambient sensors.
fn rld_sections<'p>(
    log: &'p RldReader,
    topics: &[&Topic],
    args: &'p Args,
    window: Window,
    context: &Context,
    power: &'p mut Option<power::Power<'p>>,
) -> Result<(Sections<'p>, LogStatistics), Failure> {
    let rows = log.rows_topic();
    let others: Vec<&Topic> = topics.iter().filter(|topic| topic.name != rows.name).copied().collect();
    let has_rows = others.len() < topics.len();
    if args.power.is_asked() && !has_rows {
        return Err(Failure::usage(format!(
            "charge and energy are computed from topic {}, which is not selected",
            rows.name
        ))
        .next("select this topic, too, or leave out --topics"));
    }
    let (mut further, mut result) = (None, LogStatistics::default());
    if !args.power.is_asked() && !others.is_empty() {
        let (jobs, progress) = (context.jobs(), &context.progress);
        let (section, others) = section(log, &others, &args.fields, window, jobs, progress)?;
        (further, result) = (Some(section), others);
    }
    if !has_rows {
        return Ok((Box::new(further.into_iter()), result));
    }
    let power =
        power.insert(power::Power::new(log, &args.power, window, context.times(log.info())?, context)?);
    let mut sections = power.sections(&args.power)?.peekable();
    // If no row is within the time window, only the ambient sensors are shown.
    if sections.peek().is_none() {
        return Ok((Box::new(further.into_iter()), result));
    }
    let mut more = further.map_or_else(Vec::new, |section| section.fields);
    let sections = sections.map(move |mut section| {
        section.fields.append(&mut more);
        section
    });
    Ok((Box::new(sections), result))
}

fn ndjson(mut out: Out, sections: Sections<'_>) -> Result<(), Failure> {
    for section in sections {
        out.line(&section)?;
    }
    Ok(out.flush()?)
}

fn csv(mut out: Out, sections: Sections<'_>) -> Result<(), Failure> {
    #[rustfmt::skip]
    let head = [
        "section", "start", "rows", "duration_ns", "topic", "field", "unit", "count", "min", "max",
        "mean", "std", "integral", "integral_unit",
    ];
    let rows = sections.flat_map(|mut section| {
        let fields = std::mem::take(&mut section.fields);
        fields.into_iter().map(move |line| (section.clone(), line))
    });
    let rows = rows.map(|(section, line)| {
        [
            section.name.clone().unwrap_or_default(),
            section.start.clone().unwrap_or_default(),
            cell(section.rows),
            section.duration_ns.clone().unwrap_or_default(),
            line.topic.clone(),
            line.field.clone(),
            line.unit.clone().unwrap_or_default(),
            line.count.to_string(),
            cell(line.min),
            cell(line.max),
            cell(line.mean),
            cell(line.std),
            cell(line.integral),
            line.integral_unit.unwrap_or_default().to_owned(),
        ]
    });
    out.csv(head, rows)
}

/// Prints the health of the time stamps of each topic, for the option `--timing`.
fn timing(report: &Report<'_>, input: &Input, format: Format, context: &Context) -> Result<(), Failure> {
    let mut out = context.out();
    match format {
        Format::Json => {
            let (file, health) = (input.name(), report.doc());
            out.document(&TimingDocument { schema: "rovelog.timing/2", file, health })?;
        }
        Format::Ndjson => report.topic_docs().try_for_each(|doc| out.line(&doc))?,
        Format::Csv => return report.csv(out),
        _ => {
            writeln!(out, "{}", escape(&report.sentence()))?;
            report.table().write(&mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// Describes how many fields are unusual, for example `2 fields have NaN; 1 field is stuck`.
/// Returns `None` if there are no such fields.
fn remarkable(section: &Section) -> Option<String> {
    let number = |is: fn(&Line) -> bool| section.fields.iter().filter(|line| is(line)).count();
    let of = |number: usize, is: [&str; 2]| {
        (number > 0).then(|| format!("{} {}", count(number, "field"), is[usize::from(number != 1)]))
    };
    let nan = of(number(|line| line.nan.is_some()), ["has NaN", "have NaN"]);
    let stuck = of(number(|line| line.stuck.is_some()), ["is stuck", "are stuck"]);
    let said: Vec<_> = nan.into_iter().chain(stuck).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn text(mut out: Out, report: &Report<'_>, sections: Sections<'_>, exact: bool) -> Result<(), Failure> {
    for (i, section) in sections.enumerate() {
        if i == 0 {
            let said = remarkable(&section).map(|said| format!("; {said}")).unwrap_or_default();
            writeln!(out, "{}{said}", escape(&report.sentence()))?;
        }
        writeln!(out)?;
        let mut head = section.name.clone().unwrap_or_default();
        if let Some(start) = &section.start {
            let _ = write!(head, "  from {}", start.trim());
        }
        if let Some(rows) = &section.rows {
            let _ = write!(head, "  {}", count(rows.0, "row"));
        }
        let seconds = |nanos: &String| nanos.parse().ok().map(duration_text);
        if let Some(duration) = section.duration_ns.as_ref().and_then(seconds) {
            let _ = write!(head, ", measured {duration}");
        }
        if let Some(span) = section.span_ns.as_ref().and_then(seconds) {
            let _ = write!(head, " (first to last row {span})");
        }
        if !head.trim().is_empty() {
            writeln!(out, "{}", out.paint.bold(&escape(head.trim())))?;
        }
        values(&section.fields, exact).write(&mut out)?;
    }
    Ok(out.flush()?)
}

/// Integral of a quantity over time.
struct Integral {
    /// Unit of the integral.
    unit: &'static str,
    name: &'static str,
    /// Unit in which the integral is common for batteries. [`PER_MILLI_HOUR`] converts to it.
    milli_hours: &'static str,
}

const INTEGRALS: [Integral; 2] = [
    Integral { unit: "C", name: "CHARGE", milli_hours: "mAh" },
    Integral { unit: "J", name: "ENERGY", milli_hours: "mWh" },
];

/// Number of coulombs in a milliampere-hour, and of joules in a milliwatt-hour.
const PER_MILLI_HOUR: f64 = 3.6;

/// Returns a table with the statistics of a section's fields. If `exact` is true, values have no
/// unit prefixes.
fn values<'t>(lines: &[Line], exact: bool) -> Table<'t> {
    // Charge and energy have different units, so each of them gets its own columns.
    let integrals: Vec<_> = INTEGRALS
        .into_iter()
        .filter(|integral| lines.iter().any(|line| line.integral_unit == Some(integral.unit)))
        .collect();
    // A narrow terminal shows only the first columns. Charge and energy are shown only if the user
    // asked for them, so they come before the other columns.
    let mut table = Table::default().left(["FIELD", "UNIT"]);
    for integral in &integrals {
        table = table.right([integral.name, integral.milli_hours]);
    }
    table = table.right(["COUNT", "MIN", "MAX", "MEAN", "STD"]).left([""]);
    let one_topic = lines.windows(2).all(|pair| pair[0].topic == pair[1].topic);
    // A value without a prefix is printed with all digits if it is an integer.
    let cell = |value: Option<Number>, unit: Option<&str>| match (value, unit) {
        (Some(value), Some(unit)) if !exact && has_prefixes(unit) => with_prefix(value.as_f64(), unit),
        (value, _) => value.map_or_else(String::new, Number::short),
    };
    for line in lines {
        let name = if one_topic { line.field.clone() } else { format!("{}.{}", line.topic, line.field) };
        let unit = line.unit.as_deref();
        let mut cells = vec![name, unit.unwrap_or_default().to_owned()];
        for Integral { unit, .. } in &integrals {
            let of_unit = line.integral.filter(|_| line.integral_unit == Some(*unit));
            let milli_hours = of_unit.map(|value| value / PER_MILLI_HOUR);
            let rounded = |value| if exact { short(Some(value)) } else { significant(value, 5) };
            let milli_hours = milli_hours.map_or_else(String::new, rounded);
            cells.extend([cell(of_unit.map(Number::Float), Some(unit)), milli_hours]);
        }
        cells.push(line.count.to_string());
        let floats = [line.mean, line.std].map(|value| value.map(Number::Float));
        cells.extend([line.min, line.max].into_iter().chain(floats).map(|value| cell(value, unit)));
        cells.push(line.remark.clone().unwrap_or_default());
        table.row(cells);
    }
    table
}
