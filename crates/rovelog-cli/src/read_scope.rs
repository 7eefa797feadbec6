//! Describes which parts of a log a command reads, and returns the log format given by the user.

use rovelog::{AnyLog, Select};

use crate::context::Context;
use crate::failure::Failure;

/// Parts of a log that a command needs. From a remote log, only these parts are downloaded. A local
/// log is read in the same way for any scope.
pub(crate) enum ReadScope<'a> {
    /// The parts needed for the summary of the log.
    Summary,
    /// The records that this function selects. The function is called with the summary of the log.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "no log of this build is remote"))]
    Records(&'a dyn Fn(&AnyLog) -> Result<Select, Failure>),
    /// The whole log.
    All,
}

/// Returns the id of the log format given by `--input-format`. The name `bag` is accepted for
/// `rosbag`.
pub(crate) fn input_format(context: &Context) -> Option<&str> {
    context.global.input_format.as_deref().map(|format| if format == "bag" { "rosbag" } else { format })
}
