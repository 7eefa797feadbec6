//! Tracks as GeoJSON (RFC 7946). Longitude comes first. Heights are above the ellipsoid where
//! known.
//!
//! Times are in `properties.coordTimes`, as other converters between GPX and GeoJSON write them.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::model::{Line, Mark, Segment, Track, TrackPoint, degrees, metres};

#[derive(Serialize)]
struct Feature<G, P> {
    r#type: &'static str,
    geometry: Option<Geometry<G>>,
    properties: P,
}

#[derive(Serialize)]
struct Geometry<G> {
    r#type: &'static str,
    coordinates: G,
}

/// A list whose items are generated during serialization, so that it is never in memory.
struct List<F>(F);

impl<I: IntoIterator<Item: Serialize>, F: Fn() -> I> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq((self.0)())
    }
}

/// Reference of the heights in a geometry, which all of its points share.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Height {
    Ellipsoid,
    MeanSeaLevel,
    None,
}

impl Height {
    fn of(points: &[TrackPoint]) -> Self {
        if points.iter().all(|point| point.altitude_ellipsoid.is_some()) {
            Self::Ellipsoid
        } else if points.iter().all(|point| point.altitude_msl.is_some()) {
            Self::MeanSeaLevel
        } else {
            Self::None
        }
    }

    /// Returns `[longitude, latitude, height]`.
    fn coordinates(self, point: &TrackPoint) -> impl Serialize + use<> {
        let height = match self {
            Self::Ellipsoid => point.altitude_ellipsoid,
            Self::MeanSeaLevel => point.altitude_msl,
            Self::None => None,
        };
        let place = [degrees(point.longitude), degrees(point.latitude)];
        List(move || place.into_iter().chain(height.map(metres)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Way<'a, T> {
    name: &'a str,
    source: &'a str,
    altitude: Height,
    #[serde(skip_serializing_if = "Option::is_none")]
    coord_times: Option<T>,
}

#[derive(Serialize)]
struct Happening<'a> {
    name: &'a str,
    kind: &'static str,
    altitude: Height,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

pub(super) fn write(track: &Track, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        r#"{{"type":"FeatureCollection","name":{},"features":["#,
        serde_json::to_string(&track.name)?
    )?;
    let mut separator = "";
    for line in &track.lines {
        for segment in &line.segments {
            write!(out, "{separator}")?;
            write_segment(track, line, segment, out)?;
            separator = ",\n";
        }
    }
    for mark in &track.marks {
        write!(out, "{separator}")?;
        write_mark(track, mark, out)?;
    }
    writeln!(out, "\n]}}")
}

/// Writes a line, or a point if there is only one.
fn write_segment(track: &Track, line: &Line, segment: &Segment, out: &mut impl Write) -> io::Result<()> {
    let points = &segment.points;
    let altitude = Height::of(points);
    let times = || points.iter().map(|point| track.utc_text(point.time));
    let properties = Way {
        name: &track.name,
        source: &line.source,
        altitude,
        coord_times: times().next().flatten().map(|_| List(times)),
    };
    let coordinates = |point: &TrackPoint| altitude.coordinates(point);
    match points.as_slice() {
        [point] => feature("Point", coordinates(point), properties, out),
        points => feature("LineString", List(|| points.iter().map(coordinates)), properties, out),
    }
}

fn write_mark(track: &Track, mark: &Mark, out: &mut impl Write) -> io::Result<()> {
    let altitude = mark.place.as_ref().map_or(Height::None, |place| Height::of(std::slice::from_ref(place)));
    let geometry = mark
        .place
        .as_ref()
        .map(|place| Geometry { r#type: "Point", coordinates: altitude.coordinates(place) });
    let properties =
        Happening { name: &mark.name, kind: mark.kind.name(), altitude, time: track.utc_text(mark.time) };
    Ok(serde_json::to_writer(out, &Feature { r#type: "Feature", geometry, properties })?)
}

fn feature(
    kind: &'static str,
    coordinates: impl Serialize,
    properties: impl Serialize,
    out: &mut impl Write,
) -> io::Result<()> {
    let geometry = Some(Geometry { r#type: kind, coordinates });
    Ok(serde_json::to_writer(out, &Feature { r#type: "Feature", geometry, properties })?)
}
