#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod error;
mod file;
mod list;
mod origin;
mod redirect;
mod source;
mod store;
mod upload;
mod wait;

pub use address::Address;
pub use error::RemoteError;
pub use file::RemoteFile;
pub use list::{Found, head, list};
pub use origin::{Moved, Origin, Take};
pub use store::Options;
pub use upload::upload;
