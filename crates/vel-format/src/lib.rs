#![forbid(unsafe_code)]
pub mod declared;
pub mod diagnostics;
mod error;
mod frame;
pub mod hash;
mod locate;
pub mod message;
mod plausible;
pub mod schema;
mod window;
pub mod wire;
pub use error::VelError;
pub use hash::simple_hash;
pub use message::SizeRule;
pub(crate) const ID: &str = "vel";
