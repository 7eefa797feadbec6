//! Options for reading a track, and the numbers of rows that were read or not used.

/// Options for reading a track.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrackOptions {
    /// Names of the topics to read. If the list is empty, the best topics with positions are used.
    pub topics: Vec<String>,
    /// Minimum fix: 2 or 3 for the number of dimensions, or a higher `fix_type` of PX4. The default
    /// is 3. In VEL logs, a fix of unknown quality is also used, unless this option is set.
    pub min_fix: Option<u8>,
    /// True to include points that are less than 0.1 s after the previous point.
    pub all: bool,
    /// Start of the time range, in nanoseconds of the log's clock.
    pub start: Option<i64>,
    /// End of the time range, exclusive, in nanoseconds of the log's clock.
    pub end: Option<i64>,
}

impl TrackOptions {
    /// Returns whether a time, in nanoseconds of the log's clock, is in the time range.
    pub(crate) fn keeps_time(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

/// Numbers of rows that were read, and numbers of rows that were not used, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Number of rows in topics with positions.
    pub rows: u64,
    /// Number of rows without a fix, or with a worse fix than required.
    pub without_fix: u64,
    /// Number of rows with invalid coordinates: not finite, out of range, or both 0.
    pub implausible: u64,
    /// Number of rows that could not be decoded.
    pub undecodable: u64,
    /// Number of rows without a time.
    pub untimed: u64,
    /// Number of points that were omitted because they are less than 0.1 s after the previous
    /// point.
    pub close: u64,
    /// Number of rows at times for which an orientation or a transform is unknown. Only
    /// trajectories have such rows.
    pub unmatched: u64,
}

/// Reference of the heights in a KML file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Altitude {
    /// Heights are written in meters above mean sea level.
    #[default]
    Absolute,
    /// Heights are written in meters above the first point. The track is drawn at these heights
    /// above the ground.
    Relative,
    /// Heights are ignored. The track is drawn on the ground.
    Clamp,
}
