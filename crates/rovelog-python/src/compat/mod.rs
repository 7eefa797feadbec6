//! What only the drop-ins for older packages need, a file for each; `python/rovelog/compat` is built on it.

mod maker;
mod matrix;
mod parallel;
pub(crate) mod pyulog;
pub(crate) mod rocketlogger;
pub(crate) mod rosbag;
pub(crate) mod stamp;
