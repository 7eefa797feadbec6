//! Bags of V2.0: records in chunks, which may be compressed.

mod ahead;
mod buffer;
mod compare;
mod heads;
mod index;
mod inner;
mod learn;
#[cfg(feature = "compressed")]
mod lz4;
mod open;
mod order;
pub(crate) mod partial;
mod pass;
mod probe;
mod scan;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod unpack;
pub mod wire;
mod writer;

pub(crate) use compare::Comparison;
pub(crate) use heads::Heads;
pub(crate) use order::InTime;
#[cfg(feature = "arrow")]
pub(crate) use pass::Pass;
pub(crate) use probe::first_record;
pub(crate) use state::{Origin, State};
pub(crate) use stream::{Arrived, At, Streamed};
pub(crate) use unpack::Cap;
pub use unpack::Compression;
pub use writer::{Writer, write};
