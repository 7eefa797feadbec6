//! Writes tracks as GeoJSON (RFC 7946).
//!
//! In coordinates, the longitude comes before the latitude. Heights are above the ellipsoid, as RFC
//! 7946 requires. If these heights are unknown, the heights are above mean sea level instead.
//! GeoJSON has no field for times, so they are in `properties.coordTimes`, as in other converters
//! from GPX to GeoJSON.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::model::{Line, Mark, Segment, Track, TrackPoint, degrees, meters};

/// A GeoJSON feature object.
#[derive(Serialize)]
struct Feature<G, P> {
    r#type: &'static str,
    geometry: Option<Geometry<G>>,
    properties: P,
}

/// A GeoJSON geometry object.
#[derive(Serialize)]
struct Geometry<G> {
    r#type: &'static str,
    coordinates: G,
}

/// A JSON list whose items are created while it is serialized, so that the whole list is never in
/// memory.
struct List<F>(F);

impl<I: IntoIterator<Item: Serialize>, F: Fn() -> I> Serialize for List<F> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq((self.0)())
    }
}

/// Reference of the heights in a geometry. All points of a geometry have the same reference.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Height {
    Ellipsoid,
    MeanSeaLevel,
    None,
}

impl Height {
    /// Returns the reference for which all points have a height. The ellipsoid is preferred.
    fn of(points: &[TrackPoint]) -> Self {
        if points.iter().all(|point| point.altitude_ellipsoid.is_some()) {
            Self::Ellipsoid
        } else if points.iter().all(|point| point.altitude_msl.is_some()) {
            Self::MeanSeaLevel
        } else {
            Self::None
        }
    }

    /// Returns the coordinates `[longitude, latitude, height]`. The height is omitted if it is
    /// unknown.
    fn coordinates(self, point: &TrackPoint) -> impl Serialize + use<> {
        let height = match self {
            Self::Ellipsoid => point.altitude_ellipsoid,
            Self::MeanSeaLevel => point.altitude_msl,
            Self::None => None,
        };
        let place = [degrees(point.longitude), degrees(point.latitude)];
        List(move || place.into_iter().chain(height.map(meters)))
    }
}

/// Properties of the GeoJSON feature for a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineProperties<'a, T> {
    name: &'a str,
    source: &'a str,
    altitude: Height,
    #[serde(skip_serializing_if = "Option::is_none")]
    coord_times: Option<T>,
}

/// Properties of the GeoJSON feature for an event.
#[derive(Serialize)]
struct MarkProperties<'a> {
    name: &'a str,
    kind: &'static str,
    altitude: Height,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
}

/// Writes a track as GeoJSON. Features are written one at a time, so that the memory use is small.
pub(super) fn write(track: &Track, out: &mut impl Write) -> io::Result<()> {
    // RFC 7946 does not define `name`, but GIS programs show it as the name of the layer.
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

/// Writes a segment as a `LineString`, or as a `Point` if it has only one point. RFC 7946 requires
/// at least two points in a `LineString`.
fn write_segment(track: &Track, line: &Line, segment: &Segment, out: &mut impl Write) -> io::Result<()> {
    let points = &segment.points;
    let altitude = Height::of(points);
    let times = || points.iter().map(|point| track.utc_text(point.time));
    let properties = LineProperties {
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
    let point = |place| Geometry { r#type: "Point", coordinates: altitude.coordinates(place) };
    let geometry = mark.place.as_ref().map(point);
    let properties = MarkProperties {
        name: &mark.name,
        kind: mark.kind.name(),
        altitude,
        time: track.utc_text(mark.time),
    };
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
