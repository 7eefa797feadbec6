//! The 32 shots of a block at once, in one array per number, so that the compiler can use SIMD
//! instructions. Section 7 of docs/formats/vel.md.

use rovelog_core::wire::U32Le;
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::angles;
use super::calibration::{FAR, LaserCalibration, OffsetModel};
use super::model::Model;
use crate::wire::{LaserReturn, VelodyneBlock};

/// Hundredths of a degree in a turn.
pub(super) const TURN: u32 = 36_000;

/// Number of shots in a block.
pub(super) const LANES: usize = 32;

/// Distance in metres below which the near calibration of an HDL-64E is used.
const NEAR: f64 = 25.04;

type Row = [f32; LANES];

/// Constants of the lasers of a block, in the order of its shots.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    /// Ring and laser.
    pub(super) names: [[u8; 2]; LANES],
    /// Radians to subtract from the azimuth.
    rotation: [f64; LANES],
    /// Metres per unit.
    unit: f32,
    /// Distances below this, in metres, are near; 0 without a correction.
    below: Row,
    sin: Row,
    cos: Row,
    /// Offset of a far distance.
    far: Row,
    /// Offset of a near distance, across and along: a constant, and a factor of the position to the
    /// side or ahead.
    across: [Row; 2],
    along: [Row; 2],
    /// Effect of the vertical offset on the distance over ground, and on the height.
    back: Row,
    up: Row,
    aside: Row,
    /// Intensity: focus, slope, minimum, maximum.
    intensity: [Row; 4],
}

/// Rotation from the azimuth of a block to the firing of its shots.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Hundredths of a degree, within a turn.
    whole: [u16; LANES],
    /// Cosine and sine of the step minus the laser's rotation.
    cos: Row,
    sin: Row,
}

/// The shots of a block and their positions.
#[derive(Clone, Copy, Default)]
pub(super) struct Shots {
    pub(super) raw: [u16; LANES],
    intensity: Row,
    /// x, y, z and intensity as in a point: copied with one instruction.
    pub(super) at: [[f32; 4]; LANES],
    /// Azimuth and distance, in the same way.
    pub(super) polar: [[u16; 2]; LANES],
}

impl Shots {
    /// Adds the distances and intensities of a block.
    #[inline]
    pub(super) fn take(&mut self, block: &VelodyneBlock) {
        // A return and the byte before it are read as one 32-bit number: half the time of three
        // bytes.
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
    /// Makes lasers from the manual: x = d cos v cos r, y = -d cos v sin r, z = d sin v - F tan v.
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

    /// Makes lasers from a calibration; 16 of them fire twice in a block.
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
            // k = (side - 2.40) / 22.64 and (ahead - 1.93) / 23.11; near + k (far - near).
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
                below: row(|j| if of(j).corrects_near() { NEAR - unit / 2.0 } else { 0.0 }),
                sin: row(sin),
                cos: row(cos),
                far: row(|j| of(j).distance),
                across: second(|laser| laser.distance_x, 2.40, 22.64),
                along: second(|laser| laser.distance_y, 1.93, 23.11),
                back: row(|j| perpendicular(j).0),
                up: row(|j| perpendicular(j).1),
                aside: row(|j| of(j).horizontal_offset),
                intensity: [
                    row(|j| (1.0 - of(j).focal_distance / FAR).powi(2)),
                    row(|j| 256.0 * of(j).focal_slope),
                    row(|j| of(j).min_intensity.into()),
                    row(|j| of(j).max_intensity.max(of(j).min_intensity).into()),
                ],
            }
        };
        (0..lasers.len()).step_by(LANES).map(bank).collect()
    }

    /// Returns whether a laser corrects near distances differently from far ones.
    pub(super) fn corrects_near(&self) -> bool {
        self.below.iter().any(|below| *below > 0.0)
    }

    /// Returns the rotation during its shots; `steps` are hundredths of a degree.
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

    /// Computes the positions of the shots of a block whose azimuth has this cosine and sine. A =
    /// (d + dist) cos v - V sin v over ground; x = A cos r + h sin r, y = h cos r - A sin r with r
    /// = azimuth - rot; `SECOND` for near distances.
    #[inline]
    pub(super) fn place<const SECOND: bool>(&self, turn: &Turn, [cos, sin]: [f32; 2], shots: &mut Shots) {
        for j in 0..LANES {
            let d = f32::from(shots.raw[j]) * self.unit;
            let cos_r = cos * turn.cos[j] - sin * turn.sin[j];
            let sin_r = sin * turn.cos[j] + cos * turn.sin[j];
            let (mut across, mut along) = (self.far[j], self.far[j]);
            if SECOND {
                let ground = (d + self.far[j]) * self.cos[j];
                let side = self.across[0][j] + (ground * sin_r).abs() * self.across[1][j];
                let ahead = self.along[0][j] + (ground * cos_r).abs() * self.along[1][j];
                // No branch: near and far come in any order.
                let near = 0_u32.wrapping_sub(u32::from(d < self.below[j]));
                let choose = |a: f32, b: f32| f32::from_bits((a.to_bits() & near) | (b.to_bits() & !near));
                across = choose(side, across);
                along = choose(ahead, along);
            }
            let x = (d + across) * self.cos[j] - self.back[j];
            let y = (d + along) * self.cos[j] - self.back[j];
            shots.at[j] = [
                y * cos_r + self.aside[j] * sin_r,
                self.aside[j] * cos_r - x * sin_r,
                (d + 0.5 * (across + along)) * self.sin[j] + self.up[j],
                shots.intensity[j],
            ];
        }
    }

    /// Corrects the intensities of an HDL-64E by distance.
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
    /// Computes the azimuths of the shots in a block of this azimuth.
    #[inline]
    pub(super) fn azimuths(&self, azimuth: u16, shots: &mut Shots) {
        const WHOLE: u16 = 36_000;
        for j in 0..LANES {
            // No sum of the two exceeds 16 bits.
            let left = WHOLE - self.whole[j];
            let (behind, ahead) = (azimuth.wrapping_sub(left), azimuth.wrapping_add(self.whole[j]));
            shots.polar[j] = [if azimuth >= left { behind } else { ahead }, shots.raw[j]];
        }
    }
}
