//! Replaces the module `raster`, which writes PNG and PDF, in a build without the feature
//! `pictures`. Both functions return an error.

use std::io::Write;

use super::model::Picture;
use crate::ExportError;

pub(super) fn png(_svg: &str, _picture: &Picture, _out: impl Write) -> Result<(), ExportError> {
    Err(ExportError::NotBuiltIn { what: "PNG", feature: "pictures" })
}

pub(super) fn pdf(_svg: &str, _out: impl Write) -> Result<(), ExportError> {
    Err(ExportError::NotBuiltIn { what: "PDF", feature: "pictures" })
}
