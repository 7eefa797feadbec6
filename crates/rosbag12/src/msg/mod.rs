//! ROS message definitions: their text, their sums, and layouts by which payloads decode.
//!
//! Nothing here knows a bag: the text comes from anywhere, and it is parsed, never run. Section
//! numbers are those of `docs/formats/rosbag.md`.

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
