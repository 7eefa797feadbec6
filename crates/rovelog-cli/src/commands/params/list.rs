//! Lists the parameters of one log, as text or in the formats of QGroundControl and GNU Octave.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use rovelog::Value;
use serde::Serialize;

use super::model::{Param, shown};
use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::output::Out;
use crate::text::{escape, padded, width};
use crate::times::Times;

/// Maximum width of the column with the values. If a value is longer, it is printed completely, but
/// the columns after it are not aligned in its line.
const VALUE_WIDTH: usize = 60;

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

pub(super) fn list(
    file: &Path,
    params: &BTreeMap<String, Param>,
    times: &Times,
    format: Format,
    context: &Context,
) -> Result<(), Failure> {
    let mut out = context.out();
    let docs = params.iter().map(|(name, param)| ParamDoc {
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
                t_ns: times.t_ns_text(change.time),
                value: &change.value,
                offset: change.offset,
            })
            .collect(),
    });
    match format {
        Format::Text | Format::Qgc | Format::Octave => text(&mut out, params, times)?,
        Format::Json | Format::Ndjson => {
            out.list(format, ("rovelog.params/1", "params"), &file.to_string_lossy(), docs)?;
        }
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
            out.csv(head, rows)?;
        }
    }
    Ok(out.flush()?)
}

fn text(out: &mut Out, params: &BTreeMap<String, Param>, times: &Times) -> Result<(), Failure> {
    let name_width = params.keys().map(|name| width(&escape(name))).max().unwrap_or_default();
    let value = |param: &Param| param.value.as_ref().map_or("-".to_owned(), |value| shown(Some(value)));
    let values: Vec<_> = params.values().map(value).collect();
    // Long values are ignored when the width of the column is computed. Otherwise they would widen
    // all lines.
    let widths = values.iter().map(|value| width(value)).filter(|width| *width <= VALUE_WIDTH);
    let value_width = widths.max().unwrap_or_default();
    for ((name, param), value) in params.iter().zip(values) {
        let mut line = format!("{}  {}", padded(&escape(name), name_width), padded(&value, value_width));
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

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Int(_, 32) => "int32",
        Value::F32(_) => "float32",
        Value::F64(_) => "float64",
        _ => "other",
    }
}

/// Writes a line of the form `1 1 NAME VALUE TYPE` for each parameter, with tabs between the
/// values. The type is 6 for an int32 and 9 for a float32 (`MAV_PARAM_TYPE` of MAVLink). Parameters
/// of all other types are skipped, and their names are returned.
pub(super) fn qgc(params: &BTreeMap<String, Param>, context: &Context) -> Result<Vec<String>, Failure> {
    let mut out = context.out();
    let mut left_out = Vec::new();
    for (name, param) in params {
        match &param.value {
            Some(Value::Int(value, 32)) => writeln!(out, "1\t1\t{}\t{value}\t6", escape(name))?,
            // QGroundControl parses the value as a 64-bit float. So the value is widened to 64 bits
            // and printed with the digits of the widened value.
            Some(Value::F32(value)) => writeln!(out, "1\t1\t{}\t{:?}\t9", escape(name), f64::from(*value))?,
            // The parameter has no value, because it was first set after the time given by `--at`.
            None => {}
            Some(_) => left_out.push(name.clone()),
        }
    }
    out.flush()?;
    Ok(left_out)
}

/// Writes the parameters in the text format that the function `load` of GNU Octave reads. A
/// parameter that changed during the log becomes a row of values. All other parameters become
/// scalars.
pub(super) fn octave(params: &BTreeMap<String, Param>, context: &Context) -> Result<(), Failure> {
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
