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
    use crate::{
        cli::{diff, main},
        compat::pyulog::{ulog_header, ulog_messages, ulog_rows, ulog_subscriptions},
        compat::rocketlogger::{rld_block_times, rld_header, rld_join, rld_matrix, rld_raw, rld_times},
        compat::rosbag::{BagMessages, bag_messages, bag_types},
        compat::stamp::{Duration, Time},
        errors::panic_on_purpose,
        export::{export_kind, export_logger_csv, export_names, export_records, export_tables},
        findings::log_findings,
        lake::{lake_answer, lake_ingest},
        memory::{Leaf, Memory},
        methods::formats,
        output::{PartialFile, next_step},
        plot::plot_svg,
        python_terms::in_python_for_tests,
        reader::Reader,
        records::{_message, Message, Messages},
        rld::{rld_currents, rld_energy, rld_merged},
        rosbag::bag_connections,
        scale::{ScaleSchema, SplitRows, scale_divide, scale_find, scale_read, scale_schema},
        signal::{
            check_regular_rows, duration_ns, log_time_of, signal_events, signal_join, signal_values, unix_of,
            utc_ns,
        },
        table::{Batches, Table},
        ulog::{ulog_dropouts, ulog_events, ulog_infos, ulog_modes, ulog_parameters},
        vel::{vel_image, vel_images, vel_revolutions},
    };
}
