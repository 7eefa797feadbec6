//! Writes tracks as GPX 1.1. See <https://www.topografix.com/GPX/1/1/>.

use std::io::{self, Write};

use rovelog::Timestamp;

use super::model::{Fix, Track, TrackPoint, degrees, meters};
use crate::xml::escape;

/// Writes a track as GPX. The XML schema prescribes the order of the elements in a point: `ele`,
/// `time`, `name`, `type`, `fix`, `sat`, `hdop`.
pub(super) fn write(track: &Track, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(
        out,
        r#"<gpx version="1.1" creator="rovelog" xmlns="http://www.topografix.com/GPX/1/1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.topografix.com/GPX/1/1 http://www.topografix.com/GPX/1/1/gpx.xsd">"#
    )?;
    write!(out, "<metadata><name>{}</name>", escape(&track.name))?;
    let first = track.points().next().map(|point| point.time);
    writeln!(out, "{}</metadata>", first.map(|first| time(track, first)).unwrap_or_default())?;
    for mark in &track.marks {
        let Some(place) = &mark.place else { continue };
        open(place, "wpt", out)?;
        // The waypoint has the time of the event, which may differ from that of the nearest point.
        let (name, kind) = (escape(&mark.name), mark.kind.name());
        writeln!(out, "{}<name>{name}</name><type>{kind}</type></wpt>", time(track, mark.time))?;
    }
    for line in &track.lines {
        writeln!(out, "<trk><name>{}</name>", escape(&line.source))?;
        for segment in &line.segments {
            writeln!(out, "<trkseg>")?;
            for point in &segment.points {
                open(point, "trkpt", out)?;
                write!(out, "{}", time(track, point.time))?;
                if let Some(fix) = point.fix.and_then(fix) {
                    write!(out, "<fix>{fix}</fix>")?;
                }
                if let Some(satellites) = point.satellites {
                    write!(out, "<sat>{satellites}</sat>")?;
                }
                if let Some(hdop) = point.hdop {
                    write!(out, "<hdop>{hdop}</hdop>")?;
                }
                writeln!(out, "</trkpt>")?;
            }
            writeln!(out, "</trkseg>")?;
        }
        writeln!(out, "</trk>")?;
    }
    writeln!(out, "</gpx>")
}

/// Writes the opening tag of a point, such as `<trkpt lat=".." lon="..">`, followed by the height
/// above mean sea level.
fn open(point: &TrackPoint, element: &str, out: &mut impl Write) -> io::Result<()> {
    let (latitude, longitude) = (degrees(point.latitude), degrees(point.longitude));
    // The GPX schema requires a longitude below 180°. The longitude -180° denotes the same
    // meridian.
    let longitude = if longitude < 180.0 { longitude } else { -180.0 };
    write!(out, r#"<{element} lat="{latitude:.7}" lon="{longitude:.7}">"#)?;
    match point.altitude_msl {
        Some(altitude) => write!(out, "<ele>{:.3}</ele>", meters(altitude)),
        None => Ok(()),
    }
}

/// Returns the `<time>` element, or an empty text if the UTC time is unknown.
fn time(track: &Track, time: Timestamp) -> String {
    track.utc_text(time).map(|time| format!("<time>{time}</time>")).unwrap_or_default()
}

/// Returns the GPX name of a fix, or `None` for an extrapolated fix, which GPX does not support.
fn fix(fix: Fix) -> Option<&'static str> {
    match fix {
        Fix::TwoD => Some("2d"),
        Fix::ThreeD => Some("3d"),
        Fix::Differential | Fix::RtkFloat | Fix::RtkFixed => Some("dgps"),
        Fix::Extrapolated => None,
    }
}
