//! What a record looks like, as data: one description from which its schema, its values, single
//! fields, its length, its bytes and its Arrow columns are made.
//!
//! A format describes a type with a [`Builder`]: ULog out of its format definitions, bags out of
//! message definitions, VEL out of its declarations. Nothing else knows how the bytes of a record
//! become values.

mod encode;
mod measure;
mod plan;
mod row;
mod scalar;
mod types;
mod value;

pub use encode::Misfit;
pub use measure::Fit;
#[doc(hidden)]
pub use plan::{At, Leaf, Plan, Plans, Visit};
pub use row::{Place, Row};
pub use scalar::{Number, encode_scalar, scalar_of, scalar_value};
pub use types::{Builder, Declared, DeclaredField, Element, Encoding, Layout, Len, Slot};
pub use value::{DecodeError, MAX_VALUES, text};
