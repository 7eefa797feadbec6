//! Bags made of bags: recovering what a damaged one still holds, a part of one, several as one.

mod chunked;
mod output;
mod parts;
mod recover;

pub(crate) use parts::{merge, slice};
pub(crate) use recover::recover;
pub use recover::{LostMessage, Part};
