//! Options of MCAP files.

use rovelog::core::internal::parallel::Jobs;

use crate::cloud::VelodyneOptions;

/// Options for writing an MCAP file.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct McapOptions {
    /// True to add messages that viewers can draw without configuration.
    pub typed: bool,
    /// True to write poses in the axes of PX4 (north, east, down). False to convert poses to the
    /// axes of viewers (east, north, up).
    pub keep_ned: bool,
    /// For VEL logs: true to also write packets, ranges and images without changes, and records of
    /// unknown types as bytes.
    pub raw: bool,
    /// For `RocketLogger` logs: true to write a message for each sample at any sample rate. If
    /// false, logs with more than 1000 samples per second are reduced to minimum, mean and maximum.
    pub full: bool,
    /// For `RocketLogger` logs: the number of samples in each message. A message contains lists of
    /// samples, and never spans a gap.
    pub batch: Option<u32>,
    /// For ROS bags: the form in which the records are written. ULog and VEL logs are converted to
    /// ROS 2 messages if this is [`RosForm::Ros2`].
    pub ros: RosForm,
    /// For VEL logs: properties of the Velodyne scanner that the log does not contain.
    pub velodyne: VelodyneOptions,
    /// Compression of the chunks.
    pub compression: McapCompression,
    /// Number of threads that encode and compress chunks.
    pub jobs: Jobs,
}

/// Compression of the chunks of an MCAP file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum McapCompression {
    /// Chunks are not compressed.
    None,
    /// LZ4 compression.
    Lz4,
    /// Zstandard compression. The number is the level, from 1 (fast) to 22 (small).
    Zstd(i32),
}

impl Default for McapCompression {
    fn default() -> Self {
        if cfg!(feature = "zstd") { Self::Zstd(1) } else { Self::Lz4 }
    }
}

/// Form in which the records of a ROS bag are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RosForm {
    /// Records are written as ROS 1 messages without changes.
    #[default]
    Recorded,
    /// Records are written as ROS 1 messages. Message types that were renamed without other changes
    /// get their current names.
    Modernized,
    /// Records are converted to ROS 2 messages.
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
