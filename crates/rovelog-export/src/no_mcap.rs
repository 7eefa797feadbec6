//! Replaces the module `mcap` in a build without the feature `mcap`. This module has the same
//! options and functions, but each function returns an error.

#[path = "mcap/options.rs"]
mod options;

use std::io::Write;

pub use options::{McapCompression, McapOptions, RosForm};
use rovelog::{AnyLog, Select};

use crate::{ExportError, Exported, Provenance};

/// Returns an error, because this build cannot write MCAP.
///
/// # Errors
/// Always returns an error.
pub fn write(
    _log: &AnyLog,
    _select: &Select,
    _options: &McapOptions,
    _provenance: &Provenance,
    _out: &mut dyn Write,
    _progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    Err(ExportError::NotBuiltIn { what: "MCAP", feature: "mcap" })
}
