//! Decompresses LZ4 frames. All legal frames are accepted, and several frames may follow each
//! other.
//!
//! Blocks are decompressed by the crate `lz4_flex`. The frame decoder of the crate is not used,
//! because it returns nothing for a truncated or damaged block. Here, such a block is decoded
//! sequence by sequence up to the damage.

use rovelog_core::internal::wire::{U16Le, U32Le, U64Le};
use zerocopy::FromBytes;

use super::buffer::{Buffer, DataStatus};

/// Magic number at the start of an LZ4 frame.
pub(super) const MAGIC: u32 = 0x184d_2204;

/// Magic number at the start of a skippable LZ4 frame. The lowest four bits may have any value.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Maximum distance in bytes between a match and the earlier output that the match repeats.
const WINDOW: usize = 64 << 10;

/// Flag in the length field of a block. Set if the block is stored uncompressed.
const STORED: u32 = 1 << 31;

/// Flags of a frame: the version in the two highest bits, and one bit for each option.
const VERSION_SHIFT: u8 = 6;
const BLOCKS_INDEPENDENT: u8 = 1 << 5;
const BLOCK_SUMS: u8 = 1 << 4;
const SIZE: u8 = 1 << 3;
const SUM: u8 = 1 << 2;
const RESERVED: u8 = 1 << 1;
const DICTIONARY: u8 = 1;

/// Reads a number from the start of `rest`, and moves `rest` after the number.
fn take<'a, T>(rest: &mut &'a [u8]) -> Option<&'a T>
where
    T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned,
{
    let (number, behind) = T::ref_from_prefix(rest).ok()?;
    *rest = behind;
    Some(number)
}

fn sum_of(bytes: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, bytes)
}

/// Returns whether `data` starts with an LZ4 frame.
pub(super) fn starts(data: &[u8]) -> bool {
    U32Le::first(data).is_some_and(|magic| magic.get() == MAGIC || magic.get() & !0xf == SKIPPABLE)
}

/// Decompresses the frames at the start of `data`, up to `limit` bytes of output. Returns the
/// status and the number of compressed bytes that were consumed.
pub(super) fn decompress(data: &[u8], limit: usize, buffer: &mut Buffer) -> (DataStatus, usize) {
    let mut rest = data;
    let mut status = DataStatus::Intact;
    if !starts(data) {
        let is_start = data.len() < size_of::<U32Le>()
            && zerocopy::IntoBytes::as_bytes(&U32Le::new(MAGIC)).starts_with(data);
        return (if is_start { DataStatus::Cut } else { DataStatus::NotPacked }, 0);
    }
    while starts(rest) {
        match frame(&mut rest, limit, buffer) {
            DataStatus::Intact => {}
            DataStatus::Checksum => status = DataStatus::Checksum,
            failed => return (failed, data.len() - rest.len()),
        }
    }
    (status, data.len() - rest.len())
}

/// Decompresses one frame. Afterwards, `rest` starts after the frame, or, if the frame is truncated
/// or damaged, after the last intact block of the frame.
fn frame(rest: &mut &[u8], limit: usize, buffer: &mut Buffer) -> DataStatus {
    let mut done = *rest;
    let status = try_frame(rest, &mut done, limit, buffer).unwrap_or(DataStatus::Cut);
    if !matches!(status, DataStatus::Intact | DataStatus::Checksum) {
        *rest = done;
    }
    status
}

/// Decompresses one frame. Returns `None` if the data end inside the frame. After each intact
/// block, `done` is moved to the end of the block.
fn try_frame<'a>(
    rest: &mut &'a [u8],
    done: &mut &'a [u8],
    limit: usize,
    buffer: &mut Buffer,
) -> Option<DataStatus> {
    let magic = take::<U32Le>(rest)?.get();
    if magic != MAGIC {
        let len = take::<U32Le>(rest)?.get() as usize;
        *rest = rest.get(len..)?;
        return Some(DataStatus::Intact);
    }
    let descriptor = *rest;
    let flags = *take::<u8>(rest)?;
    // The block size in the frame header limits the output of each block.
    let most = match take::<u8>(rest)? >> 4 & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Some(DataStatus::Broken),
    };
    // A block that was compressed with a dictionary cannot be decompressed without it. No recorder
    // uses dictionaries.
    if flags >> VERSION_SHIFT != 1 || flags & (RESERVED | DICTIONARY) != 0 {
        return Some(DataStatus::Broken);
    }
    if flags & SIZE != 0 {
        take::<U64Le>(rest)?;
    }
    let descriptor = &descriptor[..descriptor.len() - rest.len()];
    let mut status = DataStatus::Intact;
    if u32::from(*take::<u8>(rest)?) != sum_of(descriptor) >> 8 & 0xff {
        status = DataStatus::Checksum;
    }
    let start = buffer.len;
    loop {
        let len = take::<U32Le>(rest)?.get();
        if len == 0 {
            break;
        }
        let size = (len & !STORED) as usize;
        if size > most {
            return Some(DataStatus::Broken);
        }
        let whole = rest.get(..size);
        let block = whole.unwrap_or(rest);
        *rest = &rest[block.len()..];
        // If blocks are linked, matches may refer to the output of earlier blocks in the frame.
        let from = if flags & BLOCKS_INDEPENDENT == 0 { start } else { buffer.len };
        let unpacked = if len & STORED != 0 {
            buffer.extend(block, limit)
        } else if whole.is_some() {
            whole_block(block, from, most, limit, buffer)
        } else {
            sequences(block, from, most, limit, buffer);
            Ok(())
        };
        whole?;
        if let Err(failed) = unpacked {
            return Some(failed);
        }
        if flags & BLOCK_SUMS != 0 && take::<U32Le>(rest)?.get() != sum_of(block) {
            status = DataStatus::Checksum;
        }
        *done = *rest;
    }
    if flags & SUM != 0 && take::<U32Le>(rest)?.get() != sum_of(&buffer.bytes[start..buffer.len]) {
        status = DataStatus::Checksum;
    }
    Some(status)
}

/// Decompresses a complete block. If the block is damaged, decompresses as much of it as possible.
/// Matches may refer to the output from offset `from` on.
fn whole_block(
    block: &[u8],
    from: usize,
    most: usize,
    limit: usize,
    buffer: &mut Buffer,
) -> Result<(), DataStatus> {
    let (before, spare) = buffer.spare(most, limit);
    let window = before.get(from..).unwrap_or_default();
    // A match refers to output at most this many bytes before it.
    let window = &window[window.len().saturating_sub(WINDOW)..];
    let unpacked = if window.is_empty() {
        lz4_flex::block::decompress_into(block, spare)
    } else {
        lz4_flex::block::decompress_into_with_dict(block, spare, window)
    };
    if let Ok(len) = unpacked {
        buffer.len += len;
        return Ok(());
    }
    sequences(block, from, most, limit, buffer);
    Err(if buffer.len >= limit { DataStatus::Limit } else { DataStatus::Broken })
}

/// Decompresses the sequences of a block one by one, up to the first truncated or damaged sequence.
///
/// A sequence is a token with two lengths, literal bytes, and a match that repeats earlier output.
/// Example: the token 0x31, the literals `abc`, and the offset 3 produce `abc` and then 1 + 4 bytes
/// from 3 bytes back, so `abcabcab`.
fn sequences(mut input: &[u8], from: usize, most: usize, limit: usize, buffer: &mut Buffer) {
    // A damaged block must not expand beyond the block size of the frame.
    let end = limit.min(buffer.len + most);
    // If a length in the token is 15, the next bytes are added to the length.
    let length = |input: &mut &[u8], start: u8| {
        let mut len = usize::from(start);
        let mut more = start == 15;
        while more {
            let byte = *take::<u8>(input)?;
            len += usize::from(byte);
            more = byte == u8::MAX;
        }
        Some(len)
    };
    while let Some(token) = take::<u8>(&mut input).copied() {
        let Some(literals) = length(&mut input, token >> 4) else { return };
        let at_hand = input.len().min(literals);
        if buffer.extend(&input[..at_hand], end).is_err() || at_hand < literals {
            return;
        }
        input = &input[literals..];
        let Some(back) = take::<U16Le>(&mut input) else { return };
        let back = usize::from(back.get());
        let Some(len) = length(&mut input, token & 15) else { return };
        // A match offset of 0, or one that refers to bytes before the start of the output, is
        // damaged.
        if back == 0 || back > buffer.len - from.min(buffer.len) {
            return;
        }
        // The shortest match has 4 bytes, so LZ4 stores the length minus 4.
        let len = (len + 4).min(end - buffer.len);
        buffer.spare(len, end);
        // Copy byte by byte, because a match may overlap its own output.
        for at in buffer.len..buffer.len + len {
            buffer.bytes[at] = buffer.bytes[at - back];
        }
        buffer.len += len;
    }
}
