//! Draws a plot as SVG. PNG and PDF are rendered from this SVG.

use std::fmt::Write as _;

use super::axis::{Scale, Tick};
use super::model::{Heat, Panel, Picture, Plot};
use super::series::{Series, Side};
use super::state::{State, StateSpan, states};
use super::text::{WIDE, fitted, width};
use super::theme::{Colors, HEAT};
use crate::xml::escape;

/// Height of the plot area of a panel with lines, if the height of the picture is not given.
const PANEL: f64 = 180.0;
/// Height of a lane, which shows an on/off signal or states. The height includes the name of the
/// lane.
const LANE: f64 = 34.0;
/// Height of a row in a legend.
const ROW: f64 = 18.0;
/// Height of the plot's title.
const PLOT_TITLE: f64 = 28.0;
/// Height of a panel title.
const TITLE: f64 = 22.0;
/// Height of the bar that shows the flight modes.
const MODES: f64 = 20.0;
/// Margin around the whole picture.
const MARGIN: f64 = 16.0;
/// Font size of labels.
const SMALL: f64 = 11.0;
/// Font size of panel titles.
const NORMAL: f64 = 13.0;
/// Font size of the plot's title.
const LARGE: f64 = 16.0;

/// Text alignment relative to its anchor point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// Sizes that determine where a panel is drawn.
struct Place<'a> {
    panel: &'a Panel,
    /// Value axis at the left of the panel. `None` for a panel of lanes.
    scale: Option<Scale>,
    /// Value axis at the right of the panel, if some lines have another unit than the others.
    right_scale: Option<Scale>,
    /// Indices of the series in each row of the legend.
    legend: Vec<Vec<usize>>,
    /// Height of the panel's plot area.
    height: f64,
}

/// An SVG picture that is being written.
struct Svg<'a> {
    plot: &'a Plot,
    colors: &'static Colors,
    text: String,
    /// Horizontal position of the left end of all plot areas.
    left: f64,
    /// Horizontal position of the right end of all plot areas.
    right: f64,
}

/// Draws the plot and returns the text of the SVG.
pub(super) fn draw(plot: &Plot, picture: &Picture) -> String {
    let colors = picture.theme.colors();
    let Layout { width, height, left, right, places, hidden, mode_rows } = Layout::new(plot, picture);
    // Screen readers read the title of the SVG aloud.
    let name = if plot.title.is_empty() {
        plot.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>().join(", ")
    } else {
        plot.title.clone()
    };
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\" font-family=\"Inter, 'DejaVu Sans', Arial, sans-serif\" font-size=\"{SMALL}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        escape(&name),
        colors.paper
    );
    let mut svg = Svg { plot, colors, text, left, right };
    let mut y = MARGIN;
    if !plot.title.is_empty() {
        let title = fitted(&plot.title, LARGE * WIDE, right - left);
        svg.bold((left, y + 14.0), &title, LARGE);
        y += PLOT_TITLE;
    }
    if !plot.bands.is_empty() {
        svg.modes(y);
        y += MODES + 6.0;
        svg.mode_legend(&mut y, &hidden, &mode_rows);
    }
    let ticks = plot.ticks(many(right - left, 96.0));
    let bottom = places.iter().fold(y, |y, place| svg.panel(place, &ticks, y));
    svg.times(&ticks, bottom);
    svg.text.push_str("</svg>\n");
    svg.text
}

/// Positions and sizes of all parts of a picture.
struct Layout<'a> {
    width: f64,
    height: f64,
    /// Horizontal positions of the left and right end of all plot areas.
    left: f64,
    right: f64,
    places: Vec<Place<'a>>,
    /// Names of flight modes that do not fit into their bands. They are in a legend below the bar.
    hidden: Vec<String>,
    /// Indices in `hidden` of the names in each row of the legend.
    mode_rows: Vec<Vec<usize>>,
}

impl<'a> Layout<'a> {
    /// Computes the layout. Titles, legends, lanes and the time axis have fixed heights. The panels
    /// with lines share the remaining height. If this height is too small for readable lines, the
    /// picture is taller than requested.
    fn new(plot: &'a Plot, picture: &Picture) -> Self {
        let full = f64::from(picture.width.max(200));
        let edge = full - MARGIN;
        let legend_width = edge - 60.0;
        let hidden = hidden_names(plot, legend_width);
        let widths: Vec<_> = hidden.iter().map(|name| width(name, SMALL) + 34.0).collect();
        let mode_rows = rows(&widths, legend_width);
        let title = if plot.title.is_empty() { 0.0 } else { PLOT_TITLE };
        let modes = if plot.bands.is_empty() { 0.0 } else { MODES + 6.0 };
        let head = MARGIN + title + modes + mode_rows.len() as f64 * (ROW + 4.0);
        let foot = 44.0;
        let legends: Vec<_> = plot.panels.iter().map(|panel| legend(panel, legend_width)).collect();
        let around: f64 = legends.iter().map(|rows| TITLE + rows.len() as f64 * ROW + 14.0).sum();
        let lanes: f64 = plot.panels.iter().filter(|panel| panel.is_lanes()).map(lanes_height).sum();
        let open = plot.panels.iter().filter(|panel| !panel.is_lanes()).count();
        let each = picture.height.map_or(PANEL, |height| {
            ((f64::from(height) - head - foot - around - lanes) / open.max(1) as f64).max(40.0)
        });
        let place = |(panel, legend)| Place::new(panel, legend, each);
        let places: Vec<_> = plot.panels.iter().zip(legends).map(place).collect();
        // All panels have the same margins, so that their time axes are aligned. A margin fits the
        // longest label, but takes at most a third of the picture.
        let margin = |scale: for<'p> fn(&'p Place<'a>) -> Option<&'p Scale>| {
            let ticks = places.iter().filter_map(scale).flat_map(|scale| &scale.ticks);
            let longest = ticks.map(|tick| width(&tick.label, SMALL)).reduce(f64::max);
            longest.map(|longest| longest.max(28.0).min(full / 3.0) + 8.0)
        };
        let left = MARGIN + margin(|place| place.scale.as_ref()).unwrap_or(36.0);
        let right = edge - margin(|place| place.right_scale.as_ref()).unwrap_or(0.0);
        let grown = head + foot + around + places.iter().map(|place| place.height).sum::<f64>();
        let height = picture.height.map_or(grown, |height| f64::from(height).max(grown)).ceil();
        Self { width: full, height, left, right, places, hidden, mode_rows }
    }
}

impl<'a> Place<'a> {
    /// Returns the place of a panel. `height` is the height of its plot area, unless it has lanes.
    fn new(panel: &'a Panel, legend: Vec<Vec<usize>>, height: f64) -> Self {
        let is_lanes = panel.is_lanes();
        let scale = |side| {
            let of_side = panel.on(side);
            Scale::new(of_side.range(), of_side.unit(), many(height, 34.0))
        };
        let right_scale = panel.has_right_axis().then(|| scale(Side::Right));
        let scale = (!is_lanes).then(|| scale(Side::Left));
        let height = if is_lanes { lanes_height(panel) } else { height };
        Self { panel, scale, right_scale, legend, height }
    }
}

/// Returns the height of a panel of lanes.
fn lanes_height(panel: &Panel) -> f64 {
    panel.series.len() as f64 * LANE + 4.0
}

/// Returns the number of labels that fit into `pixels` if their distance is `apart` pixels.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn many(pixels: f64, apart: f64) -> usize {
    (pixels / apart).clamp(2.0, 100.0) as usize
}

/// Distributes the entries of a legend to rows. `widths` are the widths of the entries, and `space`
/// is the width of a row. Returns the indices of the entries in each row.
fn rows(widths: &[f64], space: f64) -> Vec<Vec<usize>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut used = f64::INFINITY;
    for (i, width) in widths.iter().enumerate() {
        if used + width > space {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += width;
        rows.last_mut().into_iter().for_each(|row| row.push(i));
    }
    rows
}

/// Returns the indices of the series in each row of a panel's legend.
fn legend(panel: &Panel, space: f64) -> Vec<Vec<usize>> {
    if !panel.has_legend() {
        return Vec::new();
    }
    let widths: Vec<_> = panel.series.iter().map(|series| width(&series.name, SMALL) + 46.0).collect();
    rows(&widths, space)
}

/// Returns the names of flight modes that need a legend, because they do not fit into any of their
/// bands.
fn hidden_names(plot: &Plot, space: f64) -> Vec<String> {
    let length = (plot.span.1 - plot.span.0).max(f64::MIN_POSITIVE);
    let fits = |name: &str| {
        plot.bands.iter().any(|band| {
            let part = (band.span.1.min(plot.span.1) - band.span.0.max(plot.span.0)) / length;
            band.name == name && part * space > width(name, SMALL) + 8.0
        })
    };
    plot.band_names().into_iter().filter(|name| !fits(name)).map(str::to_owned).collect()
}

impl Svg<'_> {
    /// Returns the horizontal position of a time. A time far outside of the plot area is moved to
    /// one plot width outside, so that coordinates stay small.
    fn x(&self, time: f64) -> f64 {
        let (from, to) = self.plot.span;
        let part = if to > from { (time - from) / (to - from) } else { 0.5 };
        self.left + part.clamp(-1.0, 2.0) * (self.right - self.left)
    }

    /// Writes a text element. `more` contains additional attributes of the element.
    fn write(&mut self, (x, y): (f64, f64), text: &str, anchor: Anchor, fill: &str, more: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let text = escape(text);
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\"{anchor} fill=\"{fill}\"{more}>{text}</text>"
        );
    }

    fn bold(&mut self, at: (f64, f64), text: &str, size: f64) {
        let more = format!(" font-size=\"{size}\" font-weight=\"600\"");
        self.write(at, text, Anchor::Start, self.colors.text, &more);
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, more: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"{more}/>"
        );
    }

    /// Draws a straight line.
    fn rule(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let _ = writeln!(
            self.text,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{stroke}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Clips a time range to the time range of the plot, and returns the horizontal positions of
    /// its ends. Returns `None` if no part of the time range is visible.
    fn shown(&self, (from, to): (f64, f64)) -> Option<(f64, f64)> {
        let (from, to) = (from.max(self.plot.span.0), to.min(self.plot.span.1));
        (from <= to).then(|| (self.x(from), self.x(to)))
    }

    /// Draws the bar of flight modes above the panels.
    fn modes(&mut self, y: f64) {
        for (number, band) in self.plot.numbered_bands() {
            let Some((from, to)) = self.shown(band.span) else { continue };
            self.rect((from, y), ((to - from).max(0.5), MODES), self.colors.fill(number), "");
            if to - from > width(&band.name, SMALL) + 8.0 {
                let at = (f64::midpoint(from, to), y + 14.0);
                self.write(at, &band.name, Anchor::Middle, self.colors.text, "");
            }
        }
    }

    /// Draws the legend of flight modes whose bands are too short for their names.
    fn mode_legend(&mut self, y: &mut f64, hidden: &[String], rows: &[Vec<usize>]) {
        let names = self.plot.band_names();
        for row in rows {
            let mut x = self.left;
            for name in row.iter().map(|i| &hidden[*i]) {
                let number = names.iter().position(|known| *known == name).unwrap_or(0);
                let border = format!(" stroke=\"{}\"", self.colors.frame);
                self.rect((x, *y + 3.0), (14.0, 10.0), self.colors.fill(number), &border);
                self.write((x + 20.0, *y + 12.0), name, Anchor::Start, self.colors.text, "");
                x += width(name, SMALL) + 34.0;
            }
            *y += ROW + 4.0;
        }
    }

    /// Draws a panel below the vertical position `top`. Returns the vertical position of the
    /// panel's lower end.
    fn panel(&mut self, place: &Place<'_>, ticks: &[Tick], top: f64) -> f64 {
        let unit = place.panel.units();
        let space = self.right - self.left - unit.as_deref().map_or(0.0, |unit| width(unit, NORMAL) + 20.0);
        let title = fitted(&place.panel.title, NORMAL * WIDE, space);
        // The unit is in a `tspan` directly after the title. It therefore stays next to the title
        // even if a viewer substitutes a wider font.
        let unit = unit.map_or_else(String::new, |unit| {
            let (faint, unit) = (self.colors.faint, escape(&unit).into_owned());
            format!("<tspan dx=\"6\" font-weight=\"400\" fill=\"{faint}\">[{unit}]</tspan>")
        });
        let _ = writeln!(
            self.text,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\" font-size=\"{NORMAL}\" \
             font-weight=\"600\">{}{unit}</text>",
            self.left,
            top + 15.0,
            self.colors.text,
            escape(&title)
        );
        let mut y = top + TITLE;
        for row in &place.legend {
            self.legend_row(place.panel, row, y);
            y += ROW;
        }
        let bottom = y + place.height;
        for (number, band) in self.plot.numbered_bands() {
            if let Some((from, to)) = self.shown(band.span) {
                let fill = self.colors.fill(number);
                self.rect((from, y), (to - from, place.height), fill, " fill-opacity=\"0.35\"");
            }
        }
        for tick in ticks {
            let x = self.x(tick.at);
            self.rule((x, y), (x, bottom), self.colors.grid);
        }
        match &place.scale {
            Some(scale) => self.lines(place, scale, (y, bottom)),
            None => self.lanes(place.panel, y),
        }
        let _ = writeln!(
            self.text,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{}\"/>",
            self.left,
            self.right - self.left,
            place.height,
            self.colors.frame
        );
        bottom + 14.0
    }

    /// Draws a row of a panel's legend. `row` contains the indices of the lines.
    fn legend_row(&mut self, panel: &Panel, row: &[usize], y: f64) {
        let mut x = self.left;
        for i in row {
            let name = &panel.series[*i].name;
            let stroke = stroke(self.colors, *i);
            let _ =
                writeln!(self.text, "<path d=\"M{x:.1} {:.1}h22\" {stroke} stroke-width=\"2\"/>", y + 8.0);
            let space = self.right - x - 28.0;
            self.write(
                (x + 28.0, y + 12.0),
                &fitted(name, SMALL, space),
                Anchor::Start,
                self.colors.text,
                "",
            );
            x += width(name, SMALL) + 46.0;
        }
    }

    /// Draws the value axes and the lines of a panel.
    fn lines(&mut self, place: &Place<'_>, scale: &Scale, (top, bottom): (f64, f64)) {
        let on_scale = |scale: &Scale, value: f64| bottom - scale.place(value) * (bottom - top);
        let y = |value: f64| on_scale(scale, value);
        for tick in &scale.ticks {
            let y = y(tick.at);
            self.rule((self.left, y), (self.right, y), self.colors.grid);
            self.write((self.left - 6.0, y + 4.0), &tick.label, Anchor::End, self.colors.faint, "");
        }
        if let Some(heat) = &place.panel.heat {
            self.heat(heat, y);
        }
        if let Some(scale) = &place.right_scale {
            for tick in &scale.ticks {
                let at = (self.right + 6.0, on_scale(scale, tick.at) + 4.0);
                self.write(at, &tick.label, Anchor::Start, self.colors.faint, "");
            }
        }
        for (i, series) in place.panel.series.iter().enumerate() {
            let stroke = stroke(self.colors, i);
            let scale = place.right_scale.as_ref().filter(|_| series.side == Side::Right).unwrap_or(scale);
            let path = self.path(series, |value| on_scale(scale, value));
            if !path.is_empty() {
                let _ = writeln!(
                    self.text,
                    "<path d=\"{path}\" fill=\"none\" {stroke} stroke-width=\"1.3\" stroke-linejoin=\"round\" \
                     stroke-linecap=\"round\"><title>{}</title></path>",
                    escape(&series.name)
                );
            }
        }
    }

    /// Draws a spectrogram. `y` returns the vertical position of a frequency. All cells of a color
    /// are one path, which makes the picture much smaller.
    fn heat(&mut self, heat: &Heat, y: impl Fn(f64) -> f64) {
        let mut paths = HEAT.map(|_| String::new());
        #[expect(clippy::cast_possible_truncation, reason = "a few colors")]
        heat.cells(HEAT.len() as u8, |level, times, hertz| {
            let Some((from, to)) = self.shown(times) else { return };
            let (low, high) = (y(hertz.0), y(hertz.1));
            let path = &mut paths[usize::from(level)];
            let _ = write!(path, "M{from:.1} {low:.1}V{high:.1}H{to:.1}V{low:.1}Z");
        });
        for (path, color) in paths.iter().zip(HEAT).filter(|(path, _)| !path.is_empty()) {
            let _ =
                writeln!(self.text, "<path d=\"{path}\" fill=\"{color}\" shape-rendering=\"crispEdges\"/>");
        }
    }

    /// Returns the SVG path of a line. A NaN interrupts the path.
    fn path(&self, series: &Series, y: impl Fn(f64) -> f64) -> String {
        let mut path = String::new();
        let mut before: Option<(f64, f64)> = None;
        for (time, value) in &series.points {
            if !value.is_finite() {
                before = None;
                continue;
            }
            let here = (self.x(*time), y(*value));
            let _ = match before {
                // An isolated value is drawn as a line of length zero, which is visible as a dot.
                None => write!(path, "M{:.1} {:.1}h0", here.0, here.1),
                Some(_) if series.is_step() => write!(path, "H{:.1}V{:.1}", here.0, here.1),
                Some(_) => write!(path, "L{:.1} {:.1}", here.0, here.1),
            };
            before = Some(here);
        }
        path
    }

    /// Draws the lanes of a panel below each other. Each lane has its name above it.
    fn lanes(&mut self, panel: &Panel, top: f64) {
        for (i, series) in panel.series.iter().enumerate() {
            let y = top + 2.0 + i as f64 * LANE;
            let (color, _) = self.colors.line(i);
            let name = fitted(&series.name, SMALL, self.right - self.left - 12.0);
            for StateSpan { start, end, state } in states(series) {
                let Some((from, to)) = self.shown((start, end)) else { continue };
                let size = ((to - from).max(0.8), 15.0);
                match state {
                    State::Off => self.rect((from, y + 29.5), (size.0, 1.0), color, ""),
                    State::On => self.rect((from, y + 16.0), size, color, ""),
                    State::Named(number, state) => {
                        let border = format!(" stroke=\"{}\" stroke-width=\"0.5\"", self.colors.frame);
                        self.rect((from, y + 16.0), size, self.colors.fill(number), &border);
                        if size.0 > width(&state, SMALL) + 6.0 {
                            self.write((from + 4.0, y + 27.5), &state, Anchor::Start, self.colors.text, "");
                        }
                    }
                }
            }
            self.write((self.left + 6.0, y + 12.0), &name, Anchor::Start, self.colors.text, "");
            if i > 0 {
                self.rule((self.left, y - 1.0), (self.right, y - 1.0), self.colors.grid);
            }
        }
    }

    /// Draws the labels of the time axis below the last panel. A date that would overlap another
    /// date is omitted.
    fn times(&mut self, ticks: &[Tick], bottom: f64) {
        let y = bottom + 2.0;
        let mut free = 0.0;
        for tick in ticks {
            let x = self.x(tick.at);
            self.write((x, y), &tick.label, Anchor::Middle, self.colors.faint, "");
            if let Some(date) = &tick.date {
                let half = width(date, SMALL) / 2.0;
                let x = x.max(half + 2.0).min(self.right - half);
                if x - half >= free {
                    self.write((x, y + 16.0), date, Anchor::Middle, self.colors.faint, "");
                    free = x + half + 8.0;
                }
            }
        }
        let label = if self.plot.utc.is_some() { "UTC" } else { &*self.plot.time_label };
        let label = fitted(label, SMALL, self.right - free);
        self.write((self.right, y + 16.0), &label, Anchor::End, self.colors.faint, "");
    }
}

/// Returns the SVG attributes for the color and dashes of the line with the index `i`.
fn stroke(colors: &Colors, i: usize) -> String {
    let (color, dashes) = colors.line(i);
    if dashes.is_empty() {
        return format!("stroke=\"{color}\"");
    }
    format!("stroke=\"{color}\" stroke-dasharray=\"{dashes}\"")
}
