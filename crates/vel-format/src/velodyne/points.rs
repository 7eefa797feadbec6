//! Points from packets by tables: sines and cosines for every hundredth of a degree, constants per
//! laser, the 32 shots of a block at once, and a buffer of the caller. Section 7 of
//! docs/formats/vel.md.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::calibration::{Calibration, OffsetModel};
use super::lanes::{Bank, LANES, Shots, TURN, Turn};
use super::model::{Model, ReturnMode, Sensor};
use super::timing::Firing;
use crate::error::VelError;
use crate::wire::VelodynePacket;

/// The return that a point comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Return {
    /// The strongest, or the only one.
    #[default]
    Strongest = 1,
    /// The last.
    Last = 2,
    /// The strongest, which is also the last.
    Both = 3,
}

/// A point in the sensor's frame: x forward, y left, z up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Point {
    /// Metres.
    pub x: f32,
    /// Metres.
    pub y: f32,
    /// Metres.
    pub z: f32,
    /// 0 to 255.
    pub intensity: f32,
    /// Nanoseconds from the time that the caller gave to the decoder.
    pub nanos: i32,
    /// Hundredths of a degree, clockwise from above, at the time of the shot.
    pub azimuth: u16,
    /// Distance in units of the model.
    pub distance: u16,
    /// The laser's rank by its vertical angle, 0 the lowest.
    pub ring: u8,
    /// Number of the laser.
    pub laser: u8,
    /// The return.
    pub returned: Return,
}

/// Options for points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointOptions {
    /// Meaning of the vertical offsets of an HDL-64E.
    pub offsets: OffsetModel,
    /// True to correct the intensities of an HDL-64E by distance, as in its manual.
    pub correct_intensity: bool,
    /// True to use the exact azimuth of each shot instead of hundredths of a degree.
    pub exact_azimuth: bool,
}

impl PointOptions {
    /// Uses vertical offsets straight up.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offsets = OffsetModel::Plain;
        self
    }

    /// Corrects intensities.
    #[must_use]
    pub fn with_corrected_intensity(mut self) -> Self {
        self.correct_intensity = true;
        self
    }

    /// Uses exact azimuths.
    #[must_use]
    pub fn with_exact_azimuth(mut self) -> Self {
        self.exact_azimuth = true;
        self
    }
}

/// Maximum number of points in a packet.
pub(super) const POINTS_OF_PACKET: usize = 12 * LANES;

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

/// Number of rotation rates that are cached. A sensor with a steady rate has two or three.
const RATES: usize = 8;

/// Rotation during the shots of a packet, by bank of lasers.
#[derive(Clone, Debug, Default)]
struct Turns {
    /// Hundredths of a degree between the blocks that give the rate; `None` before the first use.
    turned: Option<u32>,
    banks: Vec<Turn>,
}

/// Decodes packets of one sensor to points.
#[derive(Clone, Debug)]
pub struct Decoder {
    model: Model,
    mode: ReturnMode,
    options: PointOptions,
    banks: Vec<Bank>,
    /// True if near distances are corrected differently.
    near: bool,
    firing: Firing,
    shots: Vec<[i32; LANES]>,
    table: Arc<Table>,
    turns: Vec<Turns>,
    /// The azimuth of the previous packet: a VLS-128 needs it for the rate.
    before: Option<u16>,
}

impl Decoder {
    /// Makes a decoder for a sensor; an HDL-64E needs its calibration.
    ///
    /// # Errors
    /// Returns an error if the calibration is missing or does not have 64 lasers.
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
        let banks = if model.is_hdl64() {
            let lasers = calibration.ok_or(VelError::NoCalibration)?.by_laser()?;
            Bank::calibrated(&lasers, model.unit(), options.offsets)
        } else {
            Bank::manual(model)
        };
        let near = banks.iter().any(Bank::corrects_near);
        let (table, turns) = (Arc::clone(&TABLE), vec![Turns::default(); RATES]);
        Ok(Self { model, mode, options, banks, near, firing, shots, table, turns, before: None })
    }

    /// Makes a decoder for a detected sensor.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn of(
        sensor: &Sensor,
        calibration: Option<&Calibration>,
        options: PointOptions,
    ) -> Result<Self, VelError> {
        Self::new(sensor.model, sensor.mode, calibration, options)
    }

    /// Returns the model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Returns the return mode.
    pub fn mode(&self) -> ReturnMode {
        self.mode
    }

    /// Returns the time of the first shot of a block, in nanoseconds from the first shot of its
    /// packet.
    pub(super) fn block_nanos(&self, block: usize) -> i64 {
        self.shots[block][0].into()
    }

    /// Adds the points of a packet to `out`; their times count from `offset` nanoseconds before its
    /// first shot.
    pub fn packet(&mut self, packet: &VelodynePacket, offset: i32, out: &mut Vec<Point>) {
        let start = out.len();
        out.resize(start + POINTS_OF_PACKET, Point::default());
        let added = self.blocks(packet, 0..12, offset, &mut out[start..]);
        out.truncate(start + added);
        self.end_packet(packet);
    }

    /// Writes the points of some blocks of a packet, in the order of the packet, to the start of
    /// `out`, which has space for a whole packet; returns their number.
    pub(super) fn blocks(
        &mut self,
        packet: &VelodynePacket,
        blocks: Range<usize>,
        offset: i32,
        out: &mut [Point],
    ) -> usize {
        let turns = self.turns(packet);
        // Adding the time of a shot cannot overflow.
        let offset = offset.clamp(i32::MIN + (1 << 20), i32::MAX - (1 << 20));
        let mut shots = [Shots::default(); 2];
        let mut added = 0;
        let mut block = blocks.start;
        while block < blocks.end {
            if let Some(bank) = self.bank(packet, block) {
                let here =
                    Here { packet, bank: &self.banks[bank], turn: &self.turns[turns].banks[bank], offset };
                added += match self.partner(block) {
                    Some(pair) => self.dual(&here, pair, &mut shots, &mut out[added..]),
                    None => self.single(&here, block, &mut shots[0], &mut out[added..]),
                };
            }
            block = self.next(block);
        }
        added
    }

    /// Must be called after each packet.
    pub(super) fn end_packet(&mut self, packet: &VelodynePacket) {
        self.before = Some(packet.blocks[0].azimuth.get());
    }

    /// Returns the next block; both blocks of a dual return are done together.
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

    /// Returns the blocks of the strongest and the last return in dual return mode.
    fn partner(&self, block: usize) -> Option<(usize, usize)> {
        match (self.mode, self.model) {
            (ReturnMode::Dual, Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3) => Some((block, block + 2)),
            (ReturnMode::Dual, _) => Some((block + 1, block)),
            _ => None,
        }
    }

    /// Returns the bank of lasers of a block; `None` for flags that this model does not have.
    fn bank(&self, packet: &VelodynePacket, block: usize) -> Option<usize> {
        let bank = match packet.blocks[block].flag.get() {
            0xEEFF => 0,
            0xDDFF => 1,
            0xCCFF => 2,
            0xBBFF => 3,
            _ => return None,
        };
        (bank < self.banks.len()).then_some(bank)
    }

    /// Returns the index of the cached turns for this packet's rate.
    fn turns(&mut self, packet: &VelodynePacket) -> usize {
        let between = |from: u16, to: u16| (TURN + u32::from(to) % TURN - u32::from(from) % TURN) % TURN;
        let azimuth = |block: usize| packet.blocks[block].azimuth.get();
        let (turned, micros) = match (self.model, self.before) {
            (Model::Hdl64S1, _) | (Model::Vls128, None) => (0, 1.0),
            (Model::Vls128, Some(before)) => (between(before, azimuth(0)), self.vls_period()),
            _ => (between(azimuth(0), azimuth(self.firing.rate_block)), self.firing.rate_micros),
        };
        let place = turned as usize % RATES;
        if self.turns[place].turned != Some(turned) {
            let rate = f64::from(turned) / micros;
            let turn = |(number, bank): (usize, &Bank)| {
                let steps = self.firing.within(number).map(|micros| rate * micros);
                bank.turn(&steps, self.options.exact_azimuth)
            };
            let banks = self.banks.iter().enumerate().map(turn).collect();
            self.turns[place] = Turns { turned: Some(turned), banks };
        }
        place
    }

    fn vls_period(&self) -> f64 {
        if self.mode == ReturnMode::Dual { 57.8 } else { 3.0 * 57.8 }
    }

    /// Reads the shots of a block and computes their positions.
    #[inline]
    fn place(&self, here: &Here<'_>, number: usize, azimuth: u16, shots: &mut Shots) {
        shots.take(&here.packet.blocks[number]);
        if self.options.correct_intensity {
            here.bank.correct(shots);
        }
        let direction = self.table[usize::from(azimuth)];
        if self.near {
            here.bank.place::<true>(here.turn, direction, shots);
        } else {
            here.bank.place::<false>(here.turn, direction, shots);
        }
        here.turn.azimuths(azimuth, shots);
    }

    fn single(&self, here: &Here<'_>, number: usize, shots: &mut Shots, out: &mut [Point]) -> usize {
        let Some(out) = out.first_chunk_mut::<LANES>() else { return 0 };
        self.place(here, number, here.azimuth(number), shots);
        let returned = if self.mode == ReturnMode::Last { Return::Last } else { Return::Strongest };
        let mut added = 0;
        for (j, time) in self.shots[number].iter().enumerate() {
            // Always written, but only kept if there was a return: faster than an unpredictable
            // branch.
            out[added % LANES] = here.point(shots, j, here.offset + time, returned);
            added += usize::from(shots.raw[j] != 0);
        }
        added
    }

    fn dual(
        &self,
        here: &Here<'_>,
        (strongest, last): (usize, usize),
        [near, far]: &mut [Shots; 2],
        out: &mut [Point],
    ) -> usize {
        // Both belong to the same firing: the azimuth of the strongest is used.
        let azimuth = here.azimuth(strongest);
        self.place(here, strongest, azimuth, near);
        self.place(here, last, azimuth, far);
        let mut added = 0;
        for (j, time) in self.shots[strongest].iter().enumerate() {
            let same = near.raw[j] == far.raw[j];
            let time = here.offset + time;
            if far.raw[j] != 0 {
                let returned = if same { Return::Both } else { Return::Last };
                out[added] = here.point(far, j, time, returned);
                added += 1;
            }
            if !same && near.raw[j] != 0 {
                out[added] = here.point(near, j, time, Return::Strongest);
                added += 1;
            }
        }
        added
    }
}

/// Parameters for the blocks of a bank.
struct Here<'a> {
    packet: &'a VelodynePacket,
    bank: &'a Bank,
    turn: &'a Turn,
    offset: i32,
}

impl Here<'_> {
    fn azimuth(&self, block: usize) -> u16 {
        self.packet.blocks[block].azimuth.get() % 36_000
    }

    #[inline]
    fn point(&self, shots: &Shots, j: usize, nanos: i32, returned: Return) -> Point {
        let [x, y, z, intensity] = shots.at[j];
        let [azimuth, distance] = shots.polar[j];
        let [ring, laser] = self.bank.names[j];
        Point { x, y, z, intensity, nanos, azimuth, distance, ring, laser, returned }
    }
}
