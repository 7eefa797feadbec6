//! PNG and PDF in a build without the feature `pictures`: an error.

use std::io::Write;

use super::model::Picture;
use crate::ExportError;

pub(super) fn png(_svg: &str, _picture: &Picture, _out: impl Write) -> Result<(), ExportError> {
    Err(ExportError::Format("PNG is not built in: build with the feature `pictures`".to_owned()))
}

pub(super) fn pdf(_svg: &str, _out: impl Write) -> Result<(), ExportError> {
    Err(ExportError::Format("PDF is not built in: build with the feature `pictures`".to_owned()))
}
