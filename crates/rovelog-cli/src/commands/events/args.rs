//! Arguments of `rovelog events`. The user may give log files and conditions in any order.

use std::path::{Path, PathBuf};

use clap_complete::ArgValueCompleter;
use rovelog_export::signal::Condition;

use crate::select::signal_names;
use crate::window::WindowArgs;

const EXAMPLES: &str = "\
A condition compares signals with <, <=, >, >=, == or !=. Comparisons can be joined with and, or \
and not. If the condition ends with 'for 2s', it must hold for that long without interruption. \
'SIGNAL changes' holds at each change of the value. For the names of signals, see rovelog plot \
--help. A condition is evaluated at each row of the first topic that it names. For other topics, \
the latest value is used.

Each output line is a period in which a condition holds. It shows when the period starts, how long \
it lasts (with + if it lasts until the last row), and the minimum and maximum of the compared \
value. Without a condition, the events of a PX4 autopilot are shown.

Examples:
  rovelog events flight.ulg 'battery_status.voltage_v < 14.8 for 2s'
  rovelog events flight.ulg 'vehicle_status.nav_state changes'
  rovelog events logs/ 'norm(sensor_combined.gyro_rad) > 5' -f csv
  rovelog events power.rld 'V1*I1 > 0.005 for 10ms' --exit-code && echo found
  rovelog events flight.ulg                    events, flight modes, arming
  rovelog events flight.ulg --all -f ndjson    internal events too
  rovelog messages flight.ulg                  the console messages";

/// Show when a condition holds or, without a condition, the events, flight modes, arming and
/// failsafes of an autopilot
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Log file (- for stdin), optionally followed by conditions such as 'voltage < 14'. With a
    /// condition, several log files, folders and patterns ('*.ulg') are allowed
    #[arg(value_name = "FILE", add = ArgValueCompleter::new(signal_names))]
    pub(super) arguments: Vec<PathBuf>,
    /// Also show internal events, such as check reports and protocol events
    #[arg(long)]
    pub(super) all: bool,
    /// With conditions: exit with code 1 instead of 0 if no condition holds at any time
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
