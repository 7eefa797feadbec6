//! The command `rovelog params`. It shows the parameters of one log, compares the parameters of two
//! logs, or shows the parameters of many logs as a table.

mod compare;
mod list;
pub(super) mod model;
mod table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rovelog::AnyLog;
use rovelog_export::signal::{Pattern, suggest};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, logs_and_names, may_be_several};
use crate::time_point::TimePoint;
use model::{Param, is_calibration, parameters};

const MORE: &str = "\
Each parameter is shown with its value at the start of the log, followed by its changes. If two \
logs are given, these start values are compared: ~ marks a parameter with different values, - one \
that only the first log has, and + one that only the second log has. With parameter names or with \
more logs, the output is a table with a row for each log.

Examples:
  rovelog params flight.ulg
  rovelog params flight.ulg --changed          changed in flight or before
  rovelog params flight.ulg --at +1m30s        the values active at a time
  rovelog params flight.ulg -f qgc > flight.params   for QGroundControl
  rovelog params before.ulg after.ulg --ignore-calibration
  rovelog params 'MC_*_P' flights/ -f csv      one row for each log";

/// Show the parameters of a log, compare two logs, or tabulate many
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files, folders and patterns ('*.ulg'), or - for stdin, and names of parameters to show
    /// (`MC_ROLL_P`, 'MC_*_P'). Two log files are compared
    #[arg(value_names = ["NAME", "FILE"], num_args = 0..)]
    words: Vec<PathBuf>,
    /// Show only parameters that differ from their default value or that changed during the log
    #[arg(long)]
    changed: bool,
    /// Show the parameter values at this time, such as +10s, 112.5s or 12:01:05; default: the start
    /// of the log
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<TimePoint>,
    /// Skip parameters that normally differ between vehicles, such as calibration and flight
    /// counters
    #[arg(long)]
    ignore_calibration: bool,
}

/// Options and names that select parameters.
struct Wanted<'a> {
    args: &'a Args,
    /// Patterns that select parameters by name. If empty, all parameters are selected.
    names: Vec<Pattern>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let (qgc, octave) = (Format::Qgc, Format::Octave);
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv, qgc, octave])?;
    let (logs, names) = logs_and_names(&args.words);
    let names = names.iter().map(|name| Pattern::new(name).map_err(Failure::usage));
    let wanted = Wanted { args, names: names.collect::<Result<_, Failure>>()? };
    let inputs = Input::all(&logs)?;
    // Two logs are compared only if the user names both files. Two logs in a folder are shown as a
    // table.
    let two_files = logs.len() == 2 && !logs.iter().any(|log| may_be_several(log));
    if (format == qgc || format == octave) && inputs.len() > 1 {
        return Err(Failure::usage(
            "this output format can contain the parameters of only one log, but several logs are named",
        )
        .next("name only one log"));
    }
    match inputs.as_slice() {
        [input] => one(input, &wanted, format, context),
        [a, b] if two_files && wanted.names.is_empty() => {
            if args.changed {
                return Err(Failure::usage("--changed cannot be used if two logs are compared")
                    .next("leave out --changed, or name only one log"));
            }
            let ((log_a, params_a), (log_b, params_b)) = (wanted.read(a, context)?, wanted.read(b, context)?);
            let status = context.notices.end_of_log(log_a.as_log(), &a.path);
            compare::compare((&a.path, &params_a), (&b.path, &params_b), format, context)?;
            Ok(status.max(context.notices.end_of_log(log_b.as_log(), &b.path)))
        }
        inputs => {
            let mut rows = Vec::new();
            let status = Input::for_all(inputs, context, |input| {
                let (log, params) = wanted.read(input, context)?;
                rows.push((input.name(), params));
                Ok(context.notices.end_of_log(log.as_log(), &input.path))
            })?;
            table::write(&rows, format, context)?;
            Ok(status)
        }
    }
}

/// Shows the parameters of one log.
fn one(input: &Input, wanted: &Wanted<'_>, format: Format, context: &Context) -> Outcome {
    let (log, params) = wanted.read(input, context)?;
    let mut status = context.notices.end_of_log(log.as_log(), &input.path);
    if format == Format::Octave {
        list::octave(&params, context)?;
    } else if format == Format::Qgc {
        let left_out = list::qgc(&params, context)?;
        for name in &left_out {
            let text =
                format!("parameter {name} is left out, because QGroundControl supports only int32 and float");
            context.notices.warn("parameters that QGroundControl does not support", &text);
        }
        status = if left_out.is_empty() { status } else { status.max(Status::Lost) };
    } else {
        let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
        list::list(&input.path, &params, &times, format, context)?;
    }
    Ok(status)
}

impl Wanted<'_> {
    /// Opens a log and returns it together with its selected parameters.
    fn read(&self, input: &Input, context: &Context) -> Result<(AnyLog, BTreeMap<String, Param>), Failure> {
        let args = self.args;
        let log = input.open(context)?;
        let here = |failure: Failure| failure.at(&input.path);
        let mut params = parameters(&log).ok_or_else(|| {
            let text = format!("{} logs have no parameters", log.format().name);
            here(Failure::usage(text).next("show a summary of the log: rovelog info FILE"))
        })?;
        let matches = |pattern: &Pattern| params.keys().any(|name| pattern.matches(name));
        if let Some(name) = self.names.iter().find(|pattern| !matches(pattern)).map(Pattern::as_str) {
            let near = suggest(name, params.keys().map(String::as_str), "rovelog params FILE");
            return Err(here(Failure::usage(format!("the log has no parameter {name}")).next(near)));
        }
        if let Some(at) = &args.at {
            let until =
                context.times(log.info()).and_then(|times| at.resolve("--at", &times)).map_err(here)?;
            for param in params.values_mut() {
                param.move_to(until);
            }
        }
        params.retain(|name, param| {
            (self.names.is_empty() || self.names.iter().any(|pattern| pattern.matches(name)))
                && (!args.changed || param.is_changed())
                && !(args.ignore_calibration && is_calibration(name))
        });
        Ok((log, params))
    }
}
