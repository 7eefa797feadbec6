//! Vertical angles and azimuth offsets of lasers in degrees, in firing order. The tables come from
//! the manuals of the sensors. See section 7 of docs/formats/vel.md.
#![expect(clippy::approx_constant, reason = "an angle of 6.28 degrees is no circle")]

use super::model::Model;

/// Vertical angles of the lasers of an HDL-32E, in degrees.
#[rustfmt::skip]
pub(super) const HDL32: [f64; 32] = [
    -30.67, -9.33, -29.33, -8.0, -28.0, -6.67, -26.67, -5.33,
    -25.33, -4.0, -24.0, -2.67, -22.67, -1.33, -21.33, 0.0,
    -20.0, 1.33, -18.67, 2.67, -17.33, 4.0, -16.0, 5.33,
    -14.67, 6.67, -13.33, 8.0, -12.0, 9.33, -10.67, 10.67,
];

/// Vertical angles of the lasers of a VLP-16 or Puck Lite, in degrees.
#[rustfmt::skip]
pub(super) const VLP16: [f64; 16] = [
    -15.0, 1.0, -13.0, 3.0, -11.0, 5.0, -9.0, 7.0,
    -7.0, 9.0, -5.0, 11.0, -3.0, 13.0, -1.0, 15.0,
];

/// Vertical angles of the lasers of a VLP-32C or VLP-32B, in degrees.
#[rustfmt::skip]
pub(super) const VLP32C: [f64; 32] = [
    -25.0, -1.0, -1.667, -15.639, -11.31, 0.0, -0.667, -8.843,
    -7.254, 0.333, -0.333, -6.148, -5.333, 1.333, 0.667, -4.0,
    -4.667, 1.667, 1.0, -3.667, -3.333, 3.333, 2.333, -2.667,
    -3.0, 7.0, 4.667, -2.333, -2.0, 15.0, 10.333, -1.333,
];

/// Azimuth offsets of the lasers of a VLP-32C, in degrees.
#[rustfmt::skip]
pub(super) const VLP32C_OFFSETS: [f64; 32] = [
    1.4, -4.2, 1.4, -1.4, 1.4, -1.4, 4.2, -1.4,
    1.4, -4.2, 1.4, -1.4, 4.2, -1.4, 4.2, -1.4,
    1.4, -4.2, 1.4, -4.2, 4.2, -1.4, 1.4, -1.4,
    1.4, -1.4, 1.4, -4.2, 4.2, -1.4, 1.4, -1.4,
];

/// Vertical angles of the lasers of a VLP-32A, in degrees. Its azimuth offsets differ from sensor
/// to sensor.
#[rustfmt::skip]
pub(super) const VLP32A: [f64; 32] = [
    -14.3, 0.834, 12.5, -0.5, -10.7, 2.167, 8.9, -1.834,
    -7.0, 1.167, 6.0, -0.167, -4.9, 2.5, 3.8, -1.5,
    -2.167, 10.7, 1.834, -8.9, -2.5, 4.9, 1.5, -3.8,
    -0.834, 14.3, 0.5, -12.5, -1.167, 7.0, 0.167, -6.0,
];

/// Vertical angles of the lasers of a VLS-128, in degrees.
#[rustfmt::skip]
pub(super) const VLS128: [f64; 128] = [
    -11.742, -1.99, 3.4, -5.29, -0.78, 4.61, -4.08, 1.31,
    -6.5, -1.11, 4.28, -4.41, 0.1, 6.48, -3.2, 2.19,
    -3.86, 1.53, -9.244, -1.77, 2.74, -5.95, -0.56, 4.83,
    -2.98, 2.41, -6.28, -0.89, 3.62, -5.07, 0.32, 7.58,
    -0.34, 5.18, -3.64, 1.75, -25.0, -2.43, 2.96, -5.73,
    0.54, 9.7, -2.76, 2.63, -7.65, -1.55, 3.84, -4.85,
    3.18, -5.51, -0.12, 5.73, -4.3, 1.09, -16.042, -2.21,
    4.06, -4.63, 0.76, 15.0, -3.42, 1.97, -6.85, -1.33,
    -5.62, -0.23, 5.43, -3.53, 0.98, -19.582, -2.32, 3.07,
    -4.74, 0.65, 11.75, -2.65, 1.86, -7.15, -1.44, 3.95,
    -2.1, 3.29, -5.4, -0.01, 4.5, -4.19, 1.2, -13.565,
    -1.22, 4.17, -4.52, 0.87, 6.08, -3.31, 2.08, -6.65,
    1.42, -10.346, -1.88, 3.51, -6.06, -0.67, 4.72, -3.97,
    2.3, -6.39, -1.0, 4.39, -5.18, 0.21, 6.98, -3.09,
    4.98, -3.75, 1.64, -8.352, -2.54, 2.85, -5.84, -0.45,
    8.43, -2.87, 2.52, -6.17, -1.66, 3.73, -4.96, 0.43,
];

/// Azimuth offsets of the first eight lasers of a VLS-128, in degrees. They repeat for the other
/// lasers.
#[rustfmt::skip]
pub(super) const VLS128_OFFSETS: [f64; 8] = [
    6.354, 4.548, 2.732, 0.911, -0.911, -2.732, -4.548, -6.354,
];

/// Returns the vertical angle of each laser in degrees. Returns an empty list if the angles differ
/// from sensor to sensor.
pub(super) fn vertical(model: Model) -> Vec<f64> {
    match model {
        Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3 => Vec::new(),
        Model::Hdl32 => HDL32.to_vec(),
        Model::Vlp16 => VLP16.to_vec(),
        // The angles are rounded to a thousandth of a degree, as in the table of the manual.
        Model::PuckHiRes => VLP16.iter().map(|angle| (angle * 2000.0 / 3.0).round() / 1000.0).collect(),
        Model::Vlp32A => VLP32A.to_vec(),
        Model::Vlp32C => VLP32C.to_vec(),
        Model::Vls128 => VLS128.to_vec(),
    }
}

/// Returns the angle in degrees that is added to the azimuth of a laser's shots.
pub(super) fn azimuth_offset(model: Model, laser: usize) -> f64 {
    match model {
        Model::Vlp32C => VLP32C_OFFSETS[laser],
        Model::Vls128 => VLS128_OFFSETS[laser % VLS128_OFFSETS.len()],
        _ => 0.0,
    }
}

/// Returns the distance in meters from the rotation axis to the point where the beams of the lasers
/// cross.
pub(super) fn focal_offset(model: Model) -> f64 {
    match model {
        Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3 => 0.0,
        Model::Hdl32 => 0.02883,
        Model::Vlp16 | Model::PuckHiRes => 0.04191,
        Model::Vlp32A | Model::Vlp32C => 0.0424,
        Model::Vls128 => 0.05863,
    }
}

/// Returns the ring number of each laser, which is its rank by vertical angle. The lowest laser has
/// ring number 0.
pub(super) fn rings(vertical: &[f64]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..vertical.len()).collect();
    order.sort_by(|a, b| vertical[*a].total_cmp(&vertical[*b]));
    let mut rings = vec![0; vertical.len()];
    for (ring, laser) in order.into_iter().enumerate() {
        rings[laser] = u8::try_from(ring).unwrap_or(u8::MAX);
    }
    rings
}
