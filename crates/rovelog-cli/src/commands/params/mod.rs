//! `rovelog params`: the parameters of a log, or the differences of two logs.

mod compare;
mod list;
pub(super) mod model;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rovelog::AnyLog;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArg};
use crate::when::Moment;
use model::{Param, is_calibration, parameters};

const MORE: &str = "\
The value of a parameter is its value at the start of the log; changes are listed after it. Two \
logs are compared by these start values: ~ differs, - only in the first, + only in the second.

Examples:
  rovelog params flight.ulg
  rovelog params flight.ulg --changed          changed in flight or before
  rovelog params flight.ulg --at +1m30s        the values active at a time
  rovelog params flight.ulg -f qgc > flight.params   for QGroundControl
  rovelog params before.ulg after.ulg --ignore-calibration";

/// Show the parameters of a log, or compare two logs
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    /// Second log to compare with
    #[arg(value_name = "B")]
    other: Option<PathBuf>,
    /// Only parameters that differ from a default stored in the log, or that changed during the log
    #[arg(long, conflicts_with = "other")]
    changed: bool,
    /// Show the values that were active at this time: +10s, 112.5s, 12:01:05
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<Moment>,
    /// Skip parameters that differ between any two vehicles: calibration, flight counters
    #[arg(long)]
    ignore_calibration: bool,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let (qgc, octave) = (Format::Qgc, Format::Octave);
    let format = context.format(&[Format::Text, Format::Json, Format::Ndjson, Format::Csv, qgc, octave])?;
    if (format == qgc || format == octave) && args.other.is_some() {
        return Err(Failure::usage("this format is for the parameters of one log").next("leave out B"));
    }
    let input = args.log.input()?;
    let (log, params) = read(&input, args, context)?;
    let mut status = context.notices.loss(&log.info().lost, &input.path);
    if let Some(other) = &args.other {
        let other = Input::new(Some(other))?;
        let (other_log, others) = read(&other, args, context)?;
        compare::compare((&input.path, &params), (&other.path, &others), format, context)?;
        status = status.max(context.notices.loss(&other_log.info().lost, &other.path));
    } else if format == Format::Octave {
        list::octave(&params, context)?;
    } else if format == Format::Qgc {
        let left_out = list::qgc(&params, context)?;
        for name in &left_out {
            let text =
                format!("{name} is neither int32 nor float, which is all that QGroundControl supports");
            context.notices.warn("parameters that QGroundControl does not support", &text);
        }
        status = if left_out.is_empty() { status } else { status.max(Status::Lost) };
    } else {
        let times = context.times(log.info()).map_err(|failure| failure.at(&input.path))?;
        list::list(&input.path, &params, &times, format, context)?;
    }
    Ok(status)
}

fn read(input: &Input, args: &Args, context: &Context) -> Result<(AnyLog, BTreeMap<String, Param>), Failure> {
    let log = input.open(context)?;
    let mut params = parameters(&log).ok_or_else(|| {
        Failure::usage(format!("{} logs have no parameters", log.format().name))
            .next("show the log: rovelog info FILE")
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
