//! Colors and dashes of lines, states and bands.

use super::model::Theme;

/// Colors of a theme.
pub(crate) struct Colours {
    pub(crate) paper: &'static str,
    pub(crate) text: &'static str,
    pub(crate) faint: &'static str,
    pub(crate) grid: &'static str,
    pub(crate) frame: &'static str,
    /// Line colors. Together with [`DASHES`] they can be told apart with any color vision
    /// deficiency, and have a contrast of at least 3 to the background.
    pub(crate) lines: [&'static str; 7],
    /// Fill colors of states and flight modes, which leave enough contrast for text on them.
    pub(crate) fills: [&'static str; 8],
}

const LIGHT: Colours = Colours {
    paper: "#ffffff",
    text: "#1d2330",
    faint: "#5b6472",
    grid: "#e4e7ec",
    frame: "#9aa2ae",
    lines: ["#0b6bb8", "#d1540a", "#05805a", "#a8458f", "#977100", "#0f8ca3", "#555b66"],
    fills: ["#cfe3f5", "#fbdcc6", "#cdeadd", "#efd6e9", "#f3e6b8", "#cdeaf0", "#dfe2e8", "#e2d9f5"],
};

const DARK: Colours = Colours {
    paper: "#14181f",
    text: "#e8ebf0",
    faint: "#a3acba",
    grid: "#2a313c",
    frame: "#5f6977",
    lines: ["#5cb0f5", "#ff9552", "#3fcf9f", "#e68fd0", "#e5c04a", "#57d3e8", "#b5bcc8"],
    fills: ["#1f3d5a", "#5a3620", "#1d4a3a", "#4d2c48", "#4a4118", "#1b454e", "#3a414d", "#3b3159"],
};

/// Dash patterns as lengths of stroke and gap. The next pattern is used when all colors have been
/// used.
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];

impl Theme {
    pub(crate) const fn colours(self) -> &'static Colours {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }
}

impl Colours {
    /// Returns the color and dashes of a line.
    pub(crate) fn line(&self, i: usize) -> (&'static str, &'static str) {
        (self.lines[i % self.lines.len()], DASHES[i / self.lines.len() % DASHES.len()])
    }

    /// Returns the fill color of a state or flight mode.
    pub(crate) fn fill(&self, i: usize) -> &'static str {
        self.fills[i % self.fills.len()]
    }
}
