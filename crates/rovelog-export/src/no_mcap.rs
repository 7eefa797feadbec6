//! MCAP in a build without the feature `mcap`: its options, and an error.

#[path = "mcap/options.rs"]
mod options;

use std::io::Write;

pub use options::{McapCompression, McapOptions, RosForm, VelodyneOptions};
use rovelog::{AnyLog, Select};

use crate::{ExportError, Exported, Provenance};

/// Returns an error: this build writes no MCAP.
///
/// # Errors
/// Returns an error in every case.
pub fn write<W: Write>(
    _log: &AnyLog,
    _select: &Select,
    _options: &McapOptions,
    _provenance: &Provenance,
    _out: W,
    _progress: &mut dyn FnMut(u64),
) -> Result<Exported<W>, ExportError> {
    Err(ExportError::NotBuiltIn { what: "MCAP", feature: "mcap" })
}
