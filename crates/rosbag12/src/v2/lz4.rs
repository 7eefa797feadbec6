//! LZ4 frames as chunks hold them: any legal frame, several in a row, and of a cut or damaged one
//! what its blocks give back. Blocks are the work of `lz4_flex`.

use rovelog_core::wire::{U16Le, U32Le, U64Le};
use zerocopy::FromBytes;

use super::buffer::{Buffer, Ending};

/// How a frame starts.
pub(super) const MAGIC: u32 = 0x184d_2204;

/// How a frame starts that readers skip; the last four bits are free.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Bytes before the place that a match may reach back to.
const WINDOW: usize = 64 << 10;

/// The bit of the length of a block that says that it is stored as it is.
const STORED: u32 = 1 << 31;

/// The flags of a frame.
struct Flags(u8);

impl Flags {
    const fn has(&self, bit: u8) -> bool {
        self.0 & (1 << bit) != 0
    }

    const fn are_legal(&self) -> bool {
        self.0 >> 6 == 1 && !self.has(1)
    }

    const fn are_blocks_linked(&self) -> bool {
        !self.has(5)
    }

    const fn has_block_sums(&self) -> bool {
        self.has(4)
    }

    const fn has_size(&self) -> bool {
        self.has(3)
    }

    const fn has_sum(&self) -> bool {
        self.has(2)
    }

    const fn has_dictionary(&self) -> bool {
        self.has(0)
    }
}

/// Takes a number from the start of `rest`.
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

/// Returns whether a frame starts at the start of `data`.
pub(super) fn starts(data: &[u8]) -> bool {
    U32Le::first(data).is_some_and(|magic| magic.get() == MAGIC || magic.get() & !0xf == SKIPPABLE)
}

/// Unpacks the frames at the start of `data`, up to `limit` bytes: how they end, and how many bytes
/// they have.
pub(super) fn unpack(data: &[u8], limit: usize, buffer: &mut Buffer) -> (Ending, usize) {
    let mut rest = data;
    let mut ending = Ending::Whole;
    if !starts(data) {
        let is_start = data.len() < size_of::<U32Le>()
            && zerocopy::IntoBytes::as_bytes(&U32Le::new(MAGIC)).starts_with(data);
        return (if is_start { Ending::Cut } else { Ending::NotPacked }, 0);
    }
    while starts(rest) {
        match frame(&mut rest, limit, buffer) {
            Ending::Whole => {}
            Ending::Checksum => ending = Ending::Checksum,
            failed => return (failed, data.len() - rest.len()),
        }
    }
    (ending, data.len() - rest.len())
}

/// Unpacks one frame. `rest` is then behind it, or behind the last block that was whole.
fn frame(rest: &mut &[u8], limit: usize, buffer: &mut Buffer) -> Ending {
    let mut done = *rest;
    let ending = try_frame(rest, &mut done, limit, buffer).unwrap_or(Ending::Cut);
    if !matches!(ending, Ending::Whole | Ending::Checksum) {
        *rest = done;
    }
    ending
}

/// `None` where the data end inside of it. `done` is set behind each whole block.
fn try_frame<'a>(
    rest: &mut &'a [u8],
    done: &mut &'a [u8],
    limit: usize,
    buffer: &mut Buffer,
) -> Option<Ending> {
    let magic = take::<U32Le>(rest)?.get();
    if magic != MAGIC {
        let len = take::<U32Le>(rest)?.get() as usize;
        *rest = rest.get(len..)?;
        return Some(Ending::Whole);
    }
    let descriptor = *rest;
    let flags = Flags(*take::<u8>(rest)?);
    let most = match take::<u8>(rest)? >> 4 & 7 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Some(Ending::Broken),
    };
    if !flags.are_legal() || flags.has_dictionary() {
        return Some(Ending::Broken);
    }
    if flags.has_size() {
        take::<U64Le>(rest)?;
    }
    let descriptor = &descriptor[..descriptor.len() - rest.len()];
    let mut ending = Ending::Whole;
    if u32::from(*take::<u8>(rest)?) != sum_of(descriptor) >> 8 & 0xff {
        ending = Ending::Checksum;
    }
    let start = buffer.len;
    loop {
        let len = take::<U32Le>(rest)?.get();
        if len == 0 {
            break;
        }
        let size = (len & !STORED) as usize;
        if size > most {
            return Some(Ending::Broken);
        }
        let whole = rest.get(..size);
        let block = whole.unwrap_or(rest);
        *rest = &rest[block.len()..];
        let from = if flags.are_blocks_linked() { start } else { buffer.len };
        let unpacked = if len & STORED != 0 {
            buffer.extend(block, limit)
        } else if whole.is_some() {
            packed_block(block, from, most, limit, buffer)
        } else {
            sequences(block, from, most, limit, buffer);
            Ok(())
        };
        whole?;
        if let Err(failed) = unpacked {
            return Some(failed);
        }
        if flags.has_block_sums() && take::<U32Le>(rest)?.get() != sum_of(block) {
            ending = Ending::Checksum;
        }
        *done = *rest;
    }
    if flags.has_sum() && take::<U32Le>(rest)?.get() != sum_of(&buffer.bytes[start..buffer.len]) {
        ending = Ending::Checksum;
    }
    Some(ending)
}

/// Unpacks a whole block, or what it gives back. Matches reach back to `from` at most.
fn packed_block(
    block: &[u8],
    from: usize,
    most: usize,
    limit: usize,
    buffer: &mut Buffer,
) -> Result<(), Ending> {
    let (before, spare) = buffer.spare(most, limit);
    let window = before.get(from..).unwrap_or_default();
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
    Err(if buffer.len >= limit { Ending::Limit } else { Ending::Broken })
}

/// Unpacks the sequences of a block one by one, as far as they go: the data may be cut or damaged.
fn sequences(mut input: &[u8], from: usize, most: usize, limit: usize, buffer: &mut Buffer) {
    let end = limit.min(buffer.len + most);
    // A length of 15 goes on in the bytes that follow.
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
        if back == 0 || back > buffer.len - from.min(buffer.len) {
            return;
        }
        let len = (len + 4).min(end - buffer.len);
        buffer.spare(len, end);
        for at in buffer.len..buffer.len + len {
            buffer.bytes[at] = buffer.bytes[at - back];
        }
        buffer.len += len;
    }
}
