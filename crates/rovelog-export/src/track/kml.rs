//! Writes tracks as KML 2.2 (OGC 07-147r2) with Google's extension `gx:Track`.
//!
//! Each line is divided by flight mode, and each part becomes a colored `LineString`. A
//! `LineString` has no times for its points, so each line is written a second time as an invisible
//! `gx:MultiTrack` with times. Events become placemarks.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::model::{Line, Mark, Segment, Track, TrackPoint, degrees, meters};
use super::options::Altitude;
use crate::xml::escape;

/// Colors (red, green, blue) of phases such as flight modes. They are easy to see on satellite
/// images. The `kind` number of a phase selects its color.
#[rustfmt::skip]
const COLORS: [[u8; 3]; 16] = [
    [0xe6, 0x19, 0x4b], [0xff, 0xe1, 0x19], [0x3c, 0xb4, 0x4b], [0x43, 0x63, 0xd8],
    [0xf5, 0x82, 0x31], [0xf0, 0x32, 0xe6], [0x46, 0xf0, 0xf0], [0xd2, 0xf5, 0x3c],
    [0xfa, 0xbe, 0xd4], [0x00, 0x80, 0x80], [0xdc, 0xbe, 0xff], [0x9a, 0x63, 0x24],
    [0xff, 0xfa, 0xc8], [0x80, 0x00, 0x00], [0xaa, 0xff, 0xc3], [0x80, 0x80, 0x00],
];

/// Color of a track that has no phases.
const PLAIN: [u8; 3] = [0xff, 0xff, 0x00];

/// Writes a track as KML.
pub(super) fn write(track: &Track, altitude: Altitude, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">"#
    )?;
    writeln!(out, "<Document><name>{}</name>", escape(&track.name))?;
    styles(track, out)?;
    for line in &track.lines {
        let heights = Heights::new(line, altitude);
        writeln!(out, "<Folder><name>{}</name>", escape(&line.source))?;
        for segment in &line.segments {
            for (phase, points) in pieces(track, segment) {
                line_string(track, line, phase, points, heights, out)?;
            }
        }
        if track.points().any(|point| track.utc_text(point.time).is_some()) {
            with_times(track, line, heights, out)?;
        }
        writeln!(out, "</Folder>")?;
    }
    if let Some(first) = track.lines.first().filter(|_| !track.marks.is_empty()) {
        let heights = Heights::new(first, altitude);
        writeln!(out, "<Folder><name>Marks</name>")?;
        for mark in &track.marks {
            placemark(track, mark, heights, out)?;
        }
        writeln!(out, "</Folder>")?;
    }
    writeln!(out, "</Document></kml>")
}

/// Writes the KML styles: one for each kind of phase, one for lines without a phase, and one for
/// the invisible tracks with times.
fn styles(track: &Track, out: &mut impl Write) -> io::Result<()> {
    let style = |id: &str, [red, green, blue]: [u8; 3], out: &mut dyn Write| {
        // KML colors have the order alpha, blue, green, red.
        let color = format!("ff{blue:02x}{green:02x}{red:02x}");
        writeln!(
            out,
            r#"<Style id="{id}"><LineStyle><color>{color}</color><width>3</width></LineStyle></Style>"#
        )
    };
    style("track", PLAIN, out)?;
    for kind in track.phases.iter().map(|phase| phase.kind).collect::<BTreeSet<_>>() {
        style(&format!("phase-{kind}"), COLORS[kind as usize % COLORS.len()], out)?;
    }
    // A visible track with times would cover the colored lines.
    writeln!(
        out,
        r#"<Style id="times"><LineStyle><color>00ffffff</color><width>1</width></LineStyle></Style>"#
    )
}

/// Splits a segment into parts by phase. Returns the index of the phase and the points of each
/// part. The first point of a part is also the last point of the previous part, so that the drawn
/// line has no gap.
fn pieces<'a>(track: &Track, segment: &'a Segment) -> Vec<(Option<usize>, &'a [TrackPoint])> {
    let phase = |point: &TrackPoint| {
        track.phases.partition_point(|phase| phase.time.nanos <= point.time.nanos).checked_sub(1)
    };
    let points = segment.points.as_slice();
    let mut pieces = Vec::new();
    let mut start = 0;
    while let Some(first) = points.get(start) {
        let here = phase(first);
        let len = points[start..].iter().take_while(|point| phase(point) == here).count();
        let end = start + len;
        let piece = &points[start..points.len().min(end + 1)];
        // A last part with a single point is omitted, because the previous part already ends at
        // this point.
        if piece.len() > 1 || start == 0 {
            pieces.push((here, piece));
        }
        start = end;
    }
    pieces
}

/// Writes a part of a segment as a `LineString`, or as a `Point` if it has only one point.
fn line_string(
    track: &Track,
    line: &Line,
    phase: Option<usize>,
    points: &[TrackPoint],
    heights: Heights,
    out: &mut impl Write,
) -> io::Result<()> {
    let (name, style) = match phase.and_then(|phase| track.phases.get(phase)) {
        Some(phase) => (phase.name.as_str(), format!("phase-{}", phase.kind)),
        None => (line.source.as_str(), "track".to_owned()),
    };
    write!(out, "<Placemark><name>{}</name>", escape(name))?;
    let time = |point: Option<&TrackPoint>| point.and_then(|point| track.utc_text(point.time));
    if let (Some(start), Some(end)) = (time(points.first()), time(points.last())) {
        write!(out, "<TimeSpan><begin>{start}</begin><end>{end}</end></TimeSpan>")?;
    }
    writeln!(out, "<styleUrl>#{style}</styleUrl>")?;
    let heights = heights.of(points);
    let element = if points.len() > 1 { "LineString" } else { "Point" };
    write!(out, "<{element}>")?;
    if heights.mode == Altitude::Clamp && points.len() > 1 {
        write!(out, "<tessellate>1</tessellate>")?;
    }
    writeln!(out, "{}<coordinates>", heights.element())?;
    for point in points {
        heights.coordinates(point, ",", out)?;
        writeln!(out)?;
    }
    writeln!(out, "</coordinates></{element}></Placemark>")
}

/// Writes a line as a `gx:MultiTrack`, which has a time for each point. Viewers then show a time
/// slider.
fn with_times(track: &Track, line: &Line, heights: Heights, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<Placemark><name>{} with times</name>", escape(&line.source))?;
    writeln!(out, "<styleUrl>#times</styleUrl><gx:MultiTrack><gx:interpolate>0</gx:interpolate>")?;
    for segment in &line.segments {
        let heights = heights.of(&segment.points);
        writeln!(out, "<gx:Track>{}", heights.element())?;
        // A `gx:Track` needs a time for each coordinate, so points without UTC are omitted.
        let points = || segment.points.iter().filter_map(|p| Some((track.utc_text(p.time)?, p)));
        for (time, _) in points() {
            writeln!(out, "<when>{time}</when>")?;
        }
        for (_, point) in points() {
            write!(out, "<gx:coord>")?;
            heights.coordinates(point, " ", out)?;
            writeln!(out, "</gx:coord>")?;
        }
        writeln!(out, "</gx:Track>")?;
    }
    writeln!(out, "</gx:MultiTrack></Placemark>")
}

/// Writes an event as a placemark.
fn placemark(track: &Track, mark: &Mark, heights: Heights, out: &mut impl Write) -> io::Result<()> {
    write!(out, "<Placemark><name>{}</name>", escape(&mark.name))?;
    write!(out, "<description>{}</description>", mark.kind.name())?;
    if let Some(time) = track.utc_text(mark.time) {
        write!(out, "<TimeStamp><when>{time}</when></TimeStamp>")?;
    }
    if let Some(place) = &mark.place {
        let heights = heights.of(std::slice::from_ref(place));
        write!(out, "<Point>{}<coordinates>", heights.element())?;
        heights.coordinates(place, ",", out)?;
        write!(out, "</coordinates></Point>")?;
    }
    writeln!(out, "</Placemark>")
}

/// Rule for the heights of a line in KML.
#[derive(Clone, Copy)]
struct Heights {
    /// Reference of the heights, such as mean sea level.
    mode: Altitude,
    /// Height of the first point of the line. It is subtracted from every height if the heights
    /// are relative.
    base: f64,
}

impl Heights {
    fn new(line: &Line, mode: Altitude) -> Self {
        let first = || line.segments.iter().flat_map(|s| &s.points).find_map(|point| point.altitude_msl);
        let base = if mode == Altitude::Relative { first().unwrap_or(0.0) } else { 0.0 };
        Self { mode, base }
    }

    /// Returns the rule for a geometry with these points. If the height of a point is unknown, the
    /// geometry is drawn on the ground.
    fn of(self, points: &[TrackPoint]) -> Self {
        let known = points.iter().all(|point| point.altitude_msl.is_some());
        Self { mode: if known { self.mode } else { Altitude::Clamp }, ..self }
    }

    /// Returns the XML element that states the reference of the heights.
    fn element(self) -> &'static str {
        match self.mode {
            Altitude::Absolute => "<altitudeMode>absolute</altitudeMode>",
            Altitude::Relative => "<altitudeMode>relativeToGround</altitudeMode>",
            Altitude::Clamp => "<altitudeMode>clampToGround</altitudeMode>",
        }
    }

    /// Writes the longitude, latitude and height of a point.
    fn coordinates(self, point: &TrackPoint, separator: &str, out: &mut impl Write) -> io::Result<()> {
        let (latitude, longitude) = (degrees(point.latitude), degrees(point.longitude));
        write!(out, "{longitude:.7}{separator}{latitude:.7}")?;
        match point.altitude_msl {
            Some(altitude) => write!(out, "{separator}{:.3}", meters(altitude - self.base)),
            None => Ok(()),
        }
    }
}
