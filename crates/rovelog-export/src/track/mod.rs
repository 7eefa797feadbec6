//! Where the vehicle went: what logs tell about it, and the files that hold it.

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

/// The track that a log holds. It is empty where the log has no topic with positions, or no fix in them: see
/// the tally.
///
/// # Errors
/// Where a topic that was asked for does not exist or holds no positions, or the format knows none.
pub fn of(log: &AnyLog, options: &TrackOptions) -> Result<(Track, Tally), Error> {
    match log {
        AnyLog::Ulog(reader) => px4::track(reader, options),
        AnyLog::Vel(reader) => vel::track(reader, options),
        AnyLog::Rosbag(bag) => rosbag::track(bag, options),
        log => Err(Error::new(
            log.format().id,
            ErrorKind::InvalidArgument,
            None,
            format!("no supported position topic in {} logs", log.format().name),
        )),
    }
}

/// A file format of tracks.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kml, Self::Gpx, Self::GeoJson];

    /// The name in options, which is the extension too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kml => "kml",
            Self::Gpx => "gpx",
            Self::GeoJson => "geojson",
        }
    }

    /// The format of an option or of a file's extension.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = if name.eq_ignore_ascii_case("json") { "geojson" } else { name };
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// How to write a track.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The meaning of heights; only KML leaves a choice.
    pub altitude: Altitude,
}

impl WriteOptions {
    /// The options with this meaning of heights.
    #[must_use]
    pub fn with_altitude(mut self, altitude: Altitude) -> Self {
        self.altitude = altitude;
        self
    }
}

/// Why a track could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// An empty file would look like success.
    #[error("the track has no points")]
    Empty,
    /// Only KML says what heights mean.
    #[error("{} has no altitude modes", .0.name())]
    Altitude(Format),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a track. The same track gives the same bytes.
///
/// # Errors
/// Where the track is empty, the options are not the format's, or the output refuses.
pub fn write(
    track: &Track,
    format: Format,
    options: &WriteOptions,
    out: impl Write,
) -> Result<(), WriteError> {
    if track.is_empty() {
        return Err(WriteError::Empty);
    }
    if format != Format::Kml && options.altitude != Altitude::Absolute {
        return Err(WriteError::Altitude(format));
    }
    let mut out = io::BufWriter::new(out);
    match format {
        Format::Kml => kml::write(track, options.altitude, &mut out)?,
        Format::Gpx => gpx::write(track, &mut out)?,
        Format::GeoJson => geojson::write(track, &mut out)?,
    }
    Ok(out.flush()?)
}
