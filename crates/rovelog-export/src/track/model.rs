//! Format-independent model of a track: points, lines, phases and marks.

use rovelog::{Timestamp, UtcOffset};

/// A position at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackPoint {
    /// Time on the log's clock.
    pub time: Timestamp,
    /// Degrees north (WGS 84).
    pub latitude: f64,
    /// Degrees east (WGS 84).
    pub longitude: f64,
    /// Metres above mean sea level.
    pub altitude_msl: Option<f64>,
    /// Metres above the WGS 84 ellipsoid.
    pub altitude_ellipsoid: Option<f64>,
    /// Quality of the fix; `None` for an estimated position.
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
    /// Returns a point of which only the position is known.
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

/// Quality of a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fix {
    /// Two-dimensional: the height is assumed.
    TwoD,
    /// Three-dimensional.
    ThreeD,
    /// Differential: with code corrections.
    Differential,
    /// RTK, carrier phase ambiguities not resolved.
    RtkFloat,
    /// RTK, carrier phase ambiguities resolved.
    RtkFixed,
    /// Extrapolated without new measurements.
    Extrapolated,
}

impl Fix {
    /// Returns the name in tables and in GeoJSON.
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

    /// Returns the highest value of `--min-fix` that this fix satisfies.
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
    /// In time order; never empty.
    pub points: Vec<TrackPoint>,
}

/// The path from one source: a receiver, or an estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Topic.
    pub source: String,
    /// In time order.
    pub segments: Vec<Segment>,
}

/// A range of time with a name: a flight mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Start of the phase on the log's clock.
    pub time: Timestamp,
    /// Name, such as `Mission (3)`.
    pub name: String,
    /// Number that selects the colour; equal phases have equal numbers.
    pub kind: u32,
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Time on the log's clock.
    pub time: Timestamp,
    /// Kind of the event.
    pub kind: MarkKind,
    /// Name of the event.
    pub name: String,
    /// Position; `None` if no point of the track is within ten seconds.
    pub place: Option<TrackPoint>,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MarkKind {
    /// The motors were armed.
    Armed,
    /// The motors were disarmed.
    Disarmed,
    /// A failsafe started.
    FailsafeStarts,
    /// A failsafe ended.
    FailsafeEnds,
    /// A camera was triggered.
    Camera,
}

impl MarkKind {
    /// Returns the name in tables and in GeoJSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Disarmed => "disarmed",
            Self::FailsafeStarts => "failsafe",
            Self::FailsafeEnds => "failsafe_over",
            Self::Camera => "camera",
        }
    }
}

/// Everything a log contains about the path of the vehicle.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Track {
    /// Name in the files.
    pub name: String,
    /// Paths, the best source first.
    pub lines: Vec<Line>,
    /// Flight modes in time order.
    pub phases: Vec<Phase>,
    /// Events, in time order.
    pub marks: Vec<Mark>,
    /// Offset of the log's clock to UTC; without it no file has times.
    pub utc: Option<UtcOffset>,
}

impl Track {
    /// Returns whether there is no point.
    pub fn is_empty(&self) -> bool {
        self.points().next().is_none()
    }

    /// Returns all points, line by line.
    pub fn points(&self) -> impl Iterator<Item = &TrackPoint> {
        self.lines.iter().flat_map(|line| &line.segments).flat_map(|segment| &segment.points)
    }

    /// Returns the phase at a time.
    pub fn phase_at(&self, time: Timestamp) -> Option<&Phase> {
        let next = self.phases.partition_point(|phase| phase.time.nanos <= time.nanos);
        self.phases.get(next.checked_sub(1)?)
    }

    /// Returns a time as RFC 3339; `None` without UTC.
    pub(super) fn utc_text(&self, time: Timestamp) -> Option<String> {
        time.to_unix(self.utc.as_ref())?.rfc3339()
    }
}

/// Rounds degrees to seven decimals (a centimetre); never `-0`.
pub(super) fn degrees(value: f64) -> f64 {
    (value * 1e7).round() / 1e7 + 0.0
}

/// Rounds metres to three decimals; never `-0`.
pub(super) fn metres(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}

/// Returns whether coordinates are valid. A receiver without a fix reports 0, 0.
pub(super) fn is_on_earth(latitude: f64, longitude: f64) -> bool {
    latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && (latitude != 0.0 || longitude != 0.0)
}
