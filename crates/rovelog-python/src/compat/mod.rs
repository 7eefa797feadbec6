//! Functions for the drop-ins for older packages only, one file for each; `python/rovelog/compat`
//! uses them.

mod maker;
mod matrix;
pub(crate) mod pyulog;
pub(crate) mod rocketlogger;
pub(crate) mod rosbag;
pub(crate) mod stamp;
