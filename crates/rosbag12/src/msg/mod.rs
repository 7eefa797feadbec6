//! ROS message definitions: their text, their md5 sums, and layouts that decode payloads.
//!
//! This module does not depend on bags, so definitions may come from any source. Definitions are
//! only parsed, never executed. Section numbers in this module refer to `docs/formats/rosbag.md`.

mod catalogue;
pub mod files;
mod layout;
mod md5;
mod text;
mod types;

pub use catalogue::known;
pub(crate) use catalogue::name_of_sum;
pub use md5::{Sum, SumMatch};
pub use text::{Array, Constant, FieldText, FullText, MessageText, Primitive, SyntaxError};
pub use types::{DefinitionError, Type, Types};
