//! Reads the track of a vehicle from a log, and writes it as KML, GPX or GeoJSON.

mod build;
mod geojson;
mod gpx;
mod kml;
mod model;
mod options;
pub(crate) mod px4;
mod rosbag;
pub(crate) mod vel;

use std::io::{self, Write};

use rovelog::{AnyLog, Error, ErrorKind};

pub use build::LineBuilder;
pub use model::{Fix, Line, Mark, MarkKind, Phase, Segment, Track, TrackPoint};
pub use options::{Altitude, Tally, TrackOptions};

/// Reads the track of a log. If the log has no topic with positions or no valid fix, the track is
/// empty. The second result has the numbers of rows that were not used, by reason.
///
/// # Errors
/// Returns an error if a requested topic does not exist or has no positions, or if logs of this
/// format never have positions.
pub fn of(log: &AnyLog, options: &TrackOptions) -> Result<(Track, Tally), Error> {
    match log {
        AnyLog::Ulog(reader) => px4::track(reader, options),
        AnyLog::Vel(reader) => vel::track(reader, options),
        AnyLog::Rosbag(bag) => rosbag::track(bag, options),
        log => Err(Error::new(
            log.format().id,
            ErrorKind::InvalidArgument,
            None,
            format!("{} logs have no topics with positions", log.format().name),
        )),
    }
}

/// A file format for tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// KML 2.2 with the extension `gx:Track`.
    Kml,
    /// GPX 1.1.
    Gpx,
    /// GeoJSON, RFC 7946.
    GeoJson,
}

impl Format {
    /// All file formats for tracks.
    pub const ALL: [Self; 3] = [Self::Kml, Self::Gpx, Self::GeoJson];

    /// Returns the name of the format in command-line options, which is also the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kml => "kml",
            Self::Gpx => "gpx",
            Self::GeoJson => "geojson",
        }
    }

    /// Returns the format with the option name or file extension `name`, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("json") { "geojson" } else { name };
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// An error while writing a track.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The track has no points. A file without points would suggest that the export succeeded.
    #[error("the track has no points")]
    Empty,
    /// The file format does not support the requested reference of heights. Only KML supports
    /// several references.
    #[error("the {} format has no altitude modes", .0.name())]
    Altitude(Format),
    /// Writing the file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a track. The same track always gives the same file. `altitude` is the reference of the
/// heights. Formats other than KML only support the default.
///
/// # Errors
/// Returns an error if the track is empty, the format does not support the reference of the
/// heights, or writing to the output fails.
pub fn write(track: &Track, format: Format, altitude: Altitude, out: impl Write) -> Result<(), WriteError> {
    if track.is_empty() {
        return Err(WriteError::Empty);
    }
    if format != Format::Kml && altitude != Altitude::Absolute {
        return Err(WriteError::Altitude(format));
    }
    let mut out = io::BufWriter::new(out);
    match format {
        Format::Kml => kml::write(track, altitude, &mut out)?,
        Format::Gpx => gpx::write(track, &mut out)?,
        Format::GeoJson => geojson::write(track, &mut out)?,
    }
    Ok(out.flush()?)
}
