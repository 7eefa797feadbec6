#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! All functions of the C interface are in [`border`], which is the only module with `unsafe`. The
//! other modules contain the code behind it.
//!
//! The C types and the Rust types of a function have the same representation, so the signatures
//! state what C programs may pass:
//!
//! | Rust | C |
//! |---|---|
//! | `Option<&RovelogLog>` | pointer to an open log, or `NULL` |
//! | `Option<Box<RovelogLog>>` | pointer whose owner must close the log, or `NULL` |
//! | `Option<&mut MaybeUninit<T>>` | pointer to memory for a result, or `NULL` |

pub mod border;
mod error;
mod info;
mod log;
mod stream;

pub use error::{RovelogStatus, error_text};
pub use log::{RovelogLog, RovelogProblem, RovelogSeverity, RovelogTopic};
pub use stream::TopicStream;
