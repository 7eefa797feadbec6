#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg_attr(not(feature = "remote"), path = "no_buckets.rs")]
mod buckets;
mod error;
#[cfg(feature = "lake")]
pub mod lake;
mod log_file;
#[cfg(feature = "lake")]
mod open_logs;
#[cfg(feature = "lake")]
mod plan;
#[cfg(feature = "lake")]
mod read;
#[cfg(feature = "lake")]
mod rows;
mod sources;
#[cfg(feature = "lake")]
mod types;
#[cfg(feature = "lake")]
mod union;
#[cfg(feature = "lake")]
mod wanted;

pub use error::ScaleError;
pub use log_file::{COMPRESSED, is_log};
#[cfg(feature = "lake")]
pub use open_logs::OpenLogs;
#[cfg(feature = "lake")]
pub use plan::{Part, Split, divide, plan};
#[cfg(feature = "lake")]
pub use read::{Rowstream, read, read_with, schema, schema_with};
#[cfg(feature = "lake")]
pub use rows::COLUMNS;
pub use sources::{LogFile, find};
#[cfg(feature = "lake")]
pub use wanted::{Wanted, split_instance};
