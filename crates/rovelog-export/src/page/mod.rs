//! Self-contained HTML pages with zoomable plots, drawn by uPlot. A page loads nothing from the
//! network.

use std::fmt::{self, Write};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::plot::{Look, Panel, Plot, Series, Theme};
use crate::xml::escape;

/// The script of uPlot, see assets/uPlot-LICENSE.txt.
pub const UPLOT: &str = include_str!("../../assets/uPlot-1.6.32.min.js");
/// Style sheet of uPlot.
pub const UPLOT_STYLE: &str = include_str!("../../assets/uPlot-1.6.32.min.css");
/// Script that draws panels with uPlot.
pub const CHARTS: &str = include_str!("charts.js");
/// Style sheet of all pages.
pub const STYLE: &str = include_str!("page.css");

/// Maximum number of points in a page. They take about 3.2 MB.
const MOST_POINTS: usize = 200_000;

/// Body of a page, and its sections for the navigation bar.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    sections: Vec<(&'static str, &'static str)>,
}

impl Page {
    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Starts a section. `title` is escaped, and may be longer than the text of the link to it.
    pub(crate) fn section(&mut self, id: &'static str, link: &'static str, title: &str) {
        self.sections.push((id, link));
        let _ = writeln!(self, "<h2 id=\"{id}\">{title}</h2>");
    }

    /// Returns the complete page. `theme` is the color scheme; `None` follows the reader's system.
    pub(crate) fn finish(self, title: &str, theme: Option<Theme>) -> String {
        let name = escape(title);
        let mut links = String::new();
        for (id, link) in &self.sections {
            let _ = write!(links, "<a href=\"#{id}\">{link}</a>");
        }
        let nav = if links.is_empty() { String::new() } else { format!("<nav>{links}</nav>\n") };
        let theme = match theme {
            Some(Theme::Light) => "light",
            Some(Theme::Dark) => "dark",
            None => "auto",
        };
        format!(
            "<!doctype html>\n<html lang=\"en\" data-theme=\"{theme}\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
             http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
             script-src 'unsafe-inline'; img-src data:\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<meta name=\"generator\" content=\"rovelog {}\">\n\
             <title>{name}</title>\n<style>\n{UPLOT_STYLE}\n{}</style>\n</head>\n<body>\n<header>\n<h1>{name}</h1>\n{nav}</header>\n\
             <main>\n{}</main>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            STYLE,
            self.text,
        )
    }

    /// Writes the plots, their data, and the script that draws them.
    pub(crate) fn charts(&mut self, plot: &Plot) {
        let mut plot = plot.clone();
        reduce(&mut plot);
        let clock = if plot.utc.is_some() { "" } else { " disabled" };
        let modes = !plot.bands.is_empty();
        let _ = write!(
            self,
            "<div class=\"tools\" role=\"toolbar\" aria-label=\"Plots\"><button id=\"fit\">Show all</button>\
             <label><input type=\"checkbox\" id=\"utc\"{clock}> UTC</label>\
             <span class=\"note\">Drag across a plot to zoom, double-click to show all; keys + &minus; f and \
             arrows. Click a name to hide its line.</span></div>\n\
             <noscript><p class=\"note\">The plots need JavaScript; everything else does not.</p></noscript>\n"
        );
        if modes {
            self.push_str("<p class=\"modes\" id=\"modes\">Flight modes: ");
            for (i, name) in plot.band_names().into_iter().enumerate() {
                let _ = write!(self, "<span><i data-fill=\"{i}\"></i>{}</span>", escape(name));
            }
            self.push_str("</p>\n");
        }
        for (i, panel) in plot.panels.iter().enumerate() {
            self.figure(i, panel);
        }
        let data = data(&plot).to_string();
        // A `</script>` within a string would end the script element.
        let data = data.replace('<', "\\u003c");
        let _ = write!(
            self,
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{UPLOT}\n</script>\n\
             <script>\n{CHARTS}{}</script>\n",
            include_str!("page.js")
        );
    }

    fn figure(&mut self, i: usize, panel: &Panel) {
        let (_, unit) = panel.prefixed();
        let unit = unit.map(|unit| format!(" <small>[{}]</small>", escape(&unit))).unwrap_or_default();
        let title = escape(&panel.title);
        let _ = write!(self, "<figure data-panel=\"{i}\"><figcaption><b>{title}{unit}</b>");
        for (k, series) in panel.series.iter().enumerate() {
            let name = escape(&series.name);
            let _ = write!(
                self,
                "<button data-line=\"{k}\" aria-pressed=\"true\"><svg width=\"22\" height=\"8\" aria-hidden=\"true\">\
                 <path d=\"M0 4H22\"/></svg>{name} <output></output></button>"
            );
        }
        let _ = writeln!(
            self,
            "</figcaption><div class=\"chart\" tabindex=\"0\" role=\"img\" aria-label=\"{}\"></div></figure>",
            escape(&summary(panel))
        );
    }
}

impl Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.write_str(text)
    }
}

/// Describes a panel in words for screen readers: its lines and their ranges.
fn summary(panel: &Panel) -> String {
    let unit = panel.unit().map(|unit| format!(" {unit}")).unwrap_or_default();
    let line = |series: &Series| {
        let range = series.range().filter(|_| !series.is_lane());
        let range = range.map(|(low, high)| format!(" from {low:.4} to {high:.4}{unit}"));
        format!("{}{}", series.name, range.unwrap_or_default())
    };
    format!("{}: {}", panel.title, panel.series.iter().map(line).collect::<Vec<_>>().join(", "))
}

/// Reduces all lines until the page is small enough to be sent by mail.
fn reduce(plot: &mut Plot) {
    let points =
        |plot: &Plot| plot.panels.iter().flat_map(|panel| &panel.series).map(|s| s.points.len()).sum();
    let mut width = 1600;
    let mut total: usize = points(plot);
    while total > MOST_POINTS && width >= 25 {
        for series in plot.panels.iter_mut().flat_map(|panel| &mut panel.series) {
            series.reduce(plot.span, width);
        }
        total = points(plot);
        width /= 2;
    }
}

fn data(plot: &Plot) -> Value {
    let base64 = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
    let series = |series: &Series| {
        let times = series.points.iter().flat_map(|(time, _)| time.to_le_bytes()).collect();
        #[expect(clippy::cast_possible_truncation, reason = "what a screen can show")]
        let values = series.points.iter().flat_map(|(_, value)| (*value as f32).to_le_bytes()).collect();
        let names: serde_json::Map<String, Value> =
            series.names.iter().map(|(value, name)| (value.to_string(), Value::from(*name))).collect();
        json!({
            "name": rovelog::core::text::escape(&series.name),
            "t": base64(times),
            "v": base64(values),
            "step": series.look != Look::Line,
            "names": if names.is_empty() { Value::Null } else { names.into() },
        })
    };
    let panel = |panel: &Panel| {
        let (factor, unit) = panel.prefixed();
        json!({
            "lanes": panel.is_lanes(),
            "factor": factor,
            "unit": unit.map(|unit| rovelog::core::text::escape(&unit).into_owned()),
            "series": panel.series.iter().map(series).collect::<Vec<_>>(),
        })
    };
    let names = plot.band_names();
    let number = |name: &str| names.iter().position(|known| *known == name);
    let bands: Vec<_> = plot
        .bands
        .iter()
        .map(|band| json!([band.span.0, band.span.1, number(&band.name), band.name]))
        .collect();
    json!({
        "span": plot.span,
        "unix_ms": plot.utc.map(|nanos| nanos as f64 / 1e6),
        "label": plot.time_label,
        "bands": bands,
        "panels": plot.panels.iter().map(panel).collect::<Vec<_>>(),
        "light": colours(Theme::Light),
        "dark": colours(Theme::Dark),
    })
}

/// Returns the colors of a theme for scripts.
pub fn colours(theme: Theme) -> Value {
    let colours = theme.colours();
    let lines: Vec<_> =
        (0..28).map(|i| colours.line(i)).map(|(colour, dash)| json!([colour, dash])).collect();
    json!({
        "paper": colours.paper, "text": colours.text, "faint": colours.faint, "grid": colours.grid,
        "frame": colours.frame, "lines": lines, "fills": colours.fills,
    })
}
