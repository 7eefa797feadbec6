//! Output formats.

use clap::ValueEnum;

/// Format of the printed results, selected by `-f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Ndjson,
    Csv,
    /// Parameter file of QGroundControl.
    Qgc,
    /// Parameter file in the text format of GNU Octave.
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
