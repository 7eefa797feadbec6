//! Options of a track, and counts of its rows.

/// Selection of positions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrackOptions {
    /// Names of the topics; empty for the best ones with positions.
    pub topics: Vec<String>,
    /// Minimum fix, as a number of dimensions or of PX4's `fix_type`; `None` for three dimensions, or a
    /// fix of unknown quality in a VEL log.
    pub min_fix: Option<u8>,
    /// True to keep points that are closer than 0.1 s.
    pub all: bool,
    /// First time to keep, in nanoseconds of the log's clock.
    pub start: Option<i64>,
    /// End of the times to keep (exclusive), in nanoseconds of the log's clock.
    pub end: Option<i64>,
}

/// Counts of the rows that were read, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Rows of topics with positions.
    pub rows: u64,
    /// Rows without a fix, or with a worse one than requested.
    pub without_fix: u64,
    /// Rows with invalid coordinates: not finite, out of range, or both 0.
    pub implausible: u64,
    /// Rows that cannot be decoded.
    pub undecodable: u64,
    /// Rows without a time.
    pub untimed: u64,
    /// Points that were closer than 0.1 s to the previous one.
    pub close: u64,
}

/// Meaning of the heights in a KML file.
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
