#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - `abi` declares the structures of the SDK.
//! - `border` has the exported symbols, and the functions that PlotJuggler calls.
//! - `host` calls the functions of PlotJuggler. Only `border` and `host` contain `unsafe` code.
//! - `import` reads a log.

mod abi;
mod border;
mod host;
mod import;
