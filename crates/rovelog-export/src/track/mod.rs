//! Where the vehicle went: points, lines and marks in the words of no particular format, and their writers.

mod build;
mod geojson;
mod gpx;
mod kml;
mod px4;
mod rosbag;
pub(crate) mod vel;

use std::io::{self, Write};

use rovelog::{AnyLog, Error, ErrorKind, Timestamp, UtcOffset};

pub use build::LineBuilder;

/// One place at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackPoint {
    /// When, on the log's clock.
    pub time: Timestamp,
    /// Degrees north (WGS 84).
    pub latitude: f64,
    /// Degrees east (WGS 84).
    pub longitude: f64,
    /// Metres above mean sea level.
    pub altitude_msl: Option<f64>,
    /// Metres above the WGS 84 ellipsoid.
    pub altitude_ellipsoid: Option<f64>,
    /// How good the fix is; `None` for the position of an estimator.
    pub fix: Option<Fix>,
    /// Satellites used.
    pub satellites: Option<u8>,
    /// Horizontal dilution of precision.
    pub hdop: Option<f32>,
    /// Metres per second over ground.
    pub speed: Option<f32>,
    /// Course over ground in degrees from north, clockwise.
    pub course: Option<f32>,
}

impl TrackPoint {
    /// A point of which only the place is known.
    pub fn new(time: Timestamp, latitude: f64, longitude: f64) -> Self {
        Self {
            time,
            latitude,
            longitude,
            altitude_msl: None,
            altitude_ellipsoid: None,
            fix: None,
            satellites: None,
            hdop: None,
            speed: None,
            course: None,
        }
    }
}

/// How good a fix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fix {
    /// In two dimensions: the height is assumed.
    TwoD,
    /// In three dimensions.
    ThreeD,
    /// With code corrections.
    Differential,
    /// With carrier phase, its ambiguities not resolved.
    RtkFloat,
    /// With carrier phase.
    RtkFixed,
    /// Carried forward without new measurements.
    Extrapolated,
}

impl Fix {
    /// The word used in tables and in GeoJSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoD => "2d",
            Self::ThreeD => "3d",
            Self::Differential => "dgps",
            Self::RtkFloat => "rtk_float",
            Self::RtkFixed => "rtk_fixed",
            Self::Extrapolated => "extrapolated",
        }
    }
}

/// Points without a gap between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// In the order of time; never empty.
    pub points: Vec<TrackPoint>,
}

/// The way as one source saw it: a receiver, an estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The topic.
    pub source: String,
    /// In the order of time.
    pub segments: Vec<Segment>,
}

/// A stretch of time with a name: a flight mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// From when it holds, on the log's clock.
    pub time: Timestamp,
    /// Its name: `Mission (3)`.
    pub name: String,
    /// A number that decides its colour; equal phases have equal numbers.
    pub kind: u32,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// When, on the log's clock.
    pub time: Timestamp,
    /// What.
    pub kind: MarkKind,
    /// What, in words.
    pub name: String,
    /// Where; `None` where there is no point of the track within ten seconds.
    pub place: Option<TrackPoint>,
}

/// Kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MarkKind {
    /// The motors were armed.
    Armed,
    /// The motors were disarmed.
    Disarmed,
    /// A failsafe took over.
    FailsafeBegins,
    /// A failsafe was over.
    FailsafeEnds,
    /// A camera was triggered.
    Camera,
}

impl MarkKind {
    /// The word used in tables and in GeoJSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Disarmed => "disarmed",
            Self::FailsafeBegins => "failsafe",
            Self::FailsafeEnds => "failsafe_over",
            Self::Camera => "camera",
        }
    }
}

/// All that a log tells about where the vehicle went.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Track {
    /// What the files call it.
    pub name: String,
    /// The ways, the best source first.
    pub lines: Vec<Line>,
    /// Flight modes in the order of time.
    pub phases: Vec<Phase>,
    /// What happened, in the order of time.
    pub marks: Vec<Mark>,
    /// The place of the log's clock on the Unix clock; without it no file has times.
    pub utc: Option<UtcOffset>,
}

impl Track {
    /// Whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.points().next().is_none()
    }

    /// All points, line by line.
    pub fn points(&self) -> impl Iterator<Item = &TrackPoint> {
        self.lines.iter().flat_map(|line| &line.segments).flat_map(|segment| &segment.points)
    }

    /// The phase at a time.
    pub fn phase_at(&self, time: Timestamp) -> Option<&Phase> {
        let next = self.phases.partition_point(|phase| phase.time.nanos <= time.nanos);
        self.phases.get(next.checked_sub(1)?)
    }

    /// A time as the files write it: RFC 3339, where the log has UTC.
    fn utc_text(&self, time: Timestamp) -> Option<String> {
        time.to_unix(self.utc.as_ref())?.rfc3339()
    }
}

/// What to take from a log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrackOptions {
    /// The topics, by name; empty for the best that have positions.
    pub topics: Vec<String>,
    /// The least fix, as a number of dimensions or of PX4's `fix_type`; `None` for three dimensions.
    pub min_fix: Option<u8>,
    /// Keep points that are closer than 0.1 s.
    pub all: bool,
    /// First time to keep, nanoseconds of the log's clock.
    pub start: Option<i64>,
    /// First time to leave out again.
    pub end: Option<i64>,
}

/// What became of the rows of the topics that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Rows of topics with positions.
    pub rows: u64,
    /// Rows without a fix, or with a lesser one than was asked for.
    pub without_fix: u64,
    /// Rows whose coordinates are none: not finite, out of range, both 0.
    pub implausible: u64,
    /// Rows without a time.
    pub untimed: u64,
    /// Points that were closer than 0.1 s to the one before.
    pub close: u64,
}

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
            format!("{} holds no positions that are known to this version", log.format().name),
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

/// What the heights in a KML file mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Altitude {
    /// Metres above mean sea level.
    #[default]
    Absolute,
    /// Metres above the first point, drawn above the ground.
    Relative,
    /// Drawn on the ground.
    Clamp,
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

/// Degrees as all formats write them: seven digits behind the point, a centimetre; never `-0`.
fn degrees(value: f64) -> f64 {
    (value * 1e7).round() / 1e7 + 0.0
}

/// Metres as all formats write them: three digits behind the point; never `-0`.
fn metres(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}
