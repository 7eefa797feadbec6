#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
pub mod lake;

mod plan;
mod read;
mod rows;
mod sources;
mod types;
mod union;
mod wanted;

pub use error::ScaleError;
pub use plan::{Part, Split, divide, plan};
pub use read::{Rowstream, read, schema};
pub use rows::COLUMNS;
pub use sources::{LogFile, find};
pub use wanted::Wanted;
