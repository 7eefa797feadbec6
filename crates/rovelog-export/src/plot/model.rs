//! Model of a plot: panels of lines, and the size of the picture.

use super::series::Series;

/// Lines that share their axes.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Panel {
    /// Title above the panel.
    pub title: String,
    /// The lines.
    pub series: Vec<Series>,
}

impl Panel {
    /// Returns a panel with its lines.
    pub fn new(title: impl Into<String>, series: Vec<Series>) -> Self {
        Self { title: title.into(), series }
    }

    /// Returns panels with one unit each, in the order of their first lines.
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

    /// Returns the unit that all lines share, if they share one.
    pub(crate) fn unit(&self) -> Option<&str> {
        let unit = self.series.first()?.unit.as_deref()?;
        self.series.iter().all(|series| series.unit.as_deref() == Some(unit)).then_some(unit)
    }
}

/// Panels above each other, over the same time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Plot {
    /// Title above all panels.
    pub title: String,
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// Time range that is shown, in seconds after `zero`.
    pub span: (f64, f64),
    /// Label of the time axis: `s since 2026-05-20T11:58:32Z`.
    pub time_label: String,
}

impl Plot {
    /// Returns a plot over a time range in seconds.
    pub fn new(
        title: impl Into<String>,
        panels: Vec<Panel>,
        span: (f64, f64),
        time: impl Into<String>,
    ) -> Self {
        Self { title: title.into(), panels, span, time_label: time.into() }
    }
}

/// Size of a picture in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}
