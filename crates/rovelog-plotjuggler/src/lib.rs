#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - `abi` declares the structures of the SDK.
//! - `border` contains all `unsafe` code: the exported symbols, the functions that PlotJuggler calls,
//!   and calls of PlotJuggler's functions.
//! - `import` reads a log.

mod abi;
mod border;
mod import;
