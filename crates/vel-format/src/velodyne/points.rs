//! Conversion of packets to points. See section 7 of docs/formats/vel.md.
//!
//! A sensor sends more than a million points per second, so the conversion must be fast:
//!
//! - The sine and cosine of every hundredth of a degree are stored in a table.
//! - The constants of each laser are computed only once.
//! - The 32 shots of a block are computed at once with SIMD instructions.
//! - Points are written to a buffer of the caller.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::calibration::{Calibration, OffsetModel};
use super::lanes::{Bank, LANES, Shots, TURN, Turn};
use super::model::{Model, ReturnMode, Sensor};
use super::timing::Firing;
use crate::error::VelError;
use crate::wire::VelodynePacket;

/// The kind of return from which a point was computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Return {
    /// The strongest return of the shot, or its only return.
    #[default]
    Strongest = 1,
    /// The last return of the shot.
    Last = 2,
    /// The strongest return of the shot, which is also its last return.
    Both = 3,
}

/// A point in the coordinates of the sensor. The x axis points forward, the y axis to the left, and
/// the z axis up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Point {
    /// Forward coordinate of the point in meters.
    pub x: f32,
    /// Left coordinate of the point in meters.
    pub y: f32,
    /// Upward coordinate of the point in meters.
    pub z: f32,
    /// Intensity of the return, 0 to 255.
    pub intensity: f32,
    /// Time of the shot in nanoseconds, counted from the reference time of the caller.
    pub nanos: i32,
    /// Azimuth of the sensor at the time of the shot, in hundredths of a degree, clockwise as seen
    /// from above.
    pub azimuth: u16,
    /// Stored distance, in units that depend on the model. See [`Model::unit`].
    pub distance: u16,
    /// Ring number of the laser, which is its rank by vertical angle. The lowest laser has ring
    /// number 0.
    pub ring: u8,
    /// Number of the laser in the sensor.
    pub laser: u8,
    /// The kind of return from which the point was computed.
    pub returned: Return,
}

/// Options for the conversion of packets to points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointOptions {
    /// Direction in which the vertical offsets of an HDL-64E are applied.
    pub offsets: OffsetModel,
    /// True to correct the intensities of an HDL-64E for the distance, as described in its manual.
    pub correct_intensity: bool,
    /// True to use the exact azimuth of each shot. If false, the azimuth is rounded to hundredths
    /// of a degree.
    pub exact_azimuth: bool,
}

impl PointOptions {
    /// Applies the vertical offsets of an HDL-64E along the z axis.
    #[must_use]
    pub fn plain(mut self) -> Self {
        self.offsets = OffsetModel::Plain;
        self
    }

    /// Corrects the intensities of an HDL-64E for the distance.
    #[must_use]
    pub fn with_corrected_intensity(mut self) -> Self {
        self.correct_intensity = true;
        self
    }

    /// Uses the exact azimuth of each shot. By default, the azimuth is rounded to hundredths of a
    /// degree.
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

/// Number of rotation rates for which the rotations of shots are cached. A sensor with a steady
/// rate needs two or three of them.
const RATES: usize = 8;

/// Rotations of the sensor until each shot of a packet, for one rotation rate.
#[derive(Clone, Debug, Default)]
struct CachedRotation {
    /// Rotation between the two blocks that determine the rate, in hundredths of a degree. `None`
    /// before the first use.
    turned: Option<u32>,
    banks: Vec<Turn>,
}

/// Converts the packets of a sensor to points.
#[derive(Clone, Debug)]
pub struct Decoder {
    model: Model,
    mode: ReturnMode,
    options: PointOptions,
    banks: Vec<Bank>,
    /// True if any laser has a correction for near distances that differs from that for far
    /// distances.
    near: bool,
    firing: Firing,
    table: Arc<Table>,
    turns: Vec<CachedRotation>,
    /// Azimuth of the previous packet. It is needed for the rotation rate of a VLS-128.
    before: Option<u16>,
}

impl Decoder {
    /// Creates a decoder for a model and a return mode. An HDL-64E needs its calibration.
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
        let banks = if model.is_hdl64() {
            let lasers = calibration.ok_or(VelError::NoCalibration)?.by_laser()?;
            Bank::calibrated(&lasers, model.unit(), options.offsets)
        } else {
            Bank::manual(model)
        };
        let near = banks.iter().any(Bank::corrects_near);
        let (table, turns) = (Arc::clone(&TABLE), vec![CachedRotation::default(); RATES]);
        Ok(Self { model, mode, options, banks, near, firing, table, turns, before: None })
    }

    /// Creates a decoder for a detected or selected sensor.
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

    /// Returns the model of the sensor.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Returns the return mode of the sensor.
    pub fn mode(&self) -> ReturnMode {
        self.mode
    }

    /// Returns the time of the first shot of a block in nanoseconds, counted from the first shot of
    /// its packet.
    pub(super) fn block_nanos(&self, block: usize) -> i64 {
        self.firing.shots[block][0].into()
    }

    /// Appends the points of a packet to `out`. `offset` is the time of the packet's first shot in
    /// nanoseconds.
    pub fn packet(&mut self, packet: &VelodynePacket, offset: i32, out: &mut Vec<Point>) {
        let start = out.len();
        out.resize(start + POINTS_OF_PACKET, Point::default());
        let added = self.blocks(packet, 0..12, offset, &mut out[start..]);
        out.truncate(start + added);
        self.end_packet(packet);
    }

    /// Writes the points of a range of blocks to the start of `out`, and returns their number. The
    /// points are in the order of the packet. `out` must have room for the points of a whole
    /// packet.
    pub(super) fn blocks(
        &mut self,
        packet: &VelodynePacket,
        blocks: Range<usize>,
        offset: i32,
        out: &mut [Point],
    ) -> usize {
        let turns = self.turns(packet);
        // The offset is limited, so that adding the time of a shot cannot overflow.
        let offset = offset.clamp(i32::MIN + (1 << 20), i32::MAX - (1 << 20));
        let mut shots = [Shots::default(); 2];
        let mut added = 0;
        let mut block = blocks.start;
        while block < blocks.end {
            if let Some(bank) = self.bank(packet, block) {
                let input =
                    Inputs { packet, bank: &self.banks[bank], turn: &self.turns[turns].banks[bank], offset };
                added += match self.partner(block) {
                    Some(pair) => self.dual(&input, pair, &mut shots, &mut out[added..]),
                    None => self.single(&input, block, &mut shots[0], &mut out[added..]),
                };
            }
            block = self.next(block);
        }
        added
    }

    /// Stores the azimuth of a packet, which is needed for the next packet. This must be called
    /// after each packet.
    pub(super) fn end_packet(&mut self, packet: &VelodynePacket) {
        self.before = Some(packet.blocks[0].azimuth.get());
    }

    /// Returns the number of blocks in a firing. A new revolution must not start inside a firing. In
    /// dual return mode, a firing contains two blocks for each bank of lasers: the strongest and the
    /// last return. An HDL-64E has two banks.
    pub(super) fn blocks_per_firing(&self) -> usize {
        match self.mode {
            ReturnMode::Dual if self.model.is_hdl64() => 4,
            ReturnMode::Dual => 2,
            _ => 1,
        }
    }

    /// Returns the number of the block to convert after `block`. In dual return mode, the two
    /// blocks of a firing are converted together.
    fn next(&self, block: usize) -> usize {
        match self.blocks_per_firing() {
            // The blocks 0 and 2 are of the upper bank, and 1 and 3 of the lower bank.
            4 if block % 4 == 1 => block + 3,
            2 => block + 2,
            _ => block + 1,
        }
    }

    /// In dual return mode, returns the numbers of the blocks with the strongest and the last
    /// return of a firing. Returns `None` in other return modes.
    fn partner(&self, block: usize) -> Option<(usize, usize)> {
        match self.blocks_per_firing() {
            4 => Some((block, block + 2)),
            2 => Some((block + 1, block)),
            _ => None,
        }
    }

    /// Returns the number of the bank of lasers to which a block belongs. Returns `None` if the
    /// model does not have this bank.
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

    // Example: a VLP-16 makes ten turns per second. The first shots of the blocks 0 and 11 are 11 *
    // 110.592 us apart. In this time, the sensor turns by 4.38 degrees. Shot 16 of a block is
    // 55.296 us after the first shot of the block. So its azimuth is the azimuth of the block plus
    // 438 * 55.296 / 1216.512 = 20 hundredths of a degree.

    /// Returns the index of the cached rotations for the rotation rate of this packet. If they are
    /// not cached yet, they are computed.
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
            self.turns[place] = CachedRotation { turned: Some(turned), banks };
        }
        place
    }

    fn vls_period(&self) -> f64 {
        if self.mode == ReturnMode::Dual { 57.8 } else { 3.0 * 57.8 }
    }

    /// Reads the shots of a block and computes their positions.
    #[inline]
    fn place(&self, input: &Inputs<'_>, number: usize, azimuth: u16, shots: &mut Shots) {
        shots.take(&input.packet.blocks[number]);
        if self.options.correct_intensity {
            input.bank.correct(shots);
        }
        let direction = self.table[usize::from(azimuth)];
        if self.near {
            input.bank.place::<true>(input.turn, direction, shots);
        } else {
            input.bank.place::<false>(input.turn, direction, shots);
        }
        input.turn.azimuths(azimuth, shots);
    }

    fn single(&self, input: &Inputs<'_>, number: usize, shots: &mut Shots, out: &mut [Point]) -> usize {
        let Some(out) = out.first_chunk_mut::<LANES>() else { return 0 };
        self.place(input, number, input.azimuth(number), shots);
        let returned = if self.mode == ReturnMode::Last { Return::Last } else { Return::Strongest };
        let mut added = 0;
        for (j, time) in self.firing.shots[number].iter().enumerate() {
            // Every point is written, but the index advances only if there was a return. This is
            // faster than a branch that cannot be predicted.
            out[added % LANES] = input.point(shots, j, input.offset + time, returned);
            added += usize::from(shots.raw[j] != 0);
        }
        added
    }

    fn dual(
        &self,
        input: &Inputs<'_>,
        (strongest, last): (usize, usize),
        [near, far]: &mut [Shots; 2],
        out: &mut [Point],
    ) -> usize {
        // Both returns belong to the same firing, so both use the azimuth of the block with the
        // strongest return.
        let azimuth = input.azimuth(strongest);
        self.place(input, strongest, azimuth, near);
        self.place(input, last, azimuth, far);
        let mut added = 0;
        for (j, time) in self.firing.shots[strongest].iter().enumerate() {
            let same = near.raw[j] == far.raw[j];
            let time = input.offset + time;
            if far.raw[j] != 0 {
                let returned = if same { Return::Both } else { Return::Last };
                out[added] = input.point(far, j, time, returned);
                added += 1;
            }
            if !same && near.raw[j] != 0 {
                out[added] = input.point(near, j, time, Return::Strongest);
                added += 1;
            }
        }
        added
    }
}

/// Inputs from which the points of a block are computed.
struct Inputs<'a> {
    packet: &'a VelodynePacket,
    bank: &'a Bank,
    turn: &'a Turn,
    offset: i32,
}

impl Inputs<'_> {
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
