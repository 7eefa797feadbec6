//! ROS message definitions: their text, their sums, and plans that decode payloads by them.
//!
//! Nothing here knows a bag: the text comes from anywhere, and it is parsed, never run. Section numbers
//! are those of `docs/formats/rosbag.md`.

mod catalogue;
#[cfg(feature = "arrow")]
mod columns;
mod md5;
mod plan;
mod text;
mod types;
mod value;

pub use catalogue::known;
pub(crate) use catalogue::name_of_sum;
#[cfg(feature = "arrow")]
pub(crate) use columns::RowBuilder;
pub use md5::{Sum, SumMatch};
pub use plan::{Fit, Kind, Plan, Slot};
pub use text::{Array, Constant, FieldText, FullText, MessageText, Primitive, SyntaxError};
pub use types::{DefinitionError, Type, Types};
