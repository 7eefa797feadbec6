//! Options for reading a track, and row counts.

/// Selects the positions of a track.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrackOptions {
    /// Names of the topics. If empty, the best topics with positions are used.
    pub topics: Vec<String>,
    /// Minimum fix, as the number of dimensions or PX4's `fix_type`. `None` requires three
    /// dimensions; VEL logs may also have a fix of unknown quality.
    pub min_fix: Option<u8>,
    /// True to keep points closer than 0.1 s.
    pub all: bool,
    /// Start of the time range, in nanoseconds of the log's clock.
    pub start: Option<i64>,
    /// Exclusive end of the time range, in nanoseconds of the log's clock.
    pub end: Option<i64>,
}

/// Row counts by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Number of rows in topics with positions.
    pub rows: u64,
    /// Number of rows without a fix, or with a worse fix than required.
    pub without_fix: u64,
    /// Number of rows with invalid coordinates: not finite, out of range, or both 0.
    pub implausible: u64,
    /// Number of rows that cannot be decoded.
    pub undecodable: u64,
    /// Number of rows without a time.
    pub untimed: u64,
    /// Number of points closer than 0.1 s to the previous one.
    pub close: u64,
}

/// Reference of the heights in a KML file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Altitude {
    /// Meters above mean sea level.
    #[default]
    Absolute,
    /// Meters above the first point, drawn relative to the ground.
    Relative,
    /// No heights: the track is drawn on the ground.
    Clamp,
}
