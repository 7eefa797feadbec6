//! [`options`]: the options with which a log of any format is opened.

use std::path::Path;

use rovelog_core::open::{Open, OpenOptions};
use rovelog_core::{Bytes, LogReader, ReadOptions, Result};

use crate::{AnyLog, from_bytes, open_with};

/// All built-in formats, for [`OpenOptions`].
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

/// Returns the options with which a log is opened.
///
/// ```no_run
/// let log = rovelog::options().strict(true).open("flight.ulg")?;
/// # Ok::<(), rovelog::Error>(())
/// ```
pub fn options() -> OpenOptions<AnyFormat> {
    OpenOptions::new()
}
