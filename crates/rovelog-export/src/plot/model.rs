//! What is drawn: panels of lines, and the size of the picture.

use super::series::Series;

/// Lines that share their axes.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// The lines.
    pub series: Vec<Series>,
}

impl Panel {
    /// A panel with its lines.
    pub fn new(title: impl Into<String>, series: Vec<Series>) -> Self {
        Self { title: title.into(), series }
    }

    /// Panels of lines that share a unit: one for each unit, in the order of their first lines.
    pub fn by_unit(title: &str, series: Vec<Series>) -> Vec<Self> {
        let mut panels: Vec<Self> = Vec::new();
        for line in series {
            match panels.iter_mut().find(|panel| panel.series[0].unit == line.unit) {
                Some(panel) => panel.series.push(line),
                None => panels.push(Self::new(title, vec![line])),
            }
        }
        panels
    }

    /// The unit that all lines share, where they do.
    pub(crate) fn unit(&self) -> Option<&str> {
        let unit = self.series.first()?.unit.as_deref()?;
        self.series.iter().all(|series| series.unit.as_deref() == Some(unit)).then_some(unit)
    }
}

/// Panels above each other, over the same time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Plot {
    /// What stands above all panels.
    pub title: String,
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// The span of time that is shown, seconds after `zero`.
    pub span: (f64, f64),
    /// What the times count from, in words: `s since 2026-05-20T11:58:32Z`.
    pub time_label: String,
}

impl Plot {
    /// A plot over a span of time, in seconds.
    pub fn new(
        title: impl Into<String>,
        panels: Vec<Panel>,
        span: (f64, f64),
        time: impl Into<String>,
    ) -> Self {
        Self { title: title.into(), panels, span, time_label: time.into() }
    }
}

/// A picture's size in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Across.
    pub width: u32,
    /// Down.
    pub height: u32,
}
