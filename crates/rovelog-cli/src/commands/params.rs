//! `rovelog params`: the parameters of a log, or how those of two logs differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rovelog::{AnyLog, Value};
use serde::Serialize;

use crate::args::{Context, Format};
use crate::input::Input;
use crate::output::{Out, escape};
use crate::records::{cell, plain};
use crate::report::{Failure, Outcome, Status};
use crate::when::{Moment, Times};

const MORE: &str = "\
The value of a parameter is the one with which the log began; changes follow it. Two logs are
compared by these values: ~ differs, - is only in the first, + only in the second.

Examples:
  rovelog params flight.ulg
  rovelog params flight.ulg --changed          what differs from the defaults, or changed in flight
  rovelog params flight.ulg --at +1m30s        the values in force at a time
  rovelog params flight.ulg -f qgc > flight.params   the form that QGroundControl loads
  rovelog params before.ulg after.ulg --ignore-calibration";

/// Show the parameters of a log, or compare those of two logs
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A second log to compare with
    #[arg(value_name = "B")]
    other: Option<PathBuf>,
    /// Only those that differ from a default which the log holds, or that changed while it ran
    #[arg(long, conflicts_with = "other")]
    changed: bool,
    /// The values in force at this time, as if the log had begun there: +10s, 112.5s, 12:01:05
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<Moment>,
    /// Leave out what differs between any two vehicles: calibration, flight counters
    #[arg(long)]
    ignore_calibration: bool,
}

/// Beginnings of the names of parameters that a vehicle sets for itself.
const CALIBRATION: [&str; 8] = [
    "CAL_",
    "TC_",
    "SENS_BOARD_",
    "SENS_DPRES_OFF",
    "EKF2_MAGBIAS",
    "LND_FLIGHT_T",
    "COM_FLIGHT_UUID",
    "RC_CHAN_CNT",
];

/// Whether a vehicle sets a parameter for itself.
pub(super) fn is_calibration(name: &str) -> bool {
    CALIBRATION.iter().any(|start| name.starts_with(start))
}

/// A parameter with all that a log says about it.
#[derive(Default)]
pub(super) struct Param {
    pub(super) value: Option<Value>,
    system_default: Option<Value>,
    setup_default: Option<Value>,
    changes: Vec<Change>,
}

struct Change {
    time: Option<rovelog::Timestamp>,
    value: Value,
    offset: u64,
}

impl Param {
    /// Makes the value in force at `nanos` the value, and drops the changes up to it.
    fn move_to(&mut self, nanos: i64) {
        let later = self.changes.iter().position(|change| change.time.is_some_and(|time| time.nanos > nanos));
        let mut before = self.changes.drain(..later.unwrap_or(self.changes.len()));
        if let Some(last) = before.next_back() {
            self.value = Some(last.value);
        }
    }

    /// Whether it differs from a default. A log holds only defaults that differ from the value.
    fn is_changed(&self) -> bool {
        let differs = |default: &Option<Value>| default.is_some() && *default != self.value;
        !self.changes.is_empty() || differs(&self.system_default) || differs(&self.setup_default)
    }
}

/// The parameters by name; `None` where the format has none.
pub(super) fn parameters(log: &AnyLog) -> Option<BTreeMap<String, Param>> {
    let AnyLog::Ulog(log) = log else { return None };
    let found = log.parameters();
    let mut params: BTreeMap<String, Param> = BTreeMap::new();
    for (name, value) in found.initial {
        params.entry(name).or_default().value = Some(value);
    }
    for (name, value) in found.system_defaults {
        params.entry(name).or_default().system_default = Some(value);
    }
    for (name, value) in found.setup_defaults {
        params.entry(name).or_default().setup_default = Some(value);
    }
    for change in found.changed {
        let param = params.entry(change.name).or_default();
        param.changes.push(Change { time: change.time, value: change.value, offset: change.offset });
    }
    Some(params)
}

#[derive(Serialize)]
struct ParamDoc<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    type_name: Option<&'static str>,
    value: Option<&'a Value>,
    system_default: Option<&'a Value>,
    setup_default: Option<&'a Value>,
    changes: Vec<ChangeDoc<'a>>,
}

#[derive(Serialize)]
struct ChangeDoc<'a> {
    time: Option<String>,
    t_ns: Option<String>,
    value: &'a Value,
    offset: u64,
}

/// The document `rovelog.params/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    params: Vec<ParamDoc<'a>>,
}

/// The document `rovelog.params_diff/1`.
#[derive(Serialize)]
struct DiffDocument<'a> {
    schema: &'static str,
    a: String,
    b: String,
    differences: Vec<Difference<'a>>,
}

#[derive(Serialize)]
struct Difference<'a> {
    name: &'a str,
    a: Option<&'a Value>,
    b: Option<&'a Value>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let (qgc, octave) = (Format::Qgc, Format::Octave);
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv, qgc, octave])?;
    if (format == qgc || format == octave) && args.other.is_some() {
        return Err(Failure::usage("this is a form for the parameters of one log").next("leave B out"));
    }
    let input = Input::new(args.file.as_deref())?;
    let (log, params) = read(&input, args, context)?;
    let mut status = context.report.loss(&log.info().lost, &input.path);
    if let Some(other) = &args.other {
        let other = Input::new(Some(other))?;
        let (other_log, others) = read(&other, args, context)?;
        compare((&input.path, &params), (&other.path, &others), format, context)?;
        status = status.max(context.report.loss(&other_log.info().lost, &other.path));
    } else if format == Format::Octave {
        self::octave(&params, context)?;
    } else if format == Format::Qgc {
        let left_out = self::qgc(&params, context)?;
        for name in &left_out {
            let text =
                format!("{name} is neither an int32 nor a float, so QGroundControl has no form for it");
            context.report.warn("parameters without a form", &text);
        }
        status = if left_out.is_empty() { status } else { status.max(Status::Lost) };
    } else {
        let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
        dump(&input.path, &params, &times, format, context)?;
    }
    Ok(status)
}

fn read(input: &Input, args: &Args, context: &Context) -> Result<(AnyLog, BTreeMap<String, Param>), Failure> {
    let log = input.open(context)?;
    let mut params = parameters(&log).ok_or_else(|| {
        Failure::usage(format!("{} has no parameters", log.format().name))
            .next("see what it has: rovelog info FILE")
            .at(&input.path)
    })?;
    if let Some(at) = &args.at {
        let here = |failure: Failure| failure.at(&input.path);
        let until = context.times(log.info()).and_then(|times| at.resolve("--at", &times)).map_err(here)?;
        for param in params.values_mut() {
            param.move_to(until);
        }
    }
    params.retain(|name, param| {
        (!args.changed || param.is_changed()) && !(args.ignore_calibration && is_calibration(name))
    });
    Ok((log, params))
}

fn dump(
    file: &Path,
    params: &BTreeMap<String, Param>,
    times: &Times,
    format: Format,
    context: &Context,
) -> Result<(), Failure> {
    let mut out = context.out();
    let mut docs = params.iter().map(|(name, param)| ParamDoc {
        name,
        type_name: param.value.as_ref().map(type_name),
        value: param.value.as_ref(),
        system_default: param.system_default.as_ref(),
        setup_default: param.setup_default.as_ref(),
        changes: param
            .changes
            .iter()
            .map(|change| ChangeDoc {
                time: times.machine(change.time),
                t_ns: times.t_ns(change.time).map(|nanos| nanos.to_string()),
                value: &change.value,
                offset: change.offset,
            })
            .collect(),
    });
    match format {
        Format::Text | Format::Qgc | Format::Octave => text(&mut out, params, times)?,
        Format::Json => {
            let file = file.to_string_lossy().into_owned();
            out.document(&Document { schema: "rovelog.params/1", file, params: docs.collect() })?;
        }
        Format::Ndjson => docs.try_for_each(|doc| out.line(&doc))?,
        Format::Csv => {
            let head = ["name", "type", "value", "system_default", "setup_default", "last_value"];
            let rows = params.iter().map(|(name, param)| {
                let last = param.changes.last().map(|change| &change.value).or(param.value.as_ref());
                [
                    name.clone(),
                    param.value.as_ref().map_or("", type_name).to_owned(),
                    shown(param.value.as_ref()),
                    shown(param.system_default.as_ref()),
                    shown(param.setup_default.as_ref()),
                    shown(last),
                ]
            });
            return out.csv(head, rows);
        }
    }
    Ok(out.flush()?)
}

/// Writes `1 1 NAME VALUE TYPE` with tabs, the type 6 for an int32 and 9 for a float; the names of those that
/// are neither.
fn qgc(params: &BTreeMap<String, Param>, context: &Context) -> Result<Vec<String>, Failure> {
    let mut out = context.out();
    let mut left_out = Vec::new();
    for (name, param) in params {
        match &param.value {
            Some(Value::Int(value, 32)) => writeln!(out, "1\t1\t{}\t{value}\t6", escape(name))?,
            // All digits of the 32 bits, as the loader takes them for 64.
            Some(Value::F32(value)) => writeln!(out, "1\t1\t{}\t{:?}\t9", escape(name), f64::from(*value))?,
            // Set first after the time in question.
            None => {}
            Some(_) => left_out.push(name.clone()),
        }
    }
    out.flush()?;
    Ok(left_out)
}

/// Writes each as a scalar, or as a row of the value and its changes: the text format of GNU Octave's `load`.
fn octave(params: &BTreeMap<String, Param>, context: &Context) -> Result<(), Failure> {
    let mut out = context.out();
    for (name, param) in params {
        let values = param.value.iter().chain(param.changes.iter().map(|change| &change.value));
        let values: Vec<_> = values.map(|value| shown(Some(value))).collect();
        match values.as_slice() {
            [] => {}
            [one] => writeln!(out, "# name: {}\n# type: scalar\n{one}", escape(name))?,
            many => {
                let (name, columns) = (escape(name), many.len());
                writeln!(
                    out,
                    "# name: {name}\n# type: matrix\n# rows: 1\n# columns: {columns}\n {}",
                    many.join(" ")
                )?;
            }
        }
    }
    Ok(out.flush()?)
}

fn text(out: &mut Out, params: &BTreeMap<String, Param>, times: &Times) -> Result<(), Failure> {
    let width = params.keys().map(|name| name.chars().count()).max().unwrap_or_default();
    let value = |param: &Param| param.value.as_ref().map_or("-".to_owned(), |value| shown(Some(value)));
    let values: Vec<_> = params.values().map(value).collect();
    let value_width = values.iter().map(|value| value.chars().count()).max().unwrap_or_default();
    for ((name, param), value) in params.iter().zip(values) {
        let mut line = format!("{:width$}  {value:value_width$}", escape(name));
        let differing = |default: &Option<Value>| default.clone().filter(|_| *default != param.value);
        let (system, setup) = (differing(&param.system_default), differing(&param.setup_default));
        if let Some(default) = &system {
            let _ = write!(line, "  (default {})", shown(Some(default)));
        }
        if let Some(default) = setup.filter(|setup| Some(setup) != system.as_ref()) {
            let _ = write!(line, "  (setup default {})", shown(Some(&default)));
        }
        for change in &param.changes {
            let at = change.time.map(|time| format!(" at {}", times.brief(time))).unwrap_or_default();
            let _ = write!(line, "  -> {}{at}", shown(Some(&change.value)));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn compare(
    a: (&Path, &BTreeMap<String, Param>),
    b: (&Path, &BTreeMap<String, Param>),
    format: Format,
    context: &Context,
) -> Result<(), Failure> {
    let names: BTreeSet<&String> = a.1.keys().chain(b.1.keys()).collect();
    let value = |params: &'_ BTreeMap<String, Param>, name: &String| -> Option<Value> {
        params.get(name).and_then(|param| param.value.clone())
    };
    let pairs: Vec<_> = names
        .into_iter()
        .map(|name| (name, value(a.1, name), value(b.1, name)))
        .filter(|(_, a, b)| !same(a.as_ref(), b.as_ref()))
        .collect();
    let differences = pairs.iter().map(|(name, a, b)| Difference { name, a: a.as_ref(), b: b.as_ref() });
    let mut out = context.out();
    match format {
        Format::Text | Format::Qgc | Format::Octave => {
            let width = pairs.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or_default();
            for (name, a, b) in &pairs {
                let name = format!("{:width$}", escape(name));
                let (a, b) = (a.as_ref(), b.as_ref());
                match (a, b) {
                    (Some(_), Some(_)) => writeln!(out, "~ {name}  {} -> {}", shown(a), shown(b))?,
                    (None, _) => writeln!(out, "+ {name}  {}", shown(b))?,
                    (_, None) => writeln!(out, "- {name}  {}", shown(a))?,
                }
            }
        }
        Format::Json => out.document(&DiffDocument {
            schema: "rovelog.params_diff/1",
            a: a.0.to_string_lossy().into_owned(),
            b: b.0.to_string_lossy().into_owned(),
            differences: differences.collect(),
        })?,
        Format::Ndjson => differences.into_iter().try_for_each(|difference| out.line(&difference))?,
        Format::Csv => {
            let rows =
                pairs.iter().map(|(name, a, b)| [(*name).clone(), shown(a.as_ref()), shown(b.as_ref())]);
            return out.csv(["name", "a", "b"], rows);
        }
    }
    Ok(out.flush()?)
}

/// Whether two logs agree on a value; a NaN agrees with itself.
pub(super) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::F32(a)), Some(Value::F32(b))) => a.to_bits() == b.to_bits(),
        (Some(Value::F64(a)), Some(Value::F64(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Int(_, 32) => "int32",
        Value::F32(_) => "float32",
        Value::F64(_) => "float64",
        _ => "other",
    }
}

/// A value as text; nothing where there is none.
pub(super) fn shown(value: Option<&Value>) -> String {
    let mut text = String::new();
    if let Some(value) = value
        && !cell(value, &mut text)
    {
        text.clear();
        plain(value, &mut text);
    }
    text
}
