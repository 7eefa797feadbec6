//! Signals: values over time, by name, from any format.
//!
//! [`Signals::find`] is the one language of names: `TOPIC.FIELD`, a field alone where one topic has
//! it, lists and patterns, and expressions. [`each`] evaluates a signal in one pass, [`Condition`]
//! says when something holds, [`join`] makes one table of topics with different times.
//!
//! Everything is in time order. A row without a time is left out; memory does not grow with the log.

mod condition;
mod cursor;
mod derived;
mod expression;
mod extend;
mod find;
mod join;
mod near;
mod parse;
mod pattern;
mod program;
mod rows;
mod unit;

pub use condition::{Condition, Event};
pub use extend::Extended;
pub(crate) use find::label;
pub use find::{NoSignal, Signal, Signals, derived_fields, measured_fields, numeric_fields};
pub use join::{Base, JoinOptions, Joined, Method, check_regular_rows, join};
pub use near::near;
pub use pattern::{Pattern, split_list};
pub(crate) use program::{Columns, Program, timed};
pub use rows::{Stream, each};
