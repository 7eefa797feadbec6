//! Colors and dash patterns of lines, and colors of states and flight modes.

use super::model::Theme;

/// Colors of a theme.
pub(crate) struct Colors {
    pub(crate) paper: &'static str,
    pub(crate) text: &'static str,
    pub(crate) faint: &'static str,
    pub(crate) grid: &'static str,
    pub(crate) frame: &'static str,
    /// Colors of lines. Together with [`DASHES`], people with any color vision deficiency can tell
    /// the lines apart. The contrast ratio to the background is at least 3.
    pub(crate) lines: [&'static str; 7],
    /// Fill colors of states and flight modes. Text on these colors has enough contrast.
    pub(crate) fills: [&'static str; 8],
}

const LIGHT: Colors = Colors {
    paper: "#ffffff",
    text: "#1d2330",
    faint: "#5b6472",
    grid: "#e4e7ec",
    frame: "#9aa2ae",
    lines: ["#0b6bb8", "#d1540a", "#05805a", "#a8458f", "#977100", "#0f8ca3", "#555b66"],
    fills: ["#cfe3f5", "#fbdcc6", "#cdeadd", "#efd6e9", "#f3e6b8", "#cdeaf0", "#dfe2e8", "#e2d9f5"],
};

const DARK: Colors = Colors {
    paper: "#14181f",
    text: "#e8ebf0",
    faint: "#a3acba",
    grid: "#2a313c",
    frame: "#5f6977",
    lines: ["#5cb0f5", "#ff9552", "#3fcf9f", "#e68fd0", "#e5c04a", "#57d3e8", "#b5bcc8"],
    fills: ["#1f3d5a", "#5a3620", "#1d4a3a", "#4d2c48", "#4a4118", "#1b454e", "#3a414d", "#3b3159"],
};

/// Colors of a spectrogram, from the lowest density to the highest. They are samples of the color
/// map viridis, whose brightness increases evenly.
pub(crate) const HEAT: [&str; 16] = [
    "#440154", "#481a6c", "#472f7d", "#414487", "#39568c", "#31688e", "#2a788e", "#23888e", "#1f988b",
    "#22a884", "#35b779", "#54c568", "#7ad151", "#a5db36", "#d2e21b", "#fde725",
];

/// Dash patterns of lines, given as the lengths of strokes and gaps. The first 7 lines use the
/// first pattern, the next 7 lines use the second pattern, and so on.
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];

impl Theme {
    pub(crate) const fn colors(self) -> &'static Colors {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

impl Colors {
    /// Returns the color and dash pattern of the line with the index `i`.
    pub(crate) fn line(&self, i: usize) -> (&'static str, &'static str) {
        (self.lines[i % self.lines.len()], DASHES[i / self.lines.len() % DASHES.len()])
    }

    /// Returns the fill color of the state or flight mode with the index `i`.
    pub(crate) fn fill(&self, i: usize) -> &'static str {
        self.fills[i % self.fills.len()]
    }
}
