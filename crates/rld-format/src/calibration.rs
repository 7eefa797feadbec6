//! Calibration files of the logger (`.dat`). They contain the offset and the factor that convert
//! the converter codes of each channel to its unit. Files of version 2 have a magic number. Files
//! of version 1 are identified by their size.

use rovelog_core::internal::wire::{F64Le, I32Le};
use zerocopy::FromBytes;

use crate::error::RldError;
use crate::wire::{CALIBRATION_MAGIC, CalibrationV1, CalibrationV2};

/// Names of the channels in a file of version 2, in file order.
pub const POSITIONS: [&str; 9] = ["V1", "V2", "V3", "V4", "I1L", "I1H", "I2L", "I2H", "DT"];

/// Names of the channels in a file of version 1, in file order.
pub const POSITIONS_V1: [&str; 8] = ["I1H", "I1L", "V1", "V2", "I2H", "I2L", "V3", "V4"];

/// The calibration of one channel.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ChannelCalibration {
    pub channel: &'static str,
    pub offset: i32,
    pub scale: f64,
}

impl ChannelCalibration {
    /// Returns the calibrated value of a converter code: `(code + offset) * scale`. The result is
    /// rounded toward zero and clamped to 32 bits, as in the logger.
    #[expect(clippy::cast_possible_truncation, reason = "casts of floats saturate, and NaN is 0")]
    pub fn apply(&self, code: i32) -> i32 {
        ((f64::from(code) + f64::from(self.offset)) * self.scale).trunc() as i32
    }
}

/// The content of a calibration file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Calibration {
    /// Version of the calibration file: 1 or 2.
    pub version: u16,
    /// Time of the calibration in seconds of Unix time.
    pub time: i64,
    /// The calibrations of the channels, in file order.
    pub channels: Vec<ChannelCalibration>,
}

impl Calibration {
    /// Reads a calibration file.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a calibration file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RldError> {
        let refuse = |why: String| RldError::NotCalibration { why };
        let of = |names: &[&'static str], offsets: &[I32Le], scales: &[F64Le]| {
            let numbers = names.iter().zip(offsets).zip(scales);
            let channel = |((channel, offset), scale): ((&&'static str, &I32Le), &F64Le)| {
                ChannelCalibration { channel, offset: offset.get(), scale: scale.get() }
            };
            numbers.map(channel).collect()
        };
        if bytes.starts_with(&CALIBRATION_MAGIC) {
            let file = CalibrationV2::ref_from_bytes(bytes)
                .map_err(|_| refuse(format!("it has {} bytes, but version 2 has 124 bytes", bytes.len())))?;
            if (file.file_version.get(), file.header_length.get()) != (2, 16) {
                let (version, header) = (file.file_version.get(), file.header_length.get());
                return Err(refuse(format!(
                    "it has version {version} and a header of {header} bytes, but version 2 with 16 bytes \
                     is expected"
                )));
            }
            let time = i64::try_from(file.time.get())
                .map_err(|_| refuse("its time does not fit into 64 bits".to_owned()))?;
            let channels = of(&POSITIONS, &file.offset, &file.scale);
            return Ok(Self { version: 2, time, channels });
        }
        let file = CalibrationV1::ref_from_bytes(bytes).map_err(|_| {
            let len = bytes.len();
            refuse(format!("it has {len} bytes and no magic number %RLC, but version 1 has 104 bytes"))
        })?;
        Ok(Self { version: 1, time: file.time.get(), channels: of(&POSITIONS_V1, &file.offset, &file.scale) })
    }

    /// Returns the calibration of the channel with this name.
    pub fn channel(&self, name: &str) -> Option<&ChannelCalibration> {
        self.channels.iter().find(|channel| channel.channel == name)
    }
}
