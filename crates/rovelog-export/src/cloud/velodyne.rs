//! Options for point clouds from Velodyne packets.

use rovelog::vel_format::velodyne::{Calibration, Model, PointOptions};

/// Options for computing point clouds from Velodyne packets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VelodyneOptions {
    /// Model of the Velodyne scanner. Required if the packets do not state the model.
    pub model: Option<Model>,
    /// Calibration of an HDL-64E scanner. Required if the log does not contain the calibration.
    pub calibration: Option<Calibration>,
    /// Options for computing points.
    pub points: PointOptions,
}
