//! Format-independent model of a track: points, lines, phases and marks.

use rovelog::{Timestamp, UtcOffset};

/// A position with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackPoint {
    /// Time on the log's clock.
    pub time: Timestamp,
    /// Degrees north (WGS 84).
    pub latitude: f64,
    /// Degrees east (WGS 84).
    pub longitude: f64,
    /// Height above mean sea level in meters.
    pub altitude_msl: Option<f64>,
    /// Height above the WGS 84 ellipsoid in meters.
    pub altitude_ellipsoid: Option<f64>,
    /// Quality of the fix; `None` for an estimated position.
    pub fix: Option<Fix>,
    /// Number of satellites used.
    pub satellites: Option<u8>,
    /// Horizontal dilution of precision.
    pub hdop: Option<f32>,
    /// Speed over ground in meters per second.
    pub speed: Option<f32>,
    /// Course over ground in degrees from north, clockwise.
    pub course: Option<f32>,
}

impl TrackPoint {
    /// Creates a point with a position only.
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
    /// Two-dimensional: the receiver assumes a height.
    TwoD,
    /// Three-dimensional.
    ThreeD,
    /// Differential: with code corrections.
    Differential,
    /// RTK with unresolved carrier phase ambiguities.
    RtkFloat,
    /// RTK with resolved carrier phase ambiguities.
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

/// A run of points without a gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// Points in time order, at least one.
    pub points: Vec<TrackPoint>,
}

/// The path from one source: a receiver, or an estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the topic.
    pub source: String,
    /// Segments in time order.
    pub segments: Vec<Segment>,
}

/// A named phase, such as a flight mode. It ends where the next phase starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Start of the phase on the log's clock.
    pub time: Timestamp,
    /// Name, such as `Mission (3)`.
    pub name: String,
    /// Number that selects the color. Equal phases have equal numbers.
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

/// The path of a vehicle, with its phases and events.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Track {
    /// Name written to track files.
    pub name: String,
    /// Paths, the best source first.
    pub lines: Vec<Line>,
    /// Flight modes in time order.
    pub phases: Vec<Phase>,
    /// Events, in time order.
    pub marks: Vec<Mark>,
    /// Offset from the log's clock to UTC. Without it, track files have no times.
    pub utc: Option<UtcOffset>,
}

impl Track {
    /// Returns whether the track has no points.
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

/// Rounds degrees to seven decimals, about a centimeter. Avoids `-0`.
pub(super) fn degrees(value: f64) -> f64 {
    (value * 1e7).round() / 1e7 + 0.0
}

/// Rounds meters to three decimals. Avoids `-0`.
pub(super) fn metres(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}

/// Returns whether coordinates are plausible. Both 0 is not, because receivers without a fix report
/// it.
pub(super) fn is_on_earth(latitude: f64, longitude: f64) -> bool {
    latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && (latitude != 0.0 || longitude != 0.0)
}
