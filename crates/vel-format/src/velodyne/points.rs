//! Conversion of packets to points. It is fast because it uses tables with the sine and cosine of
//! every hundredth of a degree and constants for each laser, computes the 32 shots of a block at
//! once, and writes to a buffer of the caller. Section 7 of docs/formats/vel.md.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use super::calibration::{Calibration, OffsetModel};
use super::lanes::{Bank, LANES, Shots, TURN, Turn};
use super::model::{Model, ReturnMode, Sensor};
use super::timing::Firing;
use crate::error::VelError;
use crate::wire::VelodynePacket;

/// The return of a shot that a point comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Return {
    /// The strongest return, or the only one.
    #[default]
    Strongest = 1,
    /// The last return.
    Last = 2,
    /// The strongest return, which is also the last one.
    Both = 3,
}

/// A point in the coordinates of the sensor: x is forward, y is left, z is up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Point {
    /// Metres.
    pub x: f32,
    /// Metres.
    pub y: f32,
    /// Metres.
    pub z: f32,
    /// Intensity, 0 to 255.
    pub intensity: f32,
    /// Time of the shot in nanoseconds after the time that the caller passed to the decoder.
    pub nanos: i32,
    /// Azimuth at the time of the shot, in hundredths of a degree, clockwise as seen from above.
    pub azimuth: u16,
    /// Distance in units of the model, see [`Model::unit`].
    pub distance: u16,
    /// Rank of the laser by its vertical angle. The lowest laser has rank 0.
    pub ring: u8,
    /// Number of the laser.
    pub laser: u8,
    /// The return that the point comes from.
    pub returned: Return,
}

/// Options for the conversion to points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointOptions {
    /// The meaning of the vertical offsets of an HDL-64E.
    pub offsets: OffsetModel,
    /// True to correct the intensities of an HDL-64E for the distance, as its manual describes.
    pub correct_intensity: bool,
    /// True to use the exact azimuth of each shot instead of hundredths of a degree.
    pub exact_azimuth: bool,
}

impl PointOptions {
    /// Interprets vertical offsets as straight up.
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

    /// Uses the exact azimuth of each shot.
    #[must_use]
    pub fn with_exact_azimuth(mut self) -> Self {
        self.exact_azimuth = true;
        self
    }
}

/// Maximum number of points of a packet.
pub(super) const POINTS_OF_PACKET: usize = 12 * LANES;

type Table = Box<[[f32; 2]]>;

/// The cosine and sine of every hundredth of a degree.
static TABLE: LazyLock<Arc<Table>> = LazyLock::new(|| {
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    let entry = |i: u32| {
        let (sin, cos) = (f64::from(i) / 100.0).to_radians().sin_cos();
        [cos as f32, sin as f32]
    };
    Arc::new((0..TURN).map(entry).collect())
});

/// Number of rotation rates whose tables are cached. A sensor with a steady rate needs two or
/// three.
const RATES: usize = 8;

/// The rotation during the shots of a packet, for one rotation rate.
#[derive(Clone, Debug, Default)]
struct CachedRotation {
    /// Rotation between the blocks that determine the rate, in hundredths of a degree; `None`
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
    /// True if a laser corrects near distances differently from far ones.
    near: bool,
    firing: Firing,
    shots: Vec<[i32; LANES]>,
    table: Arc<Table>,
    turns: Vec<CachedRotation>,
    /// The azimuth of the previous packet, which determines the rotation rate of a VLS-128.
    before: Option<u16>,
}

impl Decoder {
    /// Creates a decoder for a model. An HDL-64E needs its calibration.
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
        let (table, turns) = (Arc::clone(&TABLE), vec![CachedRotation::default(); RATES]);
        Ok(Self { model, mode, options, banks, near, firing, shots, table, turns, before: None })
    }

    /// Creates a decoder for a sensor.
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

    /// Returns the time of the first shot of a block, in nanoseconds after the first shot of its
    /// packet.
    pub(super) fn block_nanos(&self, block: usize) -> i64 {
        self.shots[block][0].into()
    }

    /// Appends the points of a packet to `out`. The first shot of the packet gets the time
    /// `offset`, in nanoseconds.
    pub fn packet(&mut self, packet: &VelodynePacket, offset: i32, out: &mut Vec<Point>) {
        let start = out.len();
        out.resize(start + POINTS_OF_PACKET, Point::default());
        let added = self.blocks(packet, 0..12, offset, &mut out[start..]);
        out.truncate(start + added);
        self.end_packet(packet);
    }

    /// Writes the points of a range of blocks to the start of `out`, in the order of the packet,
    /// and returns their number. `out` must have room for the points of a whole packet.
    pub(super) fn blocks(
        &mut self,
        packet: &VelodynePacket,
        blocks: Range<usize>,
        offset: i32,
        out: &mut [Point],
    ) -> usize {
        let turns = self.turns(packet);
        // Leaves room for the time of a shot, so that the addition cannot overflow.
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

    /// Stores what the next packet needs. Must be called after each packet.
    pub(super) fn end_packet(&mut self, packet: &VelodynePacket) {
        self.before = Some(packet.blocks[0].azimuth.get());
    }

    /// Returns the block after `block`. Both blocks of a dual return are handled together.
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

    /// Returns the blocks with the strongest and the last return in dual return mode; `None` in
    /// other modes.
    fn partner(&self, block: usize) -> Option<(usize, usize)> {
        match (self.mode, self.model) {
            (ReturnMode::Dual, Model::Hdl64S1 | Model::Hdl64S2 | Model::Hdl64S3) => Some((block, block + 2)),
            (ReturnMode::Dual, _) => Some((block + 1, block)),
            _ => None,
        }
    }

    /// Returns the bank of lasers that a block belongs to; `None` if the model does not have it.
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

    // Example: a VLP-16 at 10 turns per second. Blocks 0 and 11 of a packet are 11 * 110.592 us
    // apart, in which it turns by 4.38 degrees. Shot 16 of a block is 55.296 us after its first
    // shot, so its azimuth is that of the block plus 438 * 55.296 / 1216.512 = 20 hundredths of a
    // degree.

    /// Returns the index of the cached rotation for the rate of this packet. Computes the rotation
    /// if it is not cached.
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
        for (j, time) in self.shots[number].iter().enumerate() {
            // Every point is written, but the index only advances if there was a return. This is
            // faster than an unpredictable branch.
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
        // Both returns belong to the same firing, so both use the azimuth of the strongest.
        let azimuth = input.azimuth(strongest);
        self.place(input, strongest, azimuth, near);
        self.place(input, last, azimuth, far);
        let mut added = 0;
        for (j, time) in self.shots[strongest].iter().enumerate() {
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

/// The inputs for computing the points of a block.
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
