//! Packets to points, table-driven: a table of sines and cosines for every hundredth of a degree, six constants
//! per laser, a buffer that the caller keeps. Section 7 of docs/formats/vel.md.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::angles;
use super::calibration::{Calibration, LaserCalibration};
use super::model::{Model, ReturnMode, Sensor};
use super::near::Near;
use super::timing::Firing;
use crate::error::VelError;
use crate::wire::{VelodyneBlock, VelodynePacket};

/// Hundredths of a degree in a turn.
pub(super) const TURN: u32 = 36_000;

/// Which return a point is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Return {
    /// The strongest, or the only one.
    #[default]
    Strongest = 1,
    /// The last.
    Last = 2,
    /// The strongest and the last are the same.
    Both = 3,
}

/// A point in the sensor's frame: x forward, y left, z up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Metres.
    pub x: f32,
    /// Metres.
    pub y: f32,
    /// Metres.
    pub z: f32,
    /// 0 to 255.
    pub intensity: f32,
    /// Nanoseconds from the time that the decoder was given.
    pub nanos: i32,
    /// Hundredths of a degree, clockwise from above, at the moment of the shot.
    pub azimuth: u16,
    /// Distance in units of the model.
    pub distance: u16,
    /// The laser's rank by its vertical angle, 0 the lowest.
    pub ring: u8,
    /// The laser's number.
    pub laser: u8,
    /// Which return.
    pub returned: Return,
}

/// How the vertical offset of an HDL-64E's laser is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffsetModel {
    /// Perpendicular to the beam: the ROS driver, `VeloView`.
    #[default]
    Perpendicular,
    /// Straight up: the S3 manual, velodyne-decoder.
    Plain,
}

/// How points are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointOptions {
    /// Vertical offsets of an HDL-64E.
    pub offsets: OffsetModel,
    /// Corrects the intensities of an HDL-64E by distance, as its manual says.
    pub correct_intensity: bool,
    /// Uses the azimuth of each shot to the last digit instead of hundredths of a degree.
    pub exact_azimuth: bool,
}

impl PointOptions {
    /// The same with vertical offsets straight up.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offsets = OffsetModel::Plain;
        self
    }

    /// The same with corrected intensities.
    #[must_use]
    pub fn with_corrected_intensity(mut self) -> Self {
        self.correct_intensity = true;
        self
    }

    /// The same with exact azimuths.
    #[must_use]
    pub fn with_exact_azimuth(mut self) -> Self {
        self.exact_azimuth = true;
        self
    }
}

type Table = Box<[[f32; 2]]>;

/// Cosine and sine of every hundredth of a degree.
static TABLE: LazyLock<Arc<Table>> = LazyLock::new(|| {
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    let entry = |i: u32| {
        let (sin, cos) = (f64::from(i) / 100.0).to_radians().sin_cos();
        [cos as f32, sin as f32]
    };
    Arc::new((0..TURN).map(entry).collect())
});

/// What the numbers of a laser become: `u` and `w` before they are turned by the azimuth, and `z`, each linear
/// in the distance.
#[derive(Clone, Copy, Debug, Default)]
struct Laser {
    u: [f32; 2],
    w: [f32; 2],
    z: [f32; 2],
    ring: u8,
}

/// Turns packets of one sensor into points.
#[derive(Clone, Debug)]
pub struct Decoder {
    model: Model,
    mode: ReturnMode,
    options: PointOptions,
    lasers: Vec<Laser>,
    /// Where an HDL-64E corrects intensities.
    calibration: Option<Box<[LaserCalibration; 64]>>,
    /// Empty where nothing near by is corrected.
    nears: Vec<Near>,
    firing: Firing,
    shots: Vec<[i32; 32]>,
    table: Arc<Table>,
    /// The azimuth of the packet before: a VLS-128 needs it for the rate.
    before: Option<u16>,
}

/// The azimuths of a packet's shots: steps from the block's own, and what the step leaves over in radians.
struct Steps {
    whole: [u16; 32],
    rest: [f32; 32],
}

impl Decoder {
    /// A decoder for a sensor; an HDL-64E needs its calibration.
    ///
    /// # Errors
    /// Where the calibration is missing, or does not have 64 lasers.
    pub fn new(
        model: Model,
        mode: ReturnMode,
        calibration: Option<&Calibration>,
        options: PointOptions,
    ) -> Result<Self, VelError> {
        let firing = Firing::new(model, mode);
        #[expect(clippy::cast_possible_truncation, reason = "less than a millisecond")]
        let shots = firing.shots.iter().map(|block| block.map(|micros| (micros * 1000.0).round() as i32));
        let shots = shots.collect();
        let (lasers, calibration) = if model.is_hdl64() {
            let calibration = calibration.ok_or(VelError::NoCalibration)?.by_laser()?;
            (hdl64(&calibration, model.unit(), options.offsets), Some(Box::new(calibration)))
        } else {
            (manual(model), None)
        };
        let nears: Vec<Near> = calibration
            .iter()
            .flat_map(|lasers| lasers.iter().map(|laser| Near::new(laser, model.unit(), options.offsets)))
            .collect();
        let nears = if nears.iter().any(|near| near.below > 0) { nears } else { Vec::new() };
        let table = Arc::clone(&TABLE);
        Ok(Self { model, mode, options, lasers, calibration, nears, firing, shots, table, before: None })
    }

    /// A decoder for what packets told about their sensor.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(
        sensor: &Sensor,
        calibration: Option<&Calibration>,
        options: PointOptions,
    ) -> Result<Self, VelError> {
        Self::new(sensor.model, sensor.mode, calibration, options)
    }

    /// The model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Adds the points of a packet to `out`; their times count from `offset` nanoseconds before its first shot.
    pub fn packet(&mut self, packet: &VelodynePacket, offset: i32, out: &mut Vec<Point>) {
        self.blocks(packet, 0..12, offset, out);
        self.end_packet(packet);
    }

    /// The points of some blocks of a packet, in the order of the packet.
    pub(super) fn blocks(
        &self,
        packet: &VelodynePacket,
        blocks: Range<usize>,
        offset: i32,
        out: &mut Vec<Point>,
    ) {
        let rate = self.rate(packet);
        out.reserve(384);
        let mut steps = None;
        let mut block = blocks.start;
        while block < blocks.end {
            let partner = self.partner(block);
            let base = self.bank(packet, block);
            // All blocks of a packet fire alike, but for those of a VLS-128 and of its banks.
            if steps.is_none() || self.model == Model::Vls128 {
                steps = Some(self.steps(rate, block));
            }
            if let (Some(base), Some(steps)) = (base, &steps) {
                match partner {
                    Some((strongest, last)) => self.dual(packet, (strongest, last), base, steps, offset, out),
                    None => self.single(packet, block, base, steps, offset, out),
                }
            }
            block = self.next(block);
        }
    }

    /// To be called once a packet is done.
    pub(super) fn end_packet(&mut self, packet: &VelodynePacket) {
        self.before = Some(packet.blocks[0].azimuth.get());
    }

    /// The block after one; the partner of a dual return is done with it.
    fn next(&self, block: usize) -> usize {
        match (self.mode, self.model) {
            (ReturnMode::Dual, Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3) => {
                if block % 4 == 1 {
                    block + 3
                } else {
                    block + 1
                }
            }
            (ReturnMode::Dual, _) => block + 2,
            _ => block + 1,
        }
    }

    /// In dual return mode, the blocks of the strongest and the last return.
    fn partner(&self, block: usize) -> Option<(usize, usize)> {
        match (self.mode, self.model) {
            (ReturnMode::Dual, Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3) => Some((block, block + 2)),
            (ReturnMode::Dual, _) => Some((block + 1, block)),
            _ => None,
        }
    }

    /// The first laser of a block; `None` for flags that no bank of this model has.
    fn bank(&self, packet: &VelodynePacket, block: usize) -> Option<usize> {
        let first = match packet.blocks[block].flag.get() {
            0xEEFF => 0,
            0xDDFF => 32,
            0xCCFF => 64,
            0xBBFF => 96,
            _ => return None,
        };
        (first == 0 || first + 32 <= self.model.lasers()).then_some(first)
    }

    /// Hundredths of a degree per microsecond.
    fn rate(&self, packet: &VelodynePacket) -> f64 {
        let turned =
            |from: u16, to: u16| f64::from((TURN + u32::from(to) % TURN - u32::from(from) % TURN) % TURN);
        let azimuth = |block: usize| packet.blocks[block].azimuth.get();
        match (self.model, self.before) {
            (Model::Hdl64S1, _) | (Model::Vls128, None) => 0.0,
            (Model::Vls128, Some(before)) => turned(before, azimuth(0)) / self.vls_period(),
            _ => turned(azimuth(0), azimuth(self.firing.rate_block)) / self.firing.rate_micros,
        }
    }

    fn vls_period(&self) -> f64 {
        if self.mode == ReturnMode::Dual { 57.8 } else { 3.0 * 57.8 }
    }

    fn steps(&self, rate: f64, block: usize) -> Steps {
        let mut steps = Steps { whole: [0; 32], rest: [0.0; 32] };
        // The azimuth of a VLS-128 is that of its first group, 7 us before the one that is stamped.
        let own = self.firing.blocks[block] - if self.model == Model::Vls128 { 7.0 } else { 0.0 };
        for (j, time) in self.firing.shots[block].iter().enumerate() {
            let step = rate * (time - own);
            let whole = (step + 0.5).floor();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within one turn")]
            let wrapped = whole.rem_euclid(f64::from(TURN)) as u16;
            steps.whole[j] = wrapped;
            if self.options.exact_azimuth {
                #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
                let rest = ((step - whole) / 100.0).to_radians() as f32;
                steps.rest[j] = rest;
            }
        }
        steps
    }

    #[inline]
    fn single(
        &self,
        packet: &VelodynePacket,
        number: usize,
        base: usize,
        steps: &Steps,
        offset: i32,
        out: &mut Vec<Point>,
    ) {
        let block = &packet.blocks[number];
        let azimuth = block.azimuth.get() % 36_000;
        let times = &self.shots[number];
        let returned = if self.mode == ReturnMode::Last { Return::Last } else { Return::Strongest };
        let lasers = if self.lasers.len() == 16 { &self.lasers[..16] } else { &self.lasers[base..base + 32] };
        let mask = lasers.len() - 1;
        let start = out.len();
        for (j, shot) in block.returns.iter().enumerate() {
            let raw = shot.distance.get();
            if raw == 0 {
                continue;
            }
            let laser = j & mask;
            let at = turn(azimuth, steps.whole[j]);
            let mut point = self.point(&lasers[laser], base + laser, raw, at, steps.rest[j]);
            point.intensity = f32::from(shot.intensity);
            point.nanos = offset.saturating_add(times[j]);
            point.returned = returned;
            out.push(point);
        }
        if self.options.correct_intensity {
            self.correct(&mut out[start..]);
        }
    }

    fn dual(
        &self,
        packet: &VelodynePacket,
        (strongest, last): (usize, usize),
        base: usize,
        steps: &Steps,
        offset: i32,
        out: &mut Vec<Point>,
    ) {
        let block = |number: usize| -> &VelodyneBlock { &packet.blocks[number] };
        let azimuth = block(strongest).azimuth.get() % 36_000;
        let times = &self.shots[strongest];
        let mask = self.lasers.len().min(32) - 1;
        let start = out.len();
        for (j, time) in times.iter().enumerate() {
            let (near, far) = (block(strongest).returns[j], block(last).returns[j]);
            let same = near.distance == far.distance;
            let returns = [(far, if same { Return::Both } else { Return::Last }), (near, Return::Strongest)];
            for (shot, returned) in &returns[..if same { 1 } else { 2 }] {
                let raw = shot.distance.get();
                if raw == 0 {
                    continue;
                }
                let laser = base + (j & mask);
                let at = turn(azimuth, steps.whole[j]);
                let mut point = self.point(&self.lasers[laser], laser, raw, at, steps.rest[j]);
                point.intensity = f32::from(shot.intensity);
                point.nanos = offset.saturating_add(*time);
                point.returned = *returned;
                out.push(point);
            }
        }
        if self.options.correct_intensity {
            self.correct(&mut out[start..]);
        }
    }

    #[inline]
    fn point(&self, laser: &Laser, number: usize, raw: u16, azimuth: u16, rest: f32) -> Point {
        let d = f32::from(raw);
        let [cos, sin] = self.table[usize::from(azimuth)];
        // To first order: the rest is less than a hundredth of a degree.
        let (cos, sin) = (cos - rest * sin, sin + rest * cos);
        let (u, w) = (d * laser.u[1] + laser.u[0], d * laser.w[1] + laser.w[0]);
        #[expect(clippy::cast_possible_truncation, reason = "at most 128 lasers")]
        let mut point = Point {
            x: cos * u + sin * w,
            y: cos * w - sin * u,
            z: d * laser.z[1] + laser.z[0],
            azimuth,
            distance: raw,
            ring: laser.ring,
            laser: number as u8,
            ..Point::default()
        };
        if let Some(near) = self.nears.get(number)
            && raw < near.below
        {
            near.place(&mut point, cos, sin);
        }
        point
    }

    /// Corrects the intensities of an HDL-64E.
    fn correct(&self, points: &mut [Point]) {
        let Some(lasers) = &self.calibration else { return };
        for point in points {
            let laser = &lasers[usize::from(point.laser) % 64];
            point.intensity = laser.intensity(point.intensity, point.distance);
        }
    }
}

/// An azimuth and a step, within a turn.
#[inline]
fn turn(azimuth: u16, step: u16) -> u16 {
    let sum = u32::from(azimuth) + u32::from(step);
    #[expect(clippy::cast_possible_truncation, reason = "less than a turn")]
    let within = (if sum >= TURN { sum - TURN } else { sum }) as u16;
    within
}

#[expect(clippy::cast_possible_truncation, reason = "rounded once")]
fn pair(constant: f64, slope: f64) -> [f32; 2] {
    [constant as f32, slope as f32]
}

/// Lasers by the manual: x = d cos v cos r, y = -d cos v sin r, z = d sin v - F tan v.
fn manual(model: Model) -> Vec<Laser> {
    let vertical = angles::vertical(model);
    let rings = angles::rings(&vertical);
    let (unit, focal) = (model.unit(), angles::focal_offset(model));
    let laser = |(i, angle): (usize, &f64)| {
        let (sin, cos) = angle.to_radians().sin_cos();
        let (turn_sin, turn_cos) = angles::azimuth_offset(model, i).to_radians().sin_cos();
        Laser {
            u: pair(0.0, unit * cos * turn_cos),
            w: pair(0.0, -unit * cos * turn_sin),
            z: pair(-focal * angle.to_radians().tan(), unit * sin),
            ring: rings[i],
        }
    };
    vertical.iter().enumerate().map(laser).collect()
}

/// Lasers by a calibration: x = A cos r + h sin r, y = h cos r - A sin r with r = azimuth - rot.
fn hdl64(calibration: &[LaserCalibration; 64], unit: f64, offsets: OffsetModel) -> Vec<Laser> {
    let vertical: Vec<f64> = calibration.iter().map(|laser| laser.vertical).collect();
    let rings = angles::rings(&vertical);
    let laser = |(i, c): (usize, &LaserCalibration)| {
        let (sin, cos) = c.vertical.to_radians().sin_cos();
        let (rot_sin, rot_cos) = c.rotation.to_radians().sin_cos();
        let (back, up) = match offsets {
            OffsetModel::Plain => (0.0, c.vertical_offset),
            OffsetModel::Perpendicular => (c.vertical_offset * sin, c.vertical_offset * cos),
        };
        let constant = c.distance * cos - back;
        let (slope, h) = (unit * cos, c.horizontal_offset);
        Laser {
            u: pair(constant * rot_cos - h * rot_sin, slope * rot_cos),
            w: pair(constant * rot_sin + h * rot_cos, slope * rot_sin),
            z: pair(c.distance * sin + up, unit * sin),
            ring: rings[i],
        }
    };
    calibration.iter().enumerate().map(laser).collect()
}

impl Decoder {
    /// The return mode.
    pub fn mode(&self) -> ReturnMode {
        self.mode
    }

    /// When the first shot of a block is fired, nanoseconds from the first of its packet.
    pub(super) fn block_nanos(&self, block: usize) -> i64 {
        self.shots[block][0].into()
    }
}
