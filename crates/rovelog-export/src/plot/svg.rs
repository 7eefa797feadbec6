//! Draws a plot as SVG. PNG and PDF are rendered from it.

use std::fmt::Write as _;

use super::axis::{Scale, Tick, plain, times};
use super::model::{Panel, Picture, Plot};
use super::series::Series;
use super::state::{State, states};
use super::text::{WIDE, fitted, width};
use super::theme::Colours;
use crate::xml::escape;

/// Heights of the plot area of a panel, and of a lane with its name.
const PANEL: f64 = 180.0;
const LANE: f64 = 34.0;
/// Heights of a legend row, of a panel title, and of the flight modes.
const ROW: f64 = 18.0;
const TITLE: f64 = 22.0;
const MODES: f64 = 20.0;
const MARGIN: f64 = 16.0;
/// Text sizes.
const SMALL: f64 = 11.0;
const NORMAL: f64 = 13.0;
const LARGE: f64 = 16.0;

/// Text alignment relative to its anchor point.
#[derive(Clone, Copy)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// Layout of a panel, from top to bottom.
struct Place<'a> {
    panel: &'a Panel,
    scale: Option<Scale>,
    /// Legend rows, as indices of series.
    legend: Vec<Vec<usize>>,
    height: f64,
}

struct Svg<'a> {
    plot: &'a Plot,
    colours: &'static Colours,
    text: String,
    left: f64,
    right: f64,
}

/// Draws the plot and returns the SVG text.
pub(super) fn draw(plot: &Plot, picture: &Picture) -> String {
    let colours = picture.theme.colours();
    let full = f64::from(picture.width.max(200));
    let right = full - MARGIN;
    // Everything outside the plot areas has a fixed height. The plot areas share the rest.
    let modes = if plot.bands.is_empty() { 0.0 } else { MODES + 6.0 };
    let hidden = hidden_names(plot, right - 60.0);
    let mode_rows =
        rows(&hidden.iter().map(|name| width(name, SMALL) + 34.0).collect::<Vec<_>>(), right - 60.0);
    let head = MARGIN
        + if plot.title.is_empty() { 0.0 } else { 28.0 }
        + modes
        + mode_rows.len() as f64 * (ROW + 4.0);
    let foot = 44.0;
    let legends: Vec<_> = plot.panels.iter().map(|panel| legend(panel, right - 60.0)).collect();
    let around: f64 = legends.iter().map(|rows| TITLE + rows.len() as f64 * ROW + 14.0).sum();
    let lanes: f64 = plot.panels.iter().filter(|panel| panel.is_lanes()).map(lanes_height).sum();
    let open = plot.panels.iter().filter(|panel| !panel.is_lanes()).count();
    let each = picture.height.map_or(PANEL, |height| {
        ((f64::from(height) - head - foot - around - lanes) / open.max(1) as f64).max(40.0)
    });
    let places = plot.panels.iter().zip(legends).map(|(panel, legend)| {
        let lanes = panel.is_lanes();
        let scale = (!lanes).then(|| Scale::new(panel.range(), panel.unit(), many(each, 34.0)));
        Place { panel, scale, legend, height: if lanes { lanes_height(panel) } else { each } }
    });
    let places: Vec<_> = places.collect();
    let labels = places.iter().filter_map(|place| place.scale.as_ref()).flat_map(|scale| &scale.ticks);
    let left =
        labels.map(|(_, label)| width(label, SMALL)).fold(28.0, f64::max).min(full / 3.0) + 8.0 + MARGIN;
    let grown = head + foot + around + places.iter().map(|place| place.height).sum::<f64>();
    let height = picture.height.map_or(grown, |height| f64::from(height).max(grown)).ceil();
    // Text for screen readers.
    let name = if plot.title.is_empty() {
        plot.panels.iter().map(|panel| panel.title.as_str()).collect::<Vec<_>>().join(", ")
    } else {
        plot.title.clone()
    };
    let text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{full}\" height=\"{height}\" viewBox=\"0 0 {full} \
         {height}\" font-family=\"Inter, 'DejaVu Sans', Arial, sans-serif\" font-size=\"{SMALL}\" role=\"img\">\n\
         <title>{}</title>\n<rect width=\"{full}\" height=\"{height}\" fill=\"{}\"/>\n",
        escape(&name),
        colours.paper
    );
    let mut svg = Svg { plot, colours, text, left, right };
    let mut y = MARGIN;
    if !plot.title.is_empty() {
        let title = fitted(&plot.title, LARGE * WIDE, right - left);
        svg.bold((left, y + 14.0), &title, LARGE);
        y += 28.0;
    }
    if !plot.bands.is_empty() {
        svg.modes(y);
        y += modes;
        svg.mode_legend(&mut y, &hidden, &mode_rows);
    }
    let wanted = many(right - left, 96.0);
    let ticks = if plot.hertz { plain(plot.span, wanted) } else { times(plot.span, plot.utc, wanted) };
    let bottom = places.iter().fold(y, |y, place| svg.panel(place, &ticks, y));
    svg.times(&ticks, bottom);
    svg.text.push_str("</svg>\n");
    svg.text
}

fn lanes_height(panel: &Panel) -> f64 {
    panel.series.len() as f64 * LANE + 4.0
}

/// Returns how many labels fit at this spacing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn many(pixels: f64, apart: f64) -> usize {
    (pixels / apart).clamp(2.0, 100.0) as usize
}

/// Distributes entries of these widths to rows, and returns their indices by row.
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

/// Returns the rows of a panel's legend, as indices of series.
fn legend(panel: &Panel, space: f64) -> Vec<Vec<usize>> {
    if !panel.has_legend() {
        return Vec::new();
    }
    let widths: Vec<_> = panel.series.iter().map(|series| width(&series.name, SMALL) + 46.0).collect();
    rows(&widths, space)
}

/// Returns the flight modes whose names fit into none of their bands, and so need a legend.
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
    fn x(&self, time: f64) -> f64 {
        let (from, to) = self.plot.span;
        let part = if to > from { (time - from) / (to - from) } else { 0.5 };
        self.left + part.clamp(-1.0, 2.0) * (self.right - self.left)
    }

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
        self.write(at, text, Anchor::Start, self.colours.text, &more);
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, more: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"{more}/>"
        );
    }

    fn rule(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let _ = writeln!(
            self.text,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"{stroke}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Converts a time range to horizontal positions, clipped to the shown range. Returns `None` if
    /// it is not visible.
    fn shown(&self, (from, to): (f64, f64)) -> Option<(f64, f64)> {
        let (from, to) = (from.max(self.plot.span.0), to.min(self.plot.span.1));
        (from <= to).then(|| (self.x(from), self.x(to)))
    }

    /// Draws the flight modes above the panels.
    fn modes(&mut self, y: f64) {
        let names: Vec<String> = self.plot.band_names().into_iter().map(str::to_owned).collect();
        let plot = self.plot;
        for band in &plot.bands {
            let Some((from, to)) = self.shown(band.span) else { continue };
            let number = names.iter().position(|name| *name == band.name).unwrap_or(0);
            self.rect((from, y), ((to - from).max(0.5), MODES), self.colours.fill(number), "");
            if to - from > width(&band.name, SMALL) + 8.0 {
                let at = (f64::midpoint(from, to), y + 14.0);
                self.write(at, &band.name, Anchor::Middle, self.colours.text, "");
            }
        }
    }

    /// Draws the legend of flight modes whose bands are too short for their names.
    fn mode_legend(&mut self, y: &mut f64, hidden: &[String], rows: &[Vec<usize>]) {
        let names: Vec<String> = self.plot.band_names().into_iter().map(str::to_owned).collect();
        for row in rows {
            let mut x = self.left;
            for name in row.iter().map(|i| &hidden[*i]) {
                let number = names.iter().position(|known| known == name).unwrap_or(0);
                let border = format!(" stroke=\"{}\"", self.colours.frame);
                self.rect((x, *y + 3.0), (14.0, 10.0), self.colours.fill(number), &border);
                self.write((x + 20.0, *y + 12.0), name, Anchor::Start, self.colours.text, "");
                x += width(name, SMALL) + 34.0;
            }
            *y += ROW + 4.0;
        }
    }

    /// Draws a panel below `top`. Returns the position of its lower end.
    fn panel(&mut self, place: &Place<'_>, ticks: &[Tick], top: f64) -> f64 {
        let unit = place.scale.as_ref().and_then(|scale| scale.unit.clone());
        let space = self.right - self.left - unit.as_deref().map_or(0.0, |unit| width(unit, NORMAL) + 20.0);
        let title = fitted(&place.panel.title, NORMAL * WIDE, space);
        // A `tspan` puts the unit right after the title, whatever font the viewer substitutes.
        let unit = unit.map_or_else(String::new, |unit| {
            let (faint, unit) = (self.colours.faint, escape(&unit).into_owned());
            format!("<tspan dx=\"6\" font-weight=\"400\" fill=\"{faint}\">[{unit}]</tspan>")
        });
        let _ = writeln!(
            self.text,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\" font-size=\"{NORMAL}\" \
             font-weight=\"600\">{}{unit}</text>",
            self.left,
            top + 15.0,
            self.colours.text,
            escape(&title)
        );
        let mut y = top + TITLE;
        for row in &place.legend {
            self.legend_row(place.panel, row, y);
            y += ROW;
        }
        let bottom = y + place.height;
        let plot = self.plot;
        let names: Vec<String> = plot.band_names().into_iter().map(str::to_owned).collect();
        for band in &plot.bands {
            if let Some((from, to)) = self.shown(band.span) {
                let number = names.iter().position(|name| *name == band.name).unwrap_or(0);
                let fill = self.colours.fill(number);
                self.rect((from, y), (to - from, place.height), fill, " fill-opacity=\"0.35\"");
            }
        }
        for tick in ticks {
            let x = self.x(tick.at);
            self.rule((x, y), (x, bottom), self.colours.grid);
        }
        match &place.scale {
            Some(scale) => self.lines(place.panel, scale, (y, bottom)),
            None => self.lanes(place.panel, y),
        }
        let _ = writeln!(
            self.text,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{}\"/>",
            self.left,
            self.right - self.left,
            place.height,
            self.colours.frame
        );
        bottom + 14.0
    }

    fn legend_row(&mut self, panel: &Panel, row: &[usize], y: f64) {
        let mut x = self.left;
        for i in row {
            let name = &panel.series[*i].name;
            let stroke = stroke(self.colours, *i);
            let _ =
                writeln!(self.text, "<path d=\"M{x:.1} {:.1}h22\" {stroke} stroke-width=\"2\"/>", y + 8.0);
            let space = self.right - x - 28.0;
            self.write(
                (x + 28.0, y + 12.0),
                &fitted(name, SMALL, space),
                Anchor::Start,
                self.colours.text,
                "",
            );
            x += width(name, SMALL) + 46.0;
        }
    }

    fn lines(&mut self, panel: &Panel, scale: &Scale, (top, bottom): (f64, f64)) {
        let y = |value: f64| bottom - scale.place(value) * (bottom - top);
        for (value, label) in &scale.ticks {
            self.rule((self.left, y(*value)), (self.right, y(*value)), self.colours.grid);
            let at = (self.left - 6.0, y(*value) + 4.0);
            self.write(at, label, Anchor::End, self.colours.faint, "");
        }
        for (i, series) in panel.series.iter().enumerate() {
            let stroke = stroke(self.colours, i);
            let path = self.path(series, y);
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

    /// Returns the SVG path of a series. Steps get corners.
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
                // A line of length zero draws a dot, so that an isolated value is visible.
                None => write!(path, "M{:.1} {:.1}h0", here.0, here.1),
                Some(_) if series.is_step() => write!(path, "H{:.1}V{:.1}", here.0, here.1),
                Some(_) => write!(path, "L{:.1} {:.1}", here.0, here.1),
            };
            before = Some(here);
        }
        path
    }

    /// Draws states as named lanes below each other.
    fn lanes(&mut self, panel: &Panel, top: f64) {
        for (i, series) in panel.series.iter().enumerate() {
            let y = top + 2.0 + i as f64 * LANE;
            let (colour, _) = self.colours.line(i);
            let name = fitted(&series.name, SMALL, self.right - self.left - 12.0);
            for (span, state) in states(series) {
                let Some((from, to)) = self.shown(span) else { continue };
                let size = ((to - from).max(0.8), 15.0);
                match state {
                    State::Off => self.rect((from, y + 29.5), (size.0, 1.0), colour, ""),
                    State::On => self.rect((from, y + 16.0), size, colour, ""),
                    State::Named(number, state) => {
                        let border = format!(" stroke=\"{}\" stroke-width=\"0.5\"", self.colours.frame);
                        self.rect((from, y + 16.0), size, self.colours.fill(number), &border);
                        if size.0 > width(&state, SMALL) + 6.0 {
                            self.write((from + 4.0, y + 27.5), &state, Anchor::Start, self.colours.text, "");
                        }
                    }
                }
            }
            self.write((self.left + 6.0, y + 12.0), &name, Anchor::Start, self.colours.text, "");
            if i > 0 {
                self.rule((self.left, y - 1.0), (self.right, y - 1.0), self.colours.grid);
            }
        }
    }

    /// Draws the time axis below the last panel.
    fn times(&mut self, ticks: &[Tick], bottom: f64) {
        let y = bottom + 2.0;
        let mut free = 0.0;
        for tick in ticks {
            let x = self.x(tick.at);
            self.write((x, y), &tick.label, Anchor::Middle, self.colours.faint, "");
            if let Some(date) = &tick.date {
                let half = width(date, SMALL) / 2.0;
                let x = x.max(half + 2.0).min(self.right - half);
                if x - half >= free {
                    self.write((x, y + 16.0), date, Anchor::Middle, self.colours.faint, "");
                    free = x + half + 8.0;
                }
            }
        }
        let label = if self.plot.utc.is_some() { "UTC" } else { &*self.plot.time_label };
        let label = fitted(label, SMALL, self.right - free);
        self.write((self.right, y + 16.0), &label, Anchor::End, self.colours.faint, "");
    }
}

/// Returns the SVG attributes for the color and dashes of a line.
fn stroke(colours: &Colours, i: usize) -> String {
    let (colour, dashes) = colours.line(i);
    if dashes.is_empty() {
        return format!("stroke=\"{colour}\"");
    }
    format!("stroke=\"{colour}\" stroke-dasharray=\"{dashes}\"")
}
