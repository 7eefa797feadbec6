#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod error;
mod file;
mod source;
mod store;
mod upload;

pub use address::Address;
pub use error::RemoteError;
pub use file::RemoteFile;
pub use source::Moved;
pub use store::Options;
pub use upload::upload;
