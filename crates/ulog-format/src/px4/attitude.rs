//! Conversion of an attitude from a quaternion to angles.

/// Converts a quaternion to roll, pitch and yaw in radians.
///
/// The quaternion must have the form that PX4 logs in the field `q`. It is a Hamilton quaternion
/// with w first, and rotates from the body frame (forward, right, down) to the local frame (north,
/// east, down). The rotation starts with yaw about the down axis. It continues with pitch about the
/// right axis, and ends with roll about the forward axis.
///
/// ```
/// let [roll, pitch, yaw] = ulog_format::px4::roll_pitch_yaw([0.5_f32.sqrt(), 0.0, 0.0, 0.5_f32.sqrt()]);
/// assert!(roll.abs() < 1e-6 && pitch.abs() < 1e-6);
/// assert!((yaw - std::f32::consts::FRAC_PI_2).abs() < 1e-6);
/// ```
pub fn roll_pitch_yaw([w, x, y, z]: [f32; 4]) -> [f32; 3] {
    let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y));
    // If the nose points straight up, a rounding error can make the sine greater than 1, which
    // `asin` does not accept.
    let pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin();
    let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    [roll, pitch, yaw]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotations_about_one_axis_have_the_expected_angles() {
        let (sin, cos) = (std::f32::consts::PI / 8.0).sin_cos();
        for (turn, want) in [
            ([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
            ([cos, sin, 0.0, 0.0], [45.0, 0.0, 0.0]),
            ([cos, 0.0, sin, 0.0], [0.0, 45.0, 0.0]),
            ([cos, 0.0, 0.0, sin], [0.0, 0.0, 45.0]),
        ] {
            let angles = roll_pitch_yaw(turn).map(f32::to_degrees);
            assert!(angles.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-4), "{turn:?}: {angles:?}");
        }
    }
}
