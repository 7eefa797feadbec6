//! Bags made of bags: recovering what a damaged one still holds, a part of one, several as one.

mod chunked;
mod lost;
mod output;
mod parts;
mod recover;

pub use lost::LostMessage;
pub(crate) use parts::{merge, slice};
pub use recover::Part;
pub(crate) use recover::recover;
