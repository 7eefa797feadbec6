//! What a command needs of a log, and the format that the user has named.

use rovelog::{AnyLog, Select};

use crate::context::Context;
use crate::failure::Failure;

/// What is read of a remote log.
pub(crate) enum Need<'a> {
    /// What its summary needs.
    Outline,
    /// The records that the command selects, by its summary.
    #[cfg_attr(not(feature = "remote"), expect(dead_code, reason = "no log of this build is remote"))]
    Part(&'a dyn Fn(&AnyLog) -> Result<Select, Failure>),
    /// All of it.
    All,
}

/// Returns the id of the format given by the user. `bag` is a common name for ROS bags.
pub(crate) fn format(context: &Context) -> Option<&str> {
    context.global.input_format.as_deref().map(|format| if format == "bag" { "rosbag" } else { format })
}
