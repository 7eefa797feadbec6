#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`answer`] answers the requests of the page and of the npm package. It is ordinary Rust, which
//!   is tested without a browser.
//! - `border` contains the functions that JavaScript calls, and `file` the file that JavaScript
//!   reads for them. Both exist only in WebAssembly, and contain all `unsafe`.

#[cfg(target_arch = "wasm32")]
mod border;
mod columns;
#[cfg(target_arch = "wasm32")]
mod file;
mod requests;

pub use requests::{Reply, answer, answer_without_log};
