//! Logs made of logs: recovering what a damaged one still holds, a part of one, several as one.

mod described;
mod merge;
mod recover;
mod segments;
mod session;
mod slice;
mod topics;
mod trust;

pub(crate) use merge::merge;
pub(crate) use recover::recover;
pub(crate) use slice::slice;
