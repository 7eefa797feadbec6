//! V2.0 bags, whose messages are stored in chunks. Chunks may be compressed with lz4 or bz2.

mod buffer;
mod chunks;
mod collect;
mod compression;
mod content;
mod index;
mod loader;
#[cfg(feature = "compressed")]
mod lz4;
mod open;
mod order;
pub(crate) mod partial;
mod probe;
mod records;
mod rewrite;
mod scan;
mod stream;
mod structure;
mod template;
#[cfg(test)]
mod tests;
mod verify;
pub mod wire;
mod writer;

#[cfg(feature = "arrow")]
pub(crate) use chunks::ChunkPass;
pub use compression::Compression;
pub(crate) use compression::DecompressionLimit;
pub(crate) use content::{Content, Origin, OriginRecord};
pub(crate) use loader::buffer_bytes;
pub(crate) use order::{MergeForm, MessageMerge};
pub(crate) use probe::first_record;
pub(crate) use rewrite::{CALLER, edit_payload, rewrite};
pub(crate) use stream::ChunkedStream;
pub(crate) use template::HeadReader;
pub(crate) use verify::Comparison;
pub(crate) use writer::NewConnection;
pub use writer::{Writer, write};
