//! Tracks in the words of no particular format: points, lines, phases and marks.

use rovelog::{Timestamp, UtcOffset};

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

    /// The number of `--min-fix` that it satisfies.
    pub(super) const fn level(self) -> u8 {
        match self {
            Self::TwoD | Self::Extrapolated => 2,
            Self::ThreeD => 3,
            Self::Differential => 4,
            Self::RtkFloat => 5,
            Self::RtkFixed => 6,
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
    pub(super) fn utc_text(&self, time: Timestamp) -> Option<String> {
        time.to_unix(self.utc.as_ref())?.rfc3339()
    }
}

/// Degrees as all formats write them: seven digits behind the point, a centimetre; never `-0`.
pub(super) fn degrees(value: f64) -> f64 {
    (value * 1e7).round() / 1e7 + 0.0
}

/// Metres as all formats write them: three digits behind the point; never `-0`.
pub(super) fn metres(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}

/// Whether a place is one on earth. A receiver without one says 0, 0.
pub(super) fn is_on_earth(latitude: f64, longitude: f64) -> bool {
    latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && (latitude != 0.0 || longitude != 0.0)
}
