//! Format-independent model of a track: points, lines, phases and marks.

use rovelog::{Timestamp, UtcOffset};

/// A position with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackPoint {
    /// Time on the log's clock.
    pub time: Timestamp,
    /// Latitude in degrees north (WGS 84).
    pub latitude: f64,
    /// Longitude in degrees east (WGS 84).
    pub longitude: f64,
    /// Height above mean sea level in meters.
    pub altitude_msl: Option<f64>,
    /// Height above the WGS 84 ellipsoid in meters.
    pub altitude_ellipsoid: Option<f64>,
    /// Quality of the GPS fix. `None` if the position is estimated from several sensors.
    pub fix: Option<Fix>,
    /// Number of satellites used for the fix.
    pub satellites: Option<u8>,
    /// Horizontal dilution of precision.
    pub hdop: Option<f32>,
    /// Speed over ground in meters per second.
    pub speed: Option<f32>,
    /// Course over ground in degrees from north, clockwise.
    pub course: Option<f32>,
}

impl TrackPoint {
    /// Creates a point with only a time and a position. All other properties are unknown.
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

/// Quality of a GPS fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fix {
    /// Two-dimensional fix, for which the receiver assumes a height.
    TwoD,
    /// Three-dimensional fix.
    ThreeD,
    /// Differential fix, which uses corrections of the code measurements.
    Differential,
    /// Fix by real-time kinematics (RTK) with unresolved carrier phase ambiguities.
    RtkFloat,
    /// Fix by real-time kinematics (RTK) with resolved carrier phase ambiguities.
    RtkFixed,
    /// Position that was extrapolated without new measurements.
    Extrapolated,
}

impl Fix {
    /// Returns the name of the fix quality in tables and in GeoJSON.
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

    /// Returns the highest value of the option `--min-fix` that this fix satisfies.
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

/// Consecutive points without a gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    /// The points of the segment in time order. A segment has at least one point.
    pub points: Vec<TrackPoint>,
}

/// The path of the vehicle according to one source, which is a GPS receiver or an estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the topic from which the path was read.
    pub source: String,
    /// Segments of the path in time order. There is a gap between two segments.
    pub segments: Vec<Segment>,
}

/// A named phase, such as a flight mode. A phase ends when the next phase starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Time at which the phase starts, on the log's clock.
    pub time: Timestamp,
    /// Name of the phase, such as `Mission (3)`.
    pub name: String,
    /// Number that determines the color of the phase. All phases with the same flight mode have the
    /// same number.
    pub kind: u32,
}

/// An event during a flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Time of the event on the log's clock.
    pub time: Timestamp,
    /// Kind of the event.
    pub kind: MarkKind,
    /// Name of the event.
    pub name: String,
    /// Position of the event. `None` if the track has no point within ten seconds of the event.
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
    /// Returns the name of the event kind in tables and in GeoJSON.
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
    /// Name of the track in files.
    pub name: String,
    /// Paths of the vehicle, one for each source. The first path has the best source.
    pub lines: Vec<Line>,
    /// Flight modes in time order.
    pub phases: Vec<Phase>,
    /// Events in time order.
    pub marks: Vec<Mark>,
    /// Offset from the log's clock to UTC. If it is `None`, the track files contain no times.
    pub utc: Option<UtcOffset>,
}

impl Track {
    /// Returns whether the track has no points.
    pub fn is_empty(&self) -> bool {
        self.points().next().is_none()
    }

    /// Returns the points of all lines, one line after the other.
    pub fn points(&self) -> impl Iterator<Item = &TrackPoint> {
        self.lines.iter().flat_map(|line| &line.segments).flat_map(|segment| &segment.points)
    }

    /// Returns the phase at a time, or `None` before the first phase.
    pub fn phase_at(&self, time: Timestamp) -> Option<&Phase> {
        let next = self.phases.partition_point(|phase| phase.time.nanos <= time.nanos);
        self.phases.get(next.checked_sub(1)?)
    }

    /// Formats a time in the format of RFC 3339. Returns `None` if the UTC time is unknown.
    pub(super) fn utc_text(&self, time: Timestamp) -> Option<String> {
        time.to_unix(self.utc.as_ref())?.rfc3339()
    }
}

/// Rounds degrees to seven decimals, which is about a centimeter. The addition of 0 turns -0 into
/// 0.
pub(super) fn degrees(value: f64) -> f64 {
    (value * 1e7).round() / 1e7 + 0.0
}

/// Rounds meters to three decimals. The addition of 0 turns -0 into 0.
pub(super) fn meters(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}

/// Returns whether coordinates are plausible. The position 0, 0 is not plausible, because receivers
/// report it when they have no fix.
pub(super) fn is_on_earth(latitude: f64, longitude: f64) -> bool {
    latitude.abs() <= 90.0 && longitude.abs() <= 180.0 && (latitude != 0.0 || longitude != 0.0)
}
