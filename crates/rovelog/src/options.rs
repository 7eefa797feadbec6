//! Builder for opening a log of any format: [`options`].

use std::path::Path;

use rovelog_core::open::{Open, OpenOptions};
use rovelog_core::{Bytes, LogReader, ReadOptions, Result};

use crate::{AnyLog, from_bytes, open_with};

/// The type parameter of [`OpenOptions`] for opening a log of any built-in format.
#[derive(Debug)]
pub struct AnyFormat;

impl Open for AnyFormat {
    type Reader = AnyLog;

    fn open_path(path: &Path, options: &ReadOptions) -> Result<AnyLog> {
        open_with(path, options)
    }

    fn open_bytes(bytes: Bytes, options: &ReadOptions) -> Result<AnyLog> {
        from_bytes(bytes, options)
    }

    fn as_log(log: &AnyLog) -> &dyn LogReader {
        &**log
    }
}

/// Returns a builder that sets options and then opens a log of any format.
///
/// ```no_run
/// let log = rovelog::options().strict(true).open("flight.ulg")?;
/// # Ok::<(), rovelog::Error>(())
/// ```
pub fn options() -> OpenOptions<AnyFormat> {
    OpenOptions::new()
}
