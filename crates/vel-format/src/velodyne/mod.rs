//! Velodyne packets: the model, points, revolutions, and the calibration of an HDL-64E.

pub mod model;
