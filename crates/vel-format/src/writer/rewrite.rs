//! A log read and written again: every part is decoded by its declaration and encoded anew, and the bytes are
//! the same. Decision 4 of docs/formats/vel.md.

use std::io::{Cursor, Write};

use zerocopy::IntoBytes;

use super::message::to_bytes;
use crate::error::VelError;
use crate::message::{Kind, Message};
use crate::reader::VelReader;
use crate::wire::{FileIndex, GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodyneRawData};

/// Writes `log` again: its conventions, markers, versions, unused bits, unknown messages, index, damaged and
/// trailing bytes are kept.
///
/// # Errors
/// Where the output refuses.
#[expect(clippy::missing_panics_doc, reason = "offsets are within the file")]
pub fn rewrite(log: &VelReader, mut out: impl Write) -> Result<(), VelError> {
    let data: &[u8] = &log.bytes;
    let at = |at: u64| usize::try_from(at).expect("within the file");
    out.write_all(log.header().as_bytes())?;
    let index = &data[size_of_val(log.header())..at(log.walk.start.index_end)];
    out.write_all(&again::<FileIndex>(index))?;
    let mut parts = log.parts.iter().peekable();
    for message in log.messages() {
        while let Some(part) = parts.next_if(|part| part.range.start < message.offset) {
            out.write_all(&data[at(part.range.start)..at(part.range.end)])?;
        }
        out.write_all(message.header.as_bytes())?;
        out.write_all(&payload(&message))?;
    }
    for part in parts {
        out.write_all(&data[at(part.range.start)..at(part.range.end)])?;
    }
    out.flush()?;
    Ok(())
}

/// The data of a message through its declaration.
fn payload(message: &Message<'_>) -> Vec<u8> {
    match message.kind() {
        Some(Kind::Obd) => again_fixed::<ObdData>(message.data),
        Some(Kind::Gps) => again_fixed::<GpsData>(message.data),
        Some(Kind::Pose) => again_fixed::<RobotPose>(message.data),
        Some(Kind::Image) => again::<ImageData>(message.data),
        Some(Kind::Velodyne) => again::<VelodyneRawData>(message.data),
        Some(Kind::Laser) => again::<LaserRange>(message.data),
        None => message.data.to_vec(),
    }
}

/// Decodes and encodes; what is behind the content, or has none that can be read, stays as it is.
fn again<T>(data: &[u8]) -> Vec<u8>
where
    T: for<'a> binrw::BinRead<Args<'a> = (u64,)> + for<'a> binrw::BinWrite<Args<'a> = ()>,
    T: binrw::meta::ReadEndian + binrw::meta::WriteEndian,
{
    with_rest(
        T::read_args(&mut Cursor::new(data), (data.len() as u64,)).ok().map(|value| to_bytes(&value)),
        data,
    )
}

fn again_fixed<T>(data: &[u8]) -> Vec<u8>
where
    T: for<'a> binrw::BinRead<Args<'a> = ()> + for<'a> binrw::BinWrite<Args<'a> = ()>,
    T: binrw::meta::ReadEndian + binrw::meta::WriteEndian,
{
    with_rest(T::read(&mut Cursor::new(data)).ok().map(|value| to_bytes(&value)), data)
}

fn with_rest(bytes: Option<Vec<u8>>, data: &[u8]) -> Vec<u8> {
    match bytes {
        Some(mut bytes) => {
            bytes.extend_from_slice(&data[bytes.len()..]);
            bytes
        }
        None => data.to_vec(),
    }
}
