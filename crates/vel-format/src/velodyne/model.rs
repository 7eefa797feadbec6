//! Detection of the model of a Velodyne sensor. A single packet can match several models, so many
//! packets are needed. See section 7 of docs/formats/vel.md.

use crate::wire::VelodynePacket;
use rovelog_core::internal::text;

/// A model of a Velodyne sensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the products")]
pub enum Model {
    Hdl64S1,
    Hdl64S2,
    Hdl64S3,
    Hdl32,
    Vlp16,
    PuckHiRes,
    Vlp32A,
    Vlp32C,
    Vls128,
}

impl Model {
    /// All models that are supported.
    pub const ALL: [Self; 9] = [
        Self::Hdl64S1,
        Self::Hdl64S2,
        Self::Hdl64S3,
        Self::Hdl32,
        Self::Vlp16,
        Self::PuckHiRes,
        Self::Vlp32A,
        Self::Vlp32C,
        Self::Vls128,
    ];

    /// Returns the product name of the model.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hdl64S1 => "HDL-64E S1",
            Self::Hdl64S2 => "HDL-64E S2",
            Self::Hdl64S3 => "HDL-64E S3",
            Self::Hdl32 => "HDL-32E",
            Self::Vlp16 => "VLP-16",
            Self::PuckHiRes => "Puck Hi-Res",
            Self::Vlp32A => "VLP-32A/B",
            Self::Vlp32C => "VLP-32C",
            Self::Vls128 => "VLS-128",
        }
    }

    /// Returns the model with this product name. Upper and lower case, spaces and dashes are
    /// ignored.
    pub fn by_name(name: &str) -> Option<Self> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        Self::ALL.into_iter().find(|model| plain(model.name()) == plain(name))
    }

    /// Returns the model with this product id, which is byte 1205 of a packet.
    const fn by_product(product: u8) -> Option<Self> {
        Some(match product {
            0x21 => Self::Hdl32,
            0x22 => Self::Vlp16,
            0x23 => Self::Vlp32A,
            0x24 => Self::PuckHiRes,
            0x28 => Self::Vlp32C,
            0xA1 => Self::Vls128,
            _ => return None,
        })
    }

    /// Returns whether the model belongs to the HDL-64E series.
    pub const fn is_hdl64(self) -> bool {
        matches!(self, Self::Hdl64S1 | Self::Hdl64S2 | Self::Hdl64S3)
    }

    /// Returns the length in meters of one unit of stored distances.
    pub const fn unit(self) -> f64 {
        match self {
            Self::Vlp32A | Self::Vlp32C | Self::Vls128 => 0.004,
            _ => 0.002,
        }
    }

    /// Returns the nominal time between packets in microseconds. In dual return mode, packets are
    /// sent twice as often.
    pub(super) const fn packet_micros(self) -> f64 {
        match self {
            Self::Hdl64S1 => 297.7,
            Self::Hdl64S2 => 288.0,
            Self::Hdl64S3 => 345.6,
            Self::Hdl32 => 552.96,
            Self::Vlp16 | Self::PuckHiRes => 1327.104,
            Self::Vlp32A | Self::Vlp32C => 663.552,
            Self::Vls128 => 160.2,
        }
    }
}

/// Return mode of a sensor. It determines which returns of each shot the sensor sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReturnMode {
    /// The sensor sends the strongest return of each shot.
    #[default]
    Strongest,
    /// The sensor sends the last return of each shot.
    Last,
    /// The sensor sends the strongest and the last return of each shot.
    Dual,
}

impl ReturnMode {
    /// Returns the name of the return mode in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strongest => "strongest",
            Self::Last => "last",
            Self::Dual => "dual",
        }
    }

    /// Returns the return mode for byte 1204 of a packet.
    const fn by_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x37 => Self::Strongest,
            0x38 => Self::Last,
            0x39 => Self::Dual,
            _ => return None,
        })
    }
}

/// A sensor that was detected from packets or selected by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sensor {
    /// Model of the sensor.
    pub model: Model,
    /// Return mode of the sensor.
    pub mode: ReturnMode,
    /// Evidence for the model and the return mode.
    pub evidence: String,
    /// True if the log has too few packets for a certain result.
    pub assumed: bool,
}

impl Sensor {
    /// Creates a sensor with the model and return mode that the user selected.
    pub fn named(model: Model, mode: ReturnMode) -> Self {
        Self { model, mode, evidence: "named by the user".to_owned(), assumed: false }
    }
}

/// Maximum number of packets that are examined to detect the model when a log is opened.
pub(crate) const SAMPLES: usize = 256;

/// Minimum number of packets for which the detected model is certain.
const MIN_CERTAIN_PACKETS: usize = 16;

/// Properties of a packet from which the model is inferred.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketTraits {
    timestamp: u32,
    bytes: (u8, u8),
    /// True if all blocks of the packet belong to the first bank of lasers.
    one_bank: bool,
    /// True if the packet has pairs of blocks with the same azimuth, of which the first block
    /// belongs to the first bank of lasers and the second block to the second bank.
    pairs: bool,
    dual: bool,
}

impl PacketTraits {
    pub(crate) fn of(packet: &VelodynePacket) -> Self {
        let flags = packet.blocks.each_ref().map(|block| block.flag.get());
        let azimuths = packet.blocks.each_ref().map(|block| block.azimuth.get());
        Self {
            timestamp: packet.stamp.get(),
            bytes: (packet.return_mode, packet.product),
            one_bank: flags.iter().all(|flag| *flag == 0xEEFF),
            pairs: (0..6).all(|i| {
                flags[2 * i] == 0xEEFF && flags[2 * i + 1] == 0xDDFF && azimuths[2 * i] == azimuths[2 * i + 1]
            }),
            dual: (0..3).all(|i| azimuths[4 * i] == azimuths[4 * i + 2]),
        }
    }
}

/// Detects the model and return mode from packets in file order. Returns `None` if the packets do
/// not match any known model.
pub fn detect<'a>(packets: impl IntoIterator<Item = &'a VelodynePacket>) -> Option<Sensor> {
    detect_samples(&packets.into_iter().map(PacketTraits::of).collect::<Vec<_>>())
}

pub(crate) fn detect_samples(samples: &[PacketTraits]) -> Option<Sensor> {
    let first = samples.first()?;
    let count = samples.len();
    let constant = samples.iter().all(|sample| sample.bytes == first.bytes);
    let (assumed, packets) = (count < MIN_CERTAIN_PACKETS, text::count(count, "packet"));
    // The last two bytes of a packet state the return mode and the product. In packets of an
    // HDL-64E, they contain status bytes instead, so they change from packet to packet.
    if constant
        && let (Some(mode), Some(model)) =
            (ReturnMode::by_byte(first.bytes.0), Model::by_product(first.bytes.1))
    {
        let (a, b) = first.bytes;
        let evidence = format!("{packets} with {a:02x} {b:02x} at the end");
        return Some(Sensor { model, mode, evidence, assumed });
    }
    let step = median_step(samples);
    let clock = step.map_or("timestamps do not change".to_owned(), |step| format!("{step} us a packet"));
    let told = |model, mode, why: &str| {
        Some(Sensor { model, mode, evidence: format!("{packets}: {why}, {clock}"), assumed })
    };
    if first.one_bank && samples.iter().all(|sample| sample.one_bank) {
        // Firmware from before 2016 does not set the last two bytes. In this case, the time between
        // packets shows the model.
        return match step {
            Some(500..=600) => told(Model::Hdl32, ReturnMode::Strongest, "one bank of lasers"),
            Some(1250..=1400) => told(Model::Vlp16, ReturnMode::Strongest, "one bank of lasers"),
            _ => None,
        };
    }
    if constant && !assumed {
        return None;
    }
    let warns = samples.iter().any(|sample| sample.bytes.0 == b'W');
    let paired = samples.iter().all(|sample| sample.pairs);
    let dual = paired && samples.iter().all(|sample| sample.dual);
    let mode = if dual { ReturnMode::Dual } else { ReturnMode::Strongest };
    match step {
        _ if warns => told(Model::Hdl64S3, mode, "status bytes with warnings"),
        Some(330..=360 | 660..=720) if paired => told(Model::Hdl64S3, mode, "status bytes, pairs of banks"),
        Some(275..=300) => told(Model::Hdl64S2, ReturnMode::Strongest, "status bytes"),
        _ if paired => told(Model::Hdl64S2, ReturnMode::Strongest, "status bytes, pairs of banks"),
        _ => told(Model::Hdl64S1, ReturnMode::Strongest, "status bytes, mixed banks"),
    }
}

/// Returns the median of the differences between successive packet timestamps, in microseconds.
/// Returns `None` if the median is 0.
fn median_step(samples: &[PacketTraits]) -> Option<u32> {
    let mut steps: Vec<u32> =
        samples.windows(2).map(|pair| pair[1].timestamp.wrapping_sub(pair[0].timestamp)).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().filter(|step| *step > 0)
}
