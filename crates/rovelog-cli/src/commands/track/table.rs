//! Prints a track as a table of points with the quality of each GPS fix.

use rovelog_export::track::{self, Track, TrackPoint};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::input::Input;
use crate::text::cell;
use crate::times::Times;

/// A point of the track.
#[derive(Serialize)]
struct Row<'a> {
    time: Option<String>,
    t_ns: Option<String>,
    topic: &'a str,
    segment: usize,
    latitude_deg: f64,
    longitude_deg: f64,
    altitude_msl_m: Option<f64>,
    altitude_ellipsoid_m: Option<f64>,
    fix: Option<&'static str>,
    satellites: Option<u8>,
    hdop: Option<f32>,
    speed_m_s: Option<f32>,
    course_deg: Option<f32>,
    mode: Option<&'a str>,
}

/// An event on the track, such as a takeoff.
#[derive(Serialize)]
struct MarkDoc<'a> {
    time: Option<String>,
    t_ns: Option<String>,
    kind: &'static str,
    name: &'a str,
    latitude_deg: Option<f64>,
    longitude_deg: Option<f64>,
}

/// JSON document with the schema `rovelog.track/1`, which `rovelog track -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    points: Vec<Row<'a>>,
    marks: Vec<MarkDoc<'a>>,
}

fn row<'a>(track: &'a Track, topic: &'a str, segment: usize, point: &TrackPoint, times: &Times) -> Row<'a> {
    Row {
        time: times.machine(Some(point.time)),
        t_ns: times.t_ns_text(Some(point.time)),
        topic,
        segment,
        latitude_deg: point.latitude,
        longitude_deg: point.longitude,
        altitude_msl_m: point.altitude_msl,
        altitude_ellipsoid_m: point.altitude_ellipsoid,
        fix: point.fix.map(track::Fix::name),
        satellites: point.satellites,
        hdop: point.hdop,
        speed_m_s: point.speed,
        course_deg: point.course,
        mode: track.phase_at(point.time).map(|phase| phase.name.as_str()),
    }
}

pub(super) fn write(
    track: &Track,
    format: Format,
    times: &Times,
    input: &Input,
    context: &Context,
) -> Result<(), Failure> {
    let rows = track.lines.iter().flat_map(|line| {
        line.segments.iter().enumerate().flat_map(move |(number, segment)| {
            segment
                .points
                .iter()
                .map(move |point| (point.time, row(track, &line.source, number, point, times)))
        })
    });
    let mut out = context.out();
    match format {
        Format::Csv => out.csv(HEAD, rows.map(|(time, row)| cells(row, times.csv(Some(time))))),
        Format::Ndjson => {
            for (_, row) in rows {
                out.line(&row)?;
            }
            Ok(std::io::Write::flush(&mut out)?)
        }
        _ => {
            let marks = track.marks.iter().map(|mark| MarkDoc {
                time: times.machine(Some(mark.time)),
                t_ns: times.t_ns_text(Some(mark.time)),
                kind: mark.kind.name(),
                name: &mark.name,
                latitude_deg: mark.place.map(|place| place.latitude),
                longitude_deg: mark.place.map(|place| place.longitude),
            });
            let points = rows.map(|(_, row)| row).collect();
            let marks = marks.collect();
            Ok(out.document(&Document { schema: "rovelog.track/1", file: input.name(), points, marks })?)
        }
    }
}

/// Columns of the CSV output.
#[rustfmt::skip]
const HEAD: [&str; 14] = [
    "time", "t_ns", "topic", "segment", "latitude_deg", "longitude_deg", "altitude_msl_m",
    "altitude_ellipsoid_m", "fix", "satellites", "hdop", "speed_m_s", "course_deg", "mode",
];

/// Returns the cells of a row of the CSV output.
fn cells(row: Row<'_>, time: String) -> [String; 14] {
    [
        time,
        row.t_ns.unwrap_or_default(),
        row.topic.to_owned(),
        row.segment.to_string(),
        row.latitude_deg.to_string(),
        row.longitude_deg.to_string(),
        cell(row.altitude_msl_m),
        cell(row.altitude_ellipsoid_m),
        cell(row.fix),
        cell(row.satellites),
        cell(row.hdop),
        cell(row.speed_m_s),
        cell(row.course_deg),
        cell(row.mode),
    ]
}
