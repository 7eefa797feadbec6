//! The compiled part of the Python package `rovelog`.
//!
//! The public interface of the package is in the folder `python/rovelog`. All items in this crate
//! are private to the package. They follow three rules:
//!
//! - A function that works on a log releases the GIL, the global lock of the interpreter, so that
//!   other Python threads can run. A panic becomes a Python exception (see [`errors::run`]).
//! - Memory that numpy uses belongs to a Python object. The numpy array keeps this object alive.
//! - A function that takes long checks periodically for signals, so that Ctrl-C ends it.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 passes arguments by value")]

mod cli;
mod compat;
mod errors;
mod export;
mod findings;
mod lake;
mod memory;
mod methods;
mod origin;
mod output;
mod parallel;
mod plot;
mod python_terms;
mod reader;
mod records;
mod remote;
mod resolve;
mod rld;
mod rosbag;
mod scale;
mod select;
mod signal;
mod stream;
mod table;
mod ulog;
mod values;
mod vel;

/// The Python module `rovelog._core`. The stub file `_core.pyi` declares the types of all its
/// items.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python prescribes this name")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::cli::{diff, main};
    #[pymodule_export]
    use crate::compat::pyulog::{ulog_header, ulog_messages, ulog_rows, ulog_subscriptions};
    #[pymodule_export]
    use crate::compat::rocketlogger::{
        rld_block_times, rld_header, rld_join, rld_matrix, rld_raw, rld_times,
    };
    #[pymodule_export]
    use crate::compat::rosbag::{BagMessages, bag_messages, bag_types};
    #[pymodule_export]
    use crate::compat::stamp::{Duration, Time};
    #[pymodule_export]
    use crate::errors::panic_on_purpose;
    #[pymodule_export]
    use crate::export::{export_kind, export_logger_csv, export_names, export_records, export_tables};
    #[pymodule_export]
    use crate::findings::log_findings;
    #[pymodule_export]
    use crate::lake::{lake_answer, lake_ingest};
    #[pymodule_export]
    use crate::memory::{Leaf, Memory};
    #[pymodule_export]
    use crate::methods::formats;
    #[pymodule_export]
    use crate::output::{PartialFile, next_step};
    #[pymodule_export]
    use crate::plot::plot_svg;
    #[pymodule_export]
    use crate::python_terms::in_python_for_tests;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::records::{_message, Message, Messages};
    #[pymodule_export]
    use crate::rld::{rld_currents, rld_energy, rld_merged};
    #[pymodule_export]
    use crate::rosbag::bag_connections;
    #[pymodule_export]
    use crate::scale::{ScaleSchema, SplitRows, scale_divide, scale_find, scale_read, scale_schema};
    #[pymodule_export]
    use crate::signal::{
        check_regular_rows, duration_ns, log_time_of, signal_events, signal_join, signal_values, unix_of,
        utc_ns,
    };
    #[pymodule_export]
    use crate::table::{Batches, Table};
    #[pymodule_export]
    use crate::ulog::{ulog_dropouts, ulog_events, ulog_infos, ulog_modes, ulog_parameters};
    #[pymodule_export]
    use crate::vel::{vel_image, vel_images, vel_revolutions};
}
