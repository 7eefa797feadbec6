//! Options of MCAP files.

use rovelog::core::parallel::Jobs;
use rovelog::vel_format::velodyne::{Calibration, Model, PointOptions};

/// Options of MCAP output.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct McapOptions {
    /// True to add messages that viewers draw without configuration.
    pub typed: bool,
    /// True to keep poses in the axes of the vehicle (north, east, down) instead of those of
    /// viewers (east, north, up).
    pub keep_ned: bool,
    /// VEL: true to also write packets, ranges and images unchanged, and records of unknown types.
    pub raw: bool,
    /// RLD: true to write every sample at any rate, instead of an envelope above 1000 samples/s.
    pub full: bool,
    /// RLD: every sample, this many per message as lists; a message never spans a gap.
    pub batch: Option<u32>,
    /// Output form of ROS bag records.
    pub ros: RosForm,
    /// VEL: facts about the Velodyne that the log does not contain.
    pub velodyne: VelodyneOptions,
    /// Compression of chunks.
    pub compression: McapCompression,
    /// Number of threads that compress.
    pub jobs: Jobs,
}

/// Compression of the chunks of an MCAP file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McapCompression {
    /// None.
    None,
    /// LZ4 frames.
    Lz4,
    /// zstd with this level, from 1 (fast) to 22 (small).
    Zstd(i32),
}

impl Default for McapCompression {
    fn default() -> Self {
        Self::Zstd(1)
    }
}

/// How clouds are made from Velodyne packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VelodyneOptions {
    /// Sensor model, if the packets do not tell it.
    pub model: Option<Model>,
    /// Calibration of an HDL-64E, if the log does not contain it.
    pub calibration: Option<Calibration>,
    /// Options for computing points.
    pub points: PointOptions,
}

/// Output form of ROS bag records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RosForm {
    /// As recorded.
    #[default]
    Recorded,
    /// As recorded, with current names for types that were renamed without a change.
    Modernized,
    /// ROS 2 messages only.
    Ros2,
}

impl Default for McapOptions {
    fn default() -> Self {
        Self {
            typed: true,
            keep_ned: false,
            raw: false,
            full: false,
            batch: None,
            ros: RosForm::default(),
            velodyne: VelodyneOptions::default(),
            compression: McapCompression::default(),
            jobs: Jobs::default(),
        }
    }
}
