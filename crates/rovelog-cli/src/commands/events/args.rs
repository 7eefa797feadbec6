//! Arguments of `rovelog events`. The user may give log files and conditions in any order.

use std::path::{Path, PathBuf};

use rovelog_export::signal::Condition;

use crate::window::WindowArgs;

const EXAMPLES: &str = "\
A condition compares signals of any log (see rovelog plot --help for their names): with <, <=, >, \
>=, == and !=, joined by and, or and not. With 'for 2s' at its end, it must hold for that long \
without interruption. 'SIGNAL changes' holds at each change of the value. The rows are those of \
the first topic that the condition names; of other topics, the last values count.

For each time that a condition holds: when it starts, for how long (+ if until the last row), and \
minimum and maximum of what is compared. Without a condition, the events of a PX4 autopilot.

Examples:
  rovelog events flight.ulg 'battery_status.voltage_v < 14.8 for 2s'
  rovelog events flight.ulg 'vehicle_status.nav_state changes'
  rovelog events logs/ 'norm(sensor_combined.gyro_rad) > 5' -f csv
  rovelog events power.rld 'V1*I1 > 0.005 for 10ms' --exit-code && echo found
  rovelog events flight.ulg                    events, flight modes, arming
  rovelog events flight.ulg --all -f ndjson    internal events too
  rovelog messages flight.ulg                  the console messages";

/// Show when conditions hold, or the events, flight modes, arming and failsafes of an autopilot
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Log file, - for stdin; with conditions also several, folders and patterns
    #[arg(value_name = "FILE")]
    pub(super) arguments: Vec<PathBuf>,
    /// Include events that are not meant for people: check reports, protocol events
    #[arg(long)]
    pub(super) all: bool,
    /// With conditions: exit with 1 if none ever holds
    #[arg(long)]
    pub(super) exit_code: bool,
    #[command(flatten)]
    pub(super) window: WindowArgs,
}

impl Args {
    /// Returns the argument as text if it is a condition such as `voltage_v < 3.4`. If a file with
    /// this name exists, the argument is treated as a log file.
    pub(super) fn condition(argument: &Path) -> Option<&str> {
        argument.to_str().filter(|text| Condition::looks_like_condition(text) && !argument.exists())
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.arguments.iter().filter(|argument| Self::condition(argument).is_none()).cloned().collect()
    }
}
