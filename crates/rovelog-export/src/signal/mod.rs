//! Signals: values over time, selected by name from logs of any format.
//!
//! - [`Signals::find`] looks up signals. It accepts `TOPIC.FIELD`, a field alone if only one topic
//!   has the field, patterns such as `q[*]`, and expressions such as `V1 * I1H`.
//! - [`each`] evaluates a signal in one pass over the log.
//! - [`Condition`] finds the events during which a condition holds, such as `V1 < 3.4 for 2s`.
//! - [`join`] combines topics with different times into one table.
//!
//! All these functions visit rows in time order and skip rows without a time. Their memory use does
//! not grow with the log.

mod condition;
mod cursor;
mod derived;
mod expression;
mod extend;
mod fields;
mod find;
mod function;
mod join;
mod measure;
mod parse;
mod pattern;
mod program;
mod rows;
mod suggest;
mod unit;

pub use condition::{Condition, Event};
pub use extend::Extended;
pub use fields::{derived_fields, measured_fields, numeric_fields};
pub(crate) use find::label;
pub use find::{Signal, Signals};
pub use join::{Base, JoinOptions, Joined, Method, check_regular_rows, join};
pub use pattern::{Pattern, split_list};
pub(crate) use program::{Columns, Program, timed};
pub use rows::{Stream, each};
pub(crate) use suggest::nearest;
pub use suggest::{NoSignal, suggest};
pub(crate) use unit::integral_unit;
