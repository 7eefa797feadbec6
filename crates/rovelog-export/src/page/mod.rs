//! Self-contained HTML pages with zoomable plots. The plots are drawn by the library uPlot. A page
//! loads nothing from the network.

use std::fmt::{self, Write};

use base64::Engine as _;
use serde_json::{Value, json};

use crate::plot::{Look, Panel, Plot, Series, Side, Theme};
use crate::xml::escape;

/// Script of the plot library uPlot. The license is in assets/uPlot-LICENSE.txt.
pub const UPLOT: &str = include_str!("../../assets/uPlot-1.6.32.min.js");
/// Style sheet of the plot library uPlot.
pub const UPLOT_STYLE: &str = include_str!("../../assets/uPlot-1.6.32.min.css");
/// Script that draws the panels of a plot with uPlot.
pub const CHARTS: &str = include_str!("charts.js");
/// Style sheet of all HTML pages.
pub const STYLE: &str = include_str!("page.css");

/// Maximum number of points of all plots in a page. In base64, 200,000 points need about 3.2 MB.
const MAX_POINTS: usize = 200_000;

/// An HTML page that is being written.
#[derive(Default)]
pub(crate) struct Page {
    /// HTML of the page body.
    text: String,
    /// Identifier and link text of each section, for the navigation bar.
    sections: Vec<(&'static str, &'static str)>,
}

impl Page {
    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends the sections of another page.
    pub(crate) fn append(&mut self, other: Self) {
        self.text.push_str(&other.text);
        self.sections.extend(other.sections);
    }

    /// Starts a section. `link` is the text in the navigation bar. `title` is the HTML of the
    /// heading, so its text must already be escaped.
    pub(crate) fn section(&mut self, id: &'static str, link: &'static str, title: &str) {
        self.sections.push((id, link));
        let _ = writeln!(self, "<h2 id=\"{id}\">{title}</h2>");
    }

    /// Returns the HTML of the complete page. `theme` is the color scheme. If it is `None`, the
    /// page uses the color scheme of the reader's system.
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
        // The content security policy blocks all access to the network. This also protects the
        // reader if a text in the log could inject HTML into the page.
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

    /// Writes the plots, their data and the scripts that draw them.
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
        // A `</script>` in the data would end the script element, so `<` is escaped.
        let data = data.replace('<', "\\u003c");
        let _ = write!(
            self,
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{UPLOT}\n</script>\n\
             <script>\n{CHARTS}{}</script>\n",
            include_str!("page.js")
        );
    }

    /// Writes the title and the legend of a panel, and the empty element in which the script draws
    /// the chart.
    fn figure(&mut self, i: usize, panel: &Panel) {
        let unit =
            panel.units().map(|unit| format!(" <small>[{}]</small>", escape(&unit))).unwrap_or_default();
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
            "</figcaption><div class=\"chart\" id=\"panel-{i}\" tabindex=\"0\" role=\"img\" \
             aria-label=\"{}\"></div></figure>",
            escape(&summary(panel))
        );
    }
}

impl Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.write_str(text)
    }
}

/// Describes a panel for screen readers: its title, its lines, and the range of each line.
fn summary(panel: &Panel) -> String {
    let line = |series: &Series| {
        let unit = series.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
        let range = series.range().filter(|_| !series.is_lane());
        let range = range.map(|(low, high)| format!(" from {low:.4} to {high:.4}{unit}"));
        format!("{}{}", series.name, range.unwrap_or_default())
    };
    format!("{}: {}", panel.title, panel.series.iter().map(line).collect::<Vec<_>>().join(", "))
}

/// Reduces the points of all lines until the page has at most [`MAX_POINTS`] points, so that the
/// page is small enough for an e-mail.
fn reduce(plot: &mut Plot) {
    let points =
        |plot: &Plot| plot.panels.iter().flat_map(|panel| &panel.series).map(|s| s.points.len()).sum();
    let mut width = 1600;
    let mut total: usize = points(plot);
    while total > MAX_POINTS && width >= 25 {
        for series in plot.panels.iter_mut().flat_map(|panel| &mut panel.series) {
            // The first widths are larger than most screens, so that details remain visible when
            // zooming in.
            series.reduce(plot.span, width);
        }
        total = points(plot);
        width /= 2;
    }
}

/// Returns the data of all plots as JSON. Points are base64 strings of little-endian numbers, which
/// are smaller and faster to parse than JSON numbers.
fn data(plot: &Plot) -> Value {
    let base64 = |bytes: Vec<u8>| base64::engine::general_purpose::STANDARD.encode(bytes);
    let series = |series: &Series| {
        let times = series.points.iter().flat_map(|(time, _)| time.to_le_bytes()).collect();
        let values = series.points.iter().flat_map(|(_, value)| value.to_le_bytes()).collect();
        let names: serde_json::Map<String, Value> =
            series.names.iter().map(|(value, name)| (value.to_string(), Value::from(*name))).collect();
        json!({
            "name": rovelog::core::internal::text::escape(&series.name),
            "t": base64(times),
            "v": base64(values),
            "step": series.look != Look::Line,
            "right": series.side == Side::Right,
            "names": if names.is_empty() { Value::Null } else { names.into() },
        })
    };
    let panel = |panel: &Panel| {
        let (factor, unit) = panel.prefixed(Side::Left);
        json!({
            "lanes": panel.is_lanes(),
            "factor": factor,
            "right_factor": panel.has_right_axis().then(|| panel.prefixed(Side::Right).0),
            "unit": unit.map(|unit| rovelog::core::internal::text::escape(&unit).into_owned()),
            "series": panel.series.iter().map(series).collect::<Vec<_>>(),
        })
    };
    let bands = plot.numbered_bands().into_iter();
    let bands: Vec<_> =
        bands.map(|(number, band)| json!([band.span.0, band.span.1, number, band.name])).collect();
    json!({
        "span": plot.span,
        "unix_ms": plot.utc.map(|nanos| nanos as f64 / 1e6),
        "label": plot.time_label,
        "bands": bands,
        "panels": plot.panels.iter().map(panel).collect::<Vec<_>>(),
        "light": colors(Theme::Light),
        "dark": colors(Theme::Dark),
    })
}

/// Returns the colors of a theme as JSON for the scripts.
pub fn colors(theme: Theme) -> Value {
    let colors = theme.colors();
    let lines: Vec<_> = (0..28).map(|i| colors.line(i)).map(|(color, dash)| json!([color, dash])).collect();
    json!({
        "paper": colors.paper, "text": colors.text, "faint": colors.faint, "grid": colors.grid,
        "frame": colors.frame, "lines": lines, "fills": colors.fills,
    })
}
