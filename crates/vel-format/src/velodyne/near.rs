//! The second point of an HDL-64E's calibration: distances below 25 m. Section 7 of docs/formats/vel.md.

use super::calibration::LaserCalibration;
use super::points::{OffsetModel, Point};

/// Below this distance, metres, the second point counts.
const NEAR: f64 = 25.04;

/// What is needed of a laser to place a near point, in 32 bits: a near distance has digits to spare.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    /// Distances below this are near; 0 where nothing is corrected.
    pub(super) below: u16,
    unit: f32,
    sin_vertical: f32,
    cos_vertical: f32,
    sin_rotation: f32,
    cos_rotation: f32,
    /// Far, near across, near along.
    distance: [f32; 3],
    /// What the vertical offset takes from the distance over ground, and adds to the height.
    back: f32,
    up: f32,
    aside: f32,
}

impl Near {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded once; below 12 520 units"
    )]
    pub(super) fn new(laser: &LaserCalibration, unit: f64, offsets: OffsetModel) -> Self {
        if !laser.corrects_near() {
            return Self::default();
        }
        let (sin, cos) = laser.vertical.to_radians().sin_cos();
        let (sin_rotation, cos_rotation) = laser.rotation.to_radians().sin_cos();
        let (back, up) = match offsets {
            OffsetModel::Plain => (0.0, laser.vertical_offset),
            OffsetModel::Perpendicular => (laser.vertical_offset * sin, laser.vertical_offset * cos),
        };
        Self {
            below: (NEAR / unit).ceil() as u16,
            unit: unit as f32,
            sin_vertical: sin as f32,
            cos_vertical: cos as f32,
            sin_rotation: sin_rotation as f32,
            cos_rotation: cos_rotation as f32,
            distance: [laser.distance, laser.distance_x, laser.distance_y].map(|metres| metres as f32),
            back: back as f32,
            up: up as f32,
            aside: laser.horizontal_offset as f32,
        }
    }

    /// Places a near point; `cos` and `sin` are those of its azimuth.
    #[inline]
    pub(super) fn place(&self, point: &mut Point, cos: f32, sin: f32) {
        let sin_r = sin * self.cos_rotation - cos * self.sin_rotation;
        let cos_r = cos * self.cos_rotation + sin * self.sin_rotation;
        let d = f32::from(point.distance) * self.unit;
        let [far, near_x, near_y] = self.distance;
        let ground = (d + far) * self.cos_vertical;
        let (kx, ky) = (((ground * sin_r).abs() - 2.40) / 22.64, ((ground * cos_r).abs() - 1.93) / 23.11);
        let across = near_x + kx * (far - near_x);
        let along = near_y + ky * (far - near_y);
        let x = ((d + across) * self.cos_vertical - self.back) * sin_r - self.aside * cos_r;
        let y = ((d + along) * self.cos_vertical - self.back) * cos_r + self.aside * sin_r;
        (point.x, point.y) = (y, -x);
        point.z = (d + f32::midpoint(across, along)) * self.sin_vertical + self.up;
    }
}
