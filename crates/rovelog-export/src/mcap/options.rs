//! What a user chooses about an MCAP file.

use rovelog::vel_format::velodyne::{Calibration, Model, PointOptions};

/// How MCAP is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct McapOptions {
    /// Also write what viewers draw by themselves.
    pub typed: bool,
    /// Leave poses in the axes of the vehicle (north, east, down) instead of those of viewers (east, north, up).
    pub keep_ned: bool,
    /// VEL: also write packets, ranges and images as they lie in the log, and what is of unknown types.
    pub raw: bool,
    /// RLD: every sample at any rate, instead of an envelope above 1000 in a second.
    pub full: bool,
    /// RLD: every sample, so many in a message as lists; a message never reaches over a gap.
    pub batch: Option<u32>,
    /// What records of ROS bags become.
    pub ros: RosForm,
    /// VEL: what the log does not tell of its Velodyne.
    pub velodyne: VelodyneOptions,
}

/// How clouds are made of a Velodyne's packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VelodyneOptions {
    /// The model, where the packets do not tell it.
    pub model: Option<Model>,
    /// The calibration of an HDL-64E, where the log does not hold it.
    pub calibration: Option<Calibration>,
    /// How points are made.
    pub points: PointOptions,
}

/// What records of ROS bags become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RosForm {
    /// What they are.
    #[default]
    Recorded,
    /// The same bytes; types that were renamed since, and are the same, have their names of today.
    Modernized,
    /// Messages of ROS 2, and nothing but those.
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
        }
    }
}
