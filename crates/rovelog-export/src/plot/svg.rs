//! SVG pictures.

use std::fmt::Write as _;

use super::model::Size;
use super::paint::{Anchor, Area, Colour, Surface};
use crate::xml::escape;

pub(super) struct Svg {
    text: String,
}

impl Svg {
    pub(super) fn new(size: Size) -> Self {
        let Size { width, height } = size;
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 \
             {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{width}\" \
             height=\"{height}\" fill=\"#fff\"/>\n"
        );
        Self { text }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

fn colour([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

impl Surface for Svg {
    fn line(&mut self, points: &[(f64, f64)], line: Colour, area: Area) {
        let _ = write!(self.text, "<polyline fill=\"none\" stroke=\"{}\" points=\"", colour(line));
        for (x, y) in points {
            let (x, y) = (x.clamp(area.left, area.right), y.clamp(area.top, area.bottom));
            let _ = write!(self.text, "{x:.1},{y:.1} ");
        }
        self.text.truncate(self.text.trim_end().len());
        self.text.push_str("\"/>\n");
    }

    fn text(&mut self, (x, y): (f64, f64), text: &str, anchor: Anchor, fill: Colour) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
            colour(fill),
            escape(text)
        );
    }
}
