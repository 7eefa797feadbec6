//! Poses: positions with orientations, their composition and interpolation, and conversions between
//! axes.

use std::f64::consts::FRAC_1_SQRT_2;

/// Position and orientation of an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    /// Position in meters.
    pub position: [f64; 3],
    /// Orientation as a quaternion in the order w, x, y, z.
    pub orientation: [f64; 4],
}

/// Pose of an object that is at the origin and is not rotated.
pub(crate) const IDENTITY_POSE: Pose = Pose { position: [0.0; 3], orientation: [1.0, 0.0, 0.0, 0.0] };

impl Pose {
    /// Returns the composition of this pose and `inner`. For example, if this is the pose of a robot
    /// in a room, and `inner` is the pose of a camera on the robot, the result is the pose of the
    /// camera in the room.
    pub(crate) fn then(&self, inner: &Self) -> Self {
        let turned = rotate(self.orientation, inner.position);
        Self {
            position: std::array::from_fn(|axis| self.position[axis] + turned[axis]),
            orientation: product(self.orientation, inner.orientation),
        }
    }

    /// Returns the inverse pose. For example, the inverse of the pose of a robot in a room is the
    /// pose of the room relative to the robot.
    pub(crate) fn inverse(&self) -> Self {
        let [w, x, y, z] = self.orientation;
        let orientation = [w, -x, -y, -z];
        Self { position: rotate(orientation, self.position).map(|part| -part), orientation }
    }

    /// Returns the pose at `share` (from 0 to 1) of the way from this pose to `next`. Interpolates
    /// the position linearly, and the orientation with [`slerp`].
    pub(crate) fn interpolate(&self, next: &Self, share: f64) -> Self {
        let between = |axis: usize| self.position[axis] + share * (next.position[axis] - self.position[axis]);
        Self {
            position: std::array::from_fn(between),
            orientation: slerp(self.orientation, next.orientation, share),
        }
    }

    /// Returns the rotation matrix of the orientation, by rows.
    pub(crate) fn rotation(&self) -> [[f64; 3]; 3] {
        let columns = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
            .map(|axis| rotate(unit(self.orientation), axis));
        std::array::from_fn(|row| columns.map(|column| column[row]))
    }
}

/// Returns the length of a quaternion. It is 1 for a rotation.
pub(crate) fn length(quaternion: [f64; 4]) -> f64 {
    quaternion.iter().map(|part| part * part).sum::<f64>().sqrt()
}

fn unit(quaternion: [f64; 4]) -> [f64; 4] {
    let length = length(quaternion);
    quaternion.map(|part| part / length)
}

/// Rotates a vector by a quaternion of length 1.
pub(crate) fn rotate(quaternion: [f64; 4], [x, y, z]: [f64; 3]) -> [f64; 3] {
    let [qw, qx, qy, qz] = quaternion;
    let [_, x, y, z] = product(product(quaternion, [0.0, x, y, z]), [qw, -qx, -qy, -qz]);
    [x, y, z]
}

/// Interpolates two rotations at constant angular velocity, on the shorter of the two ways
/// (spherical linear interpolation).
pub(crate) fn slerp(from: [f64; 4], to: [f64; 4], share: f64) -> [f64; 4] {
    let (from, to) = (unit(from), unit(to));
    let cosine: f64 = from.iter().zip(to).map(|(a, b)| a * b).sum();
    // A quaternion and its negative are the same rotation. The nearer of the two is used.
    let to = if cosine < 0.0 { to.map(|part| -part) } else { to };
    let angle = cosine.abs().min(1.0).acos();
    // For a small angle, the division by its sine is inaccurate. The linear interpolation then
    // differs from the exact result by less than the precision of the numbers.
    let weight = |share: f64| if angle < 1e-7 { share } else { (share * angle).sin() / angle.sin() };
    let (before, after) = (weight(1.0 - share), weight(share));
    std::array::from_fn(|part| before * from[part] + after * to[part])
}

/// Converts a pose from the axes of PX4 to the axes of viewers.
///
/// PX4 uses north, east and down for the world, and forward, right and down for the vehicle.
/// Viewers use east, north and up for the world, and forward, left and up for the vehicle. The
/// orientation is therefore rotated on both sides: on the left by the rotation between the world
/// axes, and on the right by half a turn about the forward axis.
pub(crate) fn east_north_up(ned: &Pose) -> Pose {
    let [north, east, down] = ned.position;
    // The rotation from north, east, down to east, north, up is half a turn about the axis between
    // north and east.
    let turned = product([0.0, FRAC_1_SQRT_2, FRAC_1_SQRT_2, 0.0], ned.orientation);
    Pose { position: [east, north, -down + 0.0], orientation: product(turned, [0.0, 1.0, 0.0, 0.0]) }
}

/// Returns the product of two quaternions. Each quaternion has the order w, x, y, z.
#[expect(clippy::many_single_char_names, reason = "the letters of the textbook")]
pub(crate) fn product([a, b, c, d]: [f64; 4], [e, f, g, h]: [f64; 4]) -> [f64; 4] {
    [
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: [f64; 4], b: [f64; 4]) -> bool {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        (dot.abs() - 1.0).abs() < 1e-12
    }

    /// In the axes of viewers, a vehicle without a rotation points east. A level vehicle that
    /// points north is therefore rotated by a quarter turn to the left.
    #[test]
    fn poses_are_turned_to_the_axes_of_viewers() {
        let ned = Pose { position: [1.0, 2.0, -3.0], orientation: [1.0, 0.0, 0.0, 0.0] };
        let enu = east_north_up(&ned);
        assert_eq!(enu.position.map(f64::to_bits), [2.0_f64, 1.0, 3.0].map(f64::to_bits));
        assert!(near(enu.orientation, [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2]), "{:?}", enu.orientation);
        // A vehicle that points east is not rotated.
        let east = Pose { orientation: [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2], ..ned };
        assert!(near(east_north_up(&east).orientation, [1.0, 0.0, 0.0, 0.0]));
        // Pitching up changes the sign of the rotation, because the lateral axis now points to the
        // left.
        let (sin, cos) = (0.1f64.sin(), 0.1f64.cos());
        let up = Pose { orientation: product(east.orientation, [cos, 0.0, sin, 0.0]), ..ned };
        assert!(near(east_north_up(&up).orientation, [cos, 0.0, -sin, 0.0]));
    }
}
