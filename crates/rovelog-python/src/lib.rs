//! The compiled part of the Python package `rovelog`: what Python cannot do fast, or at all.
//!
//! The package's public face is in `python/rovelog`; nothing here is public. Rules of this crate: all work on a
//! log runs without the interpreter's lock and inside a net for panics ([`errors::run`]); memory that
//! Python sees belongs to an object that Python holds; signals are looked at between pieces of work.

#![allow(clippy::needless_pass_by_value, reason = "Python hands arguments over by value")]

mod errors;
mod export;
mod maker;
mod matrix;
mod memory;
mod parallel;
mod power;
mod reader;
mod records;
mod rld;
mod rosbag;
mod select;
mod stamp;
mod stream;
mod table;
mod ulog;
mod values;
mod vel;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command line; the exit code.
#[pyfunction]
fn main(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    errors::run(py, || rovelog_cli::run(args))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<memory::Leaf>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<records::Message>()?;
    module.add_class::<records::Messages>()?;
    module.add_class::<table::Batches>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(errors::panic_on_purpose, module)?)?;
    module.add_function(wrap_pyfunction!(reader::formats, module)?)?;
    module.add_function(wrap_pyfunction!(rosbag::bag_connections, module)?)?;
    module.add_function(wrap_pyfunction!(rosbag::bag_messages, module)?)?;
    module.add_class::<rosbag::BagMessages>()?;
    module.add_class::<stamp::Duration>()?;
    module.add_class::<stamp::Time>()?;
    export::register(module)?;
    power::register(module)?;
    rld::register(module)?;
    ulog::register(module)?;
    vel::register(module)
}
