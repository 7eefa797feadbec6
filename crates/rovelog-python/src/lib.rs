//! The compiled part of the Python package `rovelog`: everything that Python cannot do, or not
//! fast.
//!
//! The package's public interface is in `python/rovelog`; nothing here is public. Rules of this
//! crate: all work on a log runs without the GIL and with panics caught ([`errors::run`]); memory
//! that Python sees belongs to an object that Python holds; signals are checked between pieces of
//! work.

#![allow(clippy::needless_pass_by_value, reason = "Python hands arguments over by value")]

mod cli;
mod compat;
mod errors;
mod export;
mod lake;
mod memory;
mod methods;
mod origin;
mod output;
mod parallel;
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
mod words;

/// Everything that Python sees; `_core.pyi` has the same list with its types.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name is Python's")]
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
    use crate::compat::rosbag::{BagMessages, bag_messages};
    #[pymodule_export]
    use crate::compat::stamp::{Duration, Time};
    #[pymodule_export]
    use crate::errors::panic_on_purpose;
    #[pymodule_export]
    use crate::export::{export_kind, export_logger_csv, export_names, export_records, export_tables};
    #[pymodule_export]
    use crate::lake::{lake_answer, lake_ingest};
    #[pymodule_export]
    use crate::memory::{Leaf, Memory};
    #[pymodule_export]
    use crate::methods::formats;
    #[pymodule_export]
    use crate::output::next_step;
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
    #[pymodule_export]
    use crate::words::shown;
}
