//! The raw bytes that PX4 exchanged with its GPS receivers, from the topic `gps_dump`.

use rovelog_core::{LogReader as _, Select};

use super::{instances, integer};
use crate::reader::UlogReader;

/// Bytes that PX4 sent to a GPS receiver or received from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpsDump {
    /// Number of the receiver. The main receiver is 0.
    pub instance: u8,
    /// True if PX4 sent the bytes to the receiver.
    pub to_device: bool,
    /// The bytes that were sent or received.
    pub bytes: Vec<u8>,
}

/// Flag in the field `len` of the topic `gps_dump`. It is set if PX4 sent the bytes to the
/// receiver.
const TO_DEVICE: u8 = 0x80;

/// Returns the bytes sent to and received from GPS receivers, in time order.
///
/// The result is empty if the log does not have the topic `gps_dump`, or if the topic does not have
/// the fields that PX4 uses.
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
    fn directions_are_distinguished() -> Result<(), UlogError> {
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
