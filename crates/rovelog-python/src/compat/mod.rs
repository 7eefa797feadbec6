//! Functions for the package `rovelog.compat`, which contains drop-in replacements for the Python
//! packages pyulog, rosbag and rocketlogger.

mod maker;
mod matrix;
pub(crate) mod pyulog;
pub(crate) mod rocketlogger;
pub(crate) mod rosbag;
pub(crate) mod stamp;
