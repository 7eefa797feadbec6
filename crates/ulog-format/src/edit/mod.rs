//! Creation of logs from other logs: recovery of damaged logs, slices and merges.

mod descriptions;
mod guard;
mod merge;
mod recover;
mod rewrite;
mod segments;
mod session;
mod slice;
mod topics;

pub(crate) use merge::merge;
pub(crate) use recover::recover;
pub(crate) use rewrite::rewrite;
pub(crate) use slice::slice;
