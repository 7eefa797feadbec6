//! Computes the positions of all 32 shots of a block at once. Each quantity is in a separate array
//! with 32 elements, so that the compiler can use SIMD instructions. See section 7 of
//! docs/formats/vel.md.

use rovelog_core::internal::wire::U32Le;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::angles;
use super::calibration::{LaserCalibration, MAX_DISTANCE, OffsetModel};
use super::model::Model;
use crate::wire::{LaserReturn, VelodyneBlock};

/// A full turn in hundredths of a degree.
pub(super) const TURN: u32 = 36_000;

/// Number of shots in a block.
pub(super) const LANES: usize = 32;

/// Distance in meters below which the near correction of an HDL-64E applies.
const NEAR: f64 = 25.04;

type Row = [f32; LANES];

/// Constants of the 32 lasers of a bank, in the order of the shots in a block.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    /// Ring number and laser number of each laser.
    pub(super) names: [[u8; 2]; LANES],
    /// Angle to subtract from the azimuth, in radians.
    rotation: [f64; LANES],
    /// Length in meters of one unit of stored distances.
    unit: f32,
    /// Sine of each laser's vertical angle.
    sin: Row,
    /// Cosine of each laser's vertical angle.
    cos: Row,
    /// Correction in meters that is added to far distances.
    far: Row,
    /// Correction of near distances.
    near: NearCorrection,
    /// Correction for the position of each laser in the sensor.
    offset: LaserOffset,
    /// Constants for correcting intensities: focal distance, slope, minimum and maximum.
    intensity: [Row; 4],
}

/// Corrections in meters that are added to near distances. Each correction is a constant plus a
/// factor times the position in its direction.
#[derive(Clone, Debug)]
struct NearCorrection {
    /// Distance in meters below which the correction of each laser applies. 0 for lasers without a
    /// near correction.
    below: Row,
    /// Correction in the sideways direction.
    across: [Row; 2],
    /// Correction in the forward direction.
    along: [Row; 2],
}

/// Corrections in meters for the position of each laser in the sensor.
#[derive(Clone, Debug)]
struct LaserOffset {
    /// Amount by which the vertical offset shortens the distance over ground.
    back: Row,
    /// Amount by which the vertical offset increases the height.
    up: Row,
    /// Sideways offset of the laser.
    aside: Row,
}

/// Rotation of the sensor from the azimuth of a block to each of its shots.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Rotation in hundredths of a degree, 0 to 35 999.
    whole: [u16; LANES],
    /// Cosine and sine of this rotation, from which the rotation of the laser is subtracted.
    cos: Row,
    sin: Row,
}

/// The 32 shots of a block, and their positions.
#[derive(Clone, Copy, Default)]
pub(super) struct Shots {
    pub(super) raw: [u16; LANES],
    intensity: Row,
    /// Values of x, y, z and intensity. They are in the same order as in a point, so that one
    /// instruction can copy them.
    pub(super) at: [[f32; 4]; LANES],
    /// Azimuth and distance. They are in the same order as in a point, so that one instruction can
    /// copy them.
    pub(super) polar: [[u16; 2]; LANES],
}

impl Shots {
    /// Reads the distances and intensities of a block.
    #[inline]
    pub(super) fn take(&mut self, block: &VelodyneBlock) {
        // A return and the byte before it are read as one 32-bit number. This takes half the time
        // of reading three bytes.
        const BEFORE: usize = std::mem::offset_of!(VelodyneBlock, returns) - 1;
        let bytes = block.as_bytes();
        let mut words = [0; LANES];
        for (j, word) in words.iter_mut().enumerate() {
            let at = BEFORE + size_of::<LaserReturn>() * j;
            *word = U32Le::ref_from_bytes(&bytes[at..at + size_of::<U32Le>()]).map_or(0, |word| word.get());
        }
        #[expect(clippy::cast_possible_truncation, reason = "the distance is the middle of the word")]
        for (j, word) in words.iter().enumerate() {
            self.raw[j] = (word >> 8) as u16;
            self.intensity[j] = f32::from((word >> 24) as u8);
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded once")]
fn row(of: impl Fn(usize) -> f64) -> Row {
    std::array::from_fn(|j| of(j) as f32)
}

impl Bank {
    /// Creates the constants for a model according to its manual: x = d cos v cos r, y = -d cos v
    /// sin r, z = d sin v - F tan v. Here, d is the distance, v the vertical angle, r the azimuth
    /// and F the focal offset.
    pub(super) fn manual(model: Model) -> Vec<Self> {
        let vertical = angles::vertical(model);
        let focal = angles::focal_offset(model);
        let laser = |(i, angle): (usize, &f64)| LaserCalibration {
            id: u8::try_from(i).unwrap_or_default(),
            vertical: *angle,
            rotation: -angles::azimuth_offset(model, i),
            vertical_offset: -focal * angle.to_radians().tan(),
            ..LaserCalibration::default()
        };
        let lasers: Vec<_> = vertical.iter().enumerate().map(laser).collect();
        Self::calibrated(&lasers, model.unit(), OffsetModel::Plain)
    }

    /// Creates the constants from calibrated lasers. If there are only 16 lasers, each laser fires
    /// twice in a block.
    pub(super) fn calibrated(lasers: &[LaserCalibration], unit: f64, offsets: OffsetModel) -> Vec<Self> {
        let vertical: Vec<f64> = lasers.iter().map(|laser| laser.vertical).collect();
        let rings = angles::rings(&vertical);
        let bank = |first: usize| {
            let number = |j: usize| (first + j) % lasers.len();
            let of = |j: usize| &lasers[number(j)];
            let sin = |j: usize| of(j).vertical.to_radians().sin();
            let cos = |j: usize| of(j).vertical.to_radians().cos();
            let perpendicular = |j: usize| match offsets {
                OffsetModel::Plain => (0.0, of(j).vertical_offset),
                OffsetModel::Perpendicular => {
                    (of(j).vertical_offset * sin(j), of(j).vertical_offset * cos(j))
                }
            };
            // Near distances are corrected by near + k (far - near), where `near` and `far` are the
            // calibrated corrections of the laser for near and far distances. In the sideways
            // direction, k grows from 0 at 2.40 m to 1 at 25.04 m. In the forward direction, it
            // grows from 0 at 1.93 m to 1 at 25.04 m.
            let second = |near: fn(&LaserCalibration) -> f64, start: f64, scale: f64| {
                let span = move |j: usize| of(j).distance - near(of(j));
                [row(|j| near(of(j)) - span(j) * start / scale), row(|j| span(j) / scale)]
            };
            Self {
                names: std::array::from_fn(|j| {
                    [rings[number(j)], u8::try_from(number(j)).unwrap_or(u8::MAX)]
                }),
                rotation: std::array::from_fn(|j| of(j).rotation.to_radians()),
                #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
                unit: unit as f32,
                sin: row(sin),
                cos: row(cos),
                far: row(|j| of(j).distance),
                near: NearCorrection {
                    below: row(|j| if of(j).corrects_near() { NEAR - unit / 2.0 } else { 0.0 }),
                    across: second(|laser| laser.distance_x, 2.40, 22.64),
                    along: second(|laser| laser.distance_y, 1.93, 23.11),
                },
                offset: LaserOffset {
                    back: row(|j| perpendicular(j).0),
                    up: row(|j| perpendicular(j).1),
                    aside: row(|j| of(j).horizontal_offset),
                },
                intensity: [
                    row(|j| (1.0 - of(j).focal_distance / MAX_DISTANCE).powi(2)),
                    row(|j| 256.0 * of(j).focal_slope),
                    row(|j| of(j).min_intensity.into()),
                    row(|j| of(j).max_intensity.max(of(j).min_intensity).into()),
                ],
            }
        };
        (0..lasers.len()).step_by(LANES).map(bank).collect()
    }

    /// Returns whether any laser has a correction for near distances that differs from that for far
    /// distances.
    pub(super) fn corrects_near(&self) -> bool {
        self.near.below.iter().any(|below| *below > 0.0)
    }

    /// Returns the rotation for each shot of a block. `steps` has the rotations in hundredths of a
    /// degree. If `exact` is false, they are rounded to integers.
    pub(super) fn turn(&self, steps: &[f64; LANES], exact: bool) -> Turn {
        let mut turn = Turn { whole: [0; LANES], cos: [0.0; LANES], sin: [0.0; LANES] };
        for (j, step) in steps.iter().enumerate() {
            let whole = (step + 0.5).floor();
            let angle = (if exact { *step } else { whole } / 100.0).to_radians() - self.rotation[j];
            let (sin, cos) = angle.sin_cos();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "within a turn; rounded once"
            )]
            {
                turn.whole[j] = whole.rem_euclid(f64::from(TURN)) as u16;
                (turn.cos[j], turn.sin[j]) = (cos as f32, sin as f32);
            }
        }
        turn
    }

    /// Computes the positions of the shots of a block. `cos` and `sin` are those of the block's
    /// azimuth.
    ///
    /// A = (d + dist) cos v - V sin v is the distance over ground, where d is the stored distance,
    /// dist its correction, v the vertical angle and V the vertical offset. With the angle r =
    /// azimuth - rotation and the sideways offset h, x is A cos r + h sin r, and y is h cos r - A
    /// sin r. `SECOND` enables the correction of near distances.
    #[inline]
    pub(super) fn place<const SECOND: bool>(&self, turn: &Turn, [cos, sin]: [f32; 2], shots: &mut Shots) {
        let Self { near, offset, .. } = self;
        for j in 0..LANES {
            let d = f32::from(shots.raw[j]) * self.unit;
            let cos_r = cos * turn.cos[j] - sin * turn.sin[j];
            let sin_r = sin * turn.cos[j] + cos * turn.sin[j];
            let (mut across, mut along) = (self.far[j], self.far[j]);
            if SECOND {
                let ground = (d + self.far[j]) * self.cos[j];
                let side = near.across[0][j] + (ground * sin_r).abs() * near.across[1][j];
                let ahead = near.along[0][j] + (ground * cos_r).abs() * near.along[1][j];
                // The correction is selected without a branch. Near and far shots alternate
                // unpredictably, so a branch would be slow.
                let mask = 0_u32.wrapping_sub(u32::from(d < near.below[j]));
                let choose = |a: f32, b: f32| f32::from_bits((a.to_bits() & mask) | (b.to_bits() & !mask));
                across = choose(side, across);
                along = choose(ahead, along);
            }
            let x = (d + across) * self.cos[j] - offset.back[j];
            let y = (d + along) * self.cos[j] - offset.back[j];
            shots.at[j] = [
                y * cos_r + offset.aside[j] * sin_r,
                offset.aside[j] * cos_r - x * sin_r,
                (d + 0.5 * (across + along)) * self.sin[j] + offset.up[j],
                shots.intensity[j],
            ];
        }
    }

    /// Corrects the intensities of an HDL-64E for the distance of each shot.
    pub(super) fn correct(&self, shots: &mut Shots) {
        let [focus, slope, min, max] = &self.intensity;
        for j in 0..LANES {
            let far = 1.0 - f32::from(shots.raw[j]) * (1.0 / 65_535.0);
            let corrected = shots.intensity[j] + slope[j] * (focus[j] - far * far).abs();
            shots.intensity[j] = corrected.max(min[j]).min(max[j]);
        }
    }
}

impl Turn {
    /// Computes the azimuth of each shot of a block. `azimuth` is the azimuth of the block.
    #[inline]
    pub(super) fn azimuths(&self, azimuth: u16, shots: &mut Shots) {
        const WHOLE: u16 = 36_000;
        for j in 0..LANES {
            // The comparison decides between addition and subtraction, so that no intermediate
            // result exceeds 16 bits.
            let left = WHOLE - self.whole[j];
            let (behind, ahead) = (azimuth.wrapping_sub(left), azimuth.wrapping_add(self.whole[j]));
            shots.polar[j] = [if azimuth >= left { behind } else { ahead }, shots.raw[j]];
        }
    }
}
