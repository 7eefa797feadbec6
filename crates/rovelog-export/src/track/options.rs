//! What a user chooses about a track, and what became of its rows.

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
