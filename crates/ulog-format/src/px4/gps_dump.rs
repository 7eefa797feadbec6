//! What went between PX4 and its GPS receivers, byte for byte, where the log has it (`gps_dump`).

use rovelog_core::{LogReader as _, Select};

use super::{instances, integer};
use crate::reader::UlogReader;

/// A piece of the talk with a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpsDump {
    /// The receiver: 0 is the main one.
    pub instance: u8,
    /// Whether PX4 sent it.
    pub to_device: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The bit of `len` that says that PX4 sent the bytes.
const TO_DEVICE: u8 = 0x80;

/// Returns all pieces in time order; none where the log has no such topic, or not of the form that
/// PX4 gives it.
pub fn gps_dump(reader: &UlogReader) -> impl Iterator<Item = GpsDump> + '_ {
    let topics = instances(reader, "gps_dump");
    let none = topics.is_empty();
    let select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
    reader.records(&select).take_while(move |_| !none).filter_map(|record| {
        let row = reader.row(&record.ok()?).ok()?;
        let place = |name| row.layout().place(name);
        let len = row.read::<u8>(place("len")?)?;
        let data = row.read_array::<u8>(place("data")?)?;
        Some(GpsDump {
            instance: integer(&row, "instance").and_then(|id| u8::try_from(id).ok()).unwrap_or(0),
            to_device: len & TO_DEVICE != 0,
            bytes: data.take(usize::from(len & !TO_DEVICE)).collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use rovelog_core::ReadOptions;

    use super::*;
    use crate::{FormatBuilder, UlogError, UlogWriter};

    #[test]
    fn both_directions_are_told_apart() -> Result<(), UlogError> {
        let mut log = UlogWriter::new(Vec::new(), 0)?;
        let format = FormatBuilder::new("gps_dump").field::<u64>("timestamp").field::<u8>("instance");
        log.define(&format.field::<u8>("len").array::<u8>("data", 4))?;
        let topic = log.subscribe("gps_dump", 0)?;
        for (time, len) in [(1_u64, 2_u8), (2, 3 | TO_DEVICE), (3, 127)] {
            let head = [&time.to_le_bytes()[..], &[1, len]].concat();
            log.write_row_bytes(topic, &[&head[..], b"abcd"].concat())?;
        }
        let log = UlogReader::new(log.finish()?.into(), &ReadOptions::default())?;
        let pieces: Vec<_> =
            gps_dump(&log).map(|piece| (piece.instance, piece.to_device, piece.bytes)).collect();
        let want = [(1, false, b"ab".to_vec()), (1, true, b"abc".to_vec()), (1, false, b"abcd".to_vec())];
        assert_eq!(pieces, want);
        Ok(())
    }
}
