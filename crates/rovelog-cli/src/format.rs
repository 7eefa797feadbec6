//! Output formats.

use clap::ValueEnum;

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Ndjson,
    Csv,
    /// Parameters in the format of QGroundControl.
    Qgc,
    /// Parameters in the text format of GNU Octave.
    Octave,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Qgc => "qgc",
            Self::Octave => "octave",
        }
    }
}
