//! Orientations: the order of the components and the direction of quaternions, as inferred from a
//! log. See section 6 of docs/formats/vel.md.

use crate::wire::RobotPose;

/// Order of the components of a stored quaternion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuaternionOrder {
    /// The scalar component is first: w, x, y, z.
    #[default]
    Wxyz,
    /// The scalar component is last: x, y, z, w.
    Xyzw,
}

impl QuaternionOrder {
    /// Returns the name of the order in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wxyz => "wxyz",
            Self::Xyzw => "xyzw",
        }
    }
}

/// Direction of the rotation that a quaternion describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The quaternion rotates from body to world coordinates.
    #[default]
    BodyToWorld,
    /// The quaternion rotates from world to body coordinates.
    WorldToBody,
}

impl Direction {
    /// Returns the name of the direction in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BodyToWorld => "body_to_world",
            Self::WorldToBody => "world_to_body",
        }
    }
}

/// Unit of stored accelerations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccelerationUnit {
    /// Accelerations are in m/s² and include gravity.
    #[default]
    MetresPerSecond2,
    /// Accelerations are multiples of 9.80665 m/s² and include gravity.
    G,
    /// Accelerations are in m/s² and do not include gravity.
    GravityRemoved,
}

impl AccelerationUnit {
    /// Returns the name of the unit in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MetresPerSecond2 => "m/s2",
            Self::G => "g",
            Self::GravityRemoved => "m/s2 without gravity",
        }
    }

    /// Converts a stored acceleration to m/s².
    pub fn meters(self, value: f32) -> f32 {
        #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width it is stored in")]
        match self {
            Self::G => (f64::from(value) * 9.806_65) as f32,
            _ => value,
        }
    }
}

/// The meaning of the orientation messages in a log, as inferred from the log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PoseMeaning {
    /// Order of the components of stored quaternions.
    pub order: QuaternionOrder,
    /// Direction of the rotation that stored quaternions describe.
    pub direction: Direction,
    /// Evidence for the order and the direction.
    pub evidence: String,
    /// True if the order and the direction are defaults, because the log does not determine them.
    pub assumed: bool,
    /// Unit of stored accelerations.
    pub unit: AccelerationUnit,
    /// Evidence for the unit. Empty if no message has an acceleration.
    pub unit_evidence: String,
    /// True if the unit is a default, because the log does not determine it.
    pub unit_assumed: bool,
}

impl PoseMeaning {
    /// Returns the quaternion of a pose as a rotation from body to world. Its components are in the
    /// order w, x, y, z.
    pub fn quaternion(&self, pose: &RobotPose) -> [f32; 4] {
        let mut q = pose.quaternion.map(rovelog_core::internal::wire::F32Le::get);
        if self.order == QuaternionOrder::Xyzw {
            q.rotate_right(1);
        }
        if self.direction == Direction::WorldToBody {
            q[1..].iter_mut().for_each(|x| *x = -*x);
        }
        q
    }
}

/// Maximum number of poses that are kept for inference.
const SAMPLES: usize = 1000;

// Example with at most 4 poses: the poses 0, 1, 2 and 3 are kept first. When pose 4 arrives, every
// second pose is dropped and the stride doubles, which leaves the poses 0, 2 and 4. After pose 8,
// these are the poses 0, 4 and 8.

/// Samples of the poses in a log, spread evenly over a log of any length.
#[derive(Clone, Debug)]
pub(crate) struct PoseSamples {
    poses: Vec<RobotPose>,
    stride: u64,
    pushed_count: u64,
}

impl Default for PoseSamples {
    fn default() -> Self {
        Self { poses: Vec::new(), stride: 1, pushed_count: 0 }
    }
}

impl PoseSamples {
    pub(crate) fn push(&mut self, pose: &RobotPose) {
        if self.pushed_count.is_multiple_of(self.stride) {
            if self.poses.len() == SAMPLES {
                let mut keep = false;
                self.poses.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            if self.pushed_count.is_multiple_of(self.stride) {
                self.poses.push(*pose);
            }
        }
        self.pushed_count += 1;
    }

    pub(crate) fn infer(&self) -> PoseMeaning {
        infer(&self.poses)
    }
}

/// Infers the order, the direction and the unit of `poses`. With the right order and direction,
/// gravity is constant in world coordinates and points along the z axis.
pub fn infer(poses: &[RobotPose]) -> PoseMeaning {
    let mut meaning = PoseMeaning::default();
    unit(poses, &mut meaning);
    let mut readings = Vec::new();
    for order in [QuaternionOrder::Wxyz, QuaternionOrder::Xyzw] {
        for direction in [Direction::BodyToWorld, Direction::WorldToBody] {
            let reading = PoseMeaning { order, direction, ..PoseMeaning::default() };
            readings.extend(spread(poses, &reading).map(|(spread, up)| (spread, up, order, direction)));
        }
    }
    readings.sort_by(|a, b| a.0.total_cmp(&b.0));
    match readings[..] {
        [(best, up, order, direction), (next, ..), ..] if best < next / 2.0 && up >= 0.9 => {
            (meaning.order, meaning.direction) = (order, direction);
            meaning.evidence = format!("gravity varies by {best:.3}; {next:.3} with the next best order");
        }
        [(best, ..), (next, ..), ..] => {
            meaning.assumed = true;
            meaning.evidence =
                format!("two orders give the same variation of gravity ({best:.3} and {next:.3})");
        }
        _ => {
            meaning.assumed = true;
            "no pose has a quaternion of length 1".clone_into(&mut meaning.evidence);
        }
    }
    meaning
}

fn unit(poses: &[RobotPose], meaning: &mut PoseMeaning) {
    let mut lengths: Vec<f64> =
        poses.iter().map(|pose| length(acceleration(pose))).filter(|length| length.is_finite()).collect();
    lengths.sort_by(f64::total_cmp);
    let Some(median) = lengths.get(lengths.len() / 2) else {
        meaning.unit_assumed = true;
        return;
    };
    (meaning.unit, meaning.unit_assumed) = match median {
        8.0..=12.0 => (AccelerationUnit::MetresPerSecond2, false),
        0.8..=1.2 => (AccelerationUnit::G, false),
        m if *m < 0.3 => (AccelerationUnit::GravityRemoved, false),
        _ => (AccelerationUnit::MetresPerSecond2, true),
    };
    meaning.unit_evidence = format!("the median magnitude is {median:.3}");
}

fn acceleration(pose: &RobotPose) -> [f64; 3] {
    pose.acceleration.map(|a| f64::from(a.get()))
}

fn length(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Rotates the accelerations of poses to world coordinates. Returns the sum of the standard
/// deviations of their three components, and the share of the vertical component in the mean
/// acceleration. Returns `None` if fewer than two poses are usable.
fn spread(poses: &[RobotPose], reading: &PoseMeaning) -> Option<(f64, f64)> {
    let turned: Vec<[f64; 3]> = poses
        .iter()
        .filter_map(|pose| {
            let q = reading.quaternion(pose).map(f64::from);
            let norm = q.iter().map(|x| x * x).sum::<f64>().sqrt();
            let usable = (norm - 1.0).abs() <= 0.05 && acceleration(pose).iter().all(|a| a.is_finite());
            usable.then(|| rotate(q.map(|x| x / norm), acceleration(pose)))
        })
        .collect();
    if turned.len() < 2 {
        return None;
    }
    let n = turned.len() as f64;
    let mut mean = [0.0; 3];
    for v in &turned {
        for (mean, x) in mean.iter_mut().zip(v) {
            *mean += x / n;
        }
    }
    let deviation =
        |axis: usize| (turned.iter().map(|v| (v[axis] - mean[axis]).powi(2)).sum::<f64>() / n).sqrt();
    Some(((0..3).map(deviation).sum(), mean[2].abs() / length(mean).max(f64::MIN_POSITIVE)))
}

/// Rotates `v` by the unit quaternion `[w, x, y, z]`.
fn rotate(q: [f64; 4], v: [f64; 3]) -> [f64; 3] {
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let axis = [q[1], q[2], q[3]];
    let once = cross(axis, v).map(|t| 2.0 * t);
    let twice = cross(axis, once);
    std::array::from_fn(|i| v[i] + q[0] * once[i] + twice[i])
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::F32Le;

    use super::*;

    /// Returns the poses of a vehicle that rolls and pitches. `store` converts the true quaternion
    /// [w, x, y, z] to the stored components.
    fn log(store: impl Fn([f64; 4]) -> [f64; 4], g: f64) -> Vec<RobotPose> {
        let pose = |i: i32| {
            let (roll, pitch) = ((f64::from(i) * 0.1).sin() * 0.4, (f64::from(i) * 0.07).cos() * 0.3);
            let (a, b) = ((roll / 2.0).sin_cos(), (pitch / 2.0).sin_cos());
            let q = [a.1 * b.1, a.0 * b.1, a.1 * b.0, a.0 * b.0];
            let back = [q[0], -q[1], -q[2], -q[3]];
            #[expect(clippy::cast_possible_truncation, reason = "test values")]
            let narrow = |x: f64| F32Le::new(x as f32);
            RobotPose {
                quaternion: store(q).map(narrow),
                acceleration: rotate(back, [0.0, 0.0, g]).map(narrow),
            }
        };
        (0..200).map(pose).collect()
    }

    #[test]
    fn every_order_and_direction_is_inferred() {
        let of = |q: [f64; 4]| [q[0], -q[1], -q[2], -q[3]];
        let xyzw = |q: [f64; 4]| [q[1], q[2], q[3], q[0]];
        for (poses, order, direction) in [
            (log(|q| q, 9.81), QuaternionOrder::Wxyz, Direction::BodyToWorld),
            (log(xyzw, 9.81), QuaternionOrder::Xyzw, Direction::BodyToWorld),
            (log(of, 9.81), QuaternionOrder::Wxyz, Direction::WorldToBody),
            (log(|q| xyzw(of(q)), 1.0), QuaternionOrder::Xyzw, Direction::WorldToBody),
        ] {
            let got = infer(&poses);
            assert_eq!(
                (got.order, got.direction, got.assumed),
                (order, direction, false),
                "{}",
                got.evidence
            );
        }
        assert_eq!(infer(&log(|q| q, 1.0)).unit, AccelerationUnit::G);
        assert_eq!(infer(&log(|q| q, 0.0)).unit, AccelerationUnit::GravityRemoved);
        assert!(infer(&[]).assumed);
    }

    #[test]
    fn samples_are_spread_over_the_log() {
        let poses = log(|q| q, 9.81);
        let mut samples = PoseSamples::default();
        for i in 0..9000 {
            samples.push(&poses[i % poses.len()]);
        }
        assert!((SAMPLES / 2..=SAMPLES).contains(&samples.poses.len()));
        assert_eq!(samples.stride, 16);
    }
}
