//! Writing of new logs and exact copies. The header is validated and written first. The blocks
//! follow.
//!
//! The counts in the header must match the blocks. A writer whose output can seek corrects the
//! counts at the end. Other writers need the right counts from the start.

use std::io::{Seek, SeekFrom, Write};

use rovelog_core::internal::output::FailFast;
use rovelog_core::internal::wire::{I32Le, I64Le, U16Le, U32Le, U64Le};
use zerocopy::IntoBytes;

use crate::clock::is_plausible;
use crate::error::RldError;
use crate::layout::Layout;
use crate::unit::Unit;
use crate::wire::{
    BLOCK_TIMES_LEN, BlockTimes, COMMENT_MAX, ChannelRecord, Header, LeadIn, NO_LINK, Version,
};

/// Description of a channel of a new log.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSpec {
    /// Name of the channel, with at most 16 bytes.
    pub name: String,
    /// Unit of the channel's physical values. [`Unit::Binary`] and [`Unit::RangeValid`] make the
    /// channel binary.
    pub unit: Unit,
    /// Exponent of ten of the channel: a physical value is the raw value times 10^scale.
    pub scale: i32,
    /// Size of a raw value in bytes: 1, 2, 4 or 8. Ignored for binary channels.
    pub size: u16,
    /// Name of the binary channel that states whether the value of this channel is within its
    /// measuring range.
    pub valid: Option<String>,
}

impl ChannelSpec {
    /// Creates a binary channel.
    pub fn bit(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: Unit::Binary, scale: 0, size: 0, valid: None }
    }

    /// Creates a binary channel that states whether values of other channels are within their
    /// measuring range.
    pub fn range(name: impl Into<String>) -> Self {
        Self { unit: Unit::RangeValid, ..Self::bit(name) }
    }

    /// Creates an analog channel with 32-bit values.
    pub fn analog(name: impl Into<String>, unit: Unit, scale: i32) -> Self {
        Self { name: name.into(), unit, scale, size: 4, valid: None }
    }

    /// Sets the name of the binary channel that states whether the value of this channel is within
    /// its measuring range.
    #[must_use]
    pub fn valid_if(mut self, name: impl Into<String>) -> Self {
        self.valid = Some(name.into());
        self
    }
}

/// Description of a new log, from which its header is created.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSpec {
    /// The file version, 1 to 4.
    pub version: u16,
    /// Nominal number of rows per second.
    pub rate: u16,
    /// Number of rows in a full block.
    pub block_rows: u32,
    /// MAC address of the logger.
    pub mac: [u8; 6],
    /// Start of the measurement in nanoseconds of Unix time.
    pub start: i64,
    /// Comment of the log. It must not contain NUL.
    pub comment: String,
    /// Channels of the log. Binary channels must come before analog channels.
    pub channels: Vec<ChannelSpec>,
}

impl LogSpec {
    /// Creates a description of a log of version 4 without channels. Each block lasts one second.
    pub fn new(rate: u16) -> Self {
        Self {
            version: 4,
            rate,
            block_rows: rate.into(),
            mac: [0; 6],
            start: 0,
            comment: String::new(),
            channels: Vec::new(),
        }
    }

    /// Creates the header of a log without rows.
    ///
    /// # Errors
    /// Returns an error if the format or the file version cannot represent the specification.
    pub fn header(&self) -> Result<Header, RldError> {
        let version = Version::of(self.version)
            .ok_or_else(|| RldError::not_writable(format!("file version {} is unknown", self.version)))?;
        if self.rate == 0 || self.block_rows == 0 {
            return Err(RldError::not_writable("its sample rate or block size is 0"));
        }
        // A NUL in the comment is refused, because readers end the comment at the first NUL.
        if self.comment.contains('\0') {
            return Err(RldError::not_writable("the comment contains a NUL"));
        }
        let mut comment = self.comment.clone().into_bytes();
        if version.comment_has_nul {
            comment.push(0);
        }
        if version.comment_is_padded {
            comment.resize(comment.len().next_multiple_of(4), 0);
        }
        let len = comment.len() as u64;
        if len > u64::from(COMMENT_MAX) {
            return Err(RldError::not_writable(format!("the comment has {len} bytes, which is too long")));
        }
        // The channel table must have all binary channels before the analog ones.
        let binary = self.channels.iter().take_while(|channel| channel.unit.is_binary()).count();
        let channels: Result<Vec<_>, _> = self
            .channels
            .iter()
            .enumerate()
            .map(|(i, channel)| self.record(i, channel, i < binary, version))
            .collect();
        let count = |n: usize| {
            u16::try_from(n).map_err(|_| RldError::not_writable(format!("{n} channels are too many")))
        };
        let lead_in = LeadIn {
            magic: version.magic,
            file_version: U16Le::new(version.number),
            header_length: U16Le::new(0),
            data_block_size: U32Le::new(self.block_rows),
            data_block_count: U32Le::new(0),
            sample_count: U64Le::new(0),
            sample_rate: U16Le::new(self.rate),
            mac: self.mac,
            start_sec: I64Le::new(self.start.div_euclid(1_000_000_000)),
            start_nsec: I64Le::new(self.start.rem_euclid(1_000_000_000)),
            comment_length: U32Le::new(u32::try_from(comment.len()).unwrap_or(u32::MAX)),
            binary_count: U16Le::new(count(binary)?),
            analog_count: U16Le::new(count(self.channels.len() - binary)?),
        };
        // The length of the header is only known after the comment and the channels have been
        // created.
        let mut header = Header { lead_in, comment, channels: channels? };
        let length = u16::try_from(header.size()).map_err(|_| {
            RldError::not_writable(format!("the header has {} bytes, which is too long", header.size()))
        })?;
        header.lead_in.header_length = U16Le::new(length);
        Ok(header)
    }

    fn record(
        &self,
        index: usize,
        channel: &ChannelSpec,
        is_binary: bool,
        version: &Version,
    ) -> Result<ChannelRecord, RldError> {
        let refuse = |why: String| Err(RldError::not_writable(format!("channel {:?}: {why}", channel.name)));
        if channel.unit.is_binary() && !is_binary {
            return refuse("a binary channel must come before all analog channels".to_owned());
        }
        let mut name = [0; 16];
        let bytes = channel.name.as_bytes();
        if bytes.is_empty() || bytes.len() > name.len() || bytes.contains(&0) {
            return refuse("its name must have 1 to 16 bytes, none of them NUL".to_owned());
        }
        name[..bytes.len()].copy_from_slice(bytes);
        let number = version.number;
        let unit = match channel.unit {
            Unit::Undefined if !version.unit_zero_is_unitless => 0,
            Unit::Unitless if !version.unit_zero_is_unitless => {
                return refuse(format!("file version {number} has no code for values without a unit"));
            }
            unit => unit.code(),
        };
        if unit > version.last_unit && unit != u32::MAX {
            return refuse(format!("file version {number} does not support the unit {}", channel.unit));
        }
        if !is_binary && !matches!(channel.size, 1 | 2 | 4 | 8) {
            return refuse(format!("its values have {} bytes", channel.size));
        }
        let valid_link = match &channel.valid {
            None => NO_LINK,
            Some(valid) => {
                let target = self.channels.iter().position(|other| other.name == *valid);
                let Some(target) =
                    target.filter(|at| self.channels[*at].unit == Unit::RangeValid && *at < index)
                else {
                    return refuse(format!("there is no range-valid channel {valid:?} before it"));
                };
                u16::try_from(target).unwrap_or(NO_LINK - 1) + version.link_base
            }
        };
        Ok(ChannelRecord {
            unit: U32Le::new(unit),
            scale: I32Le::new(if is_binary { 0 } else { channel.scale }),
            data_size: U16Le::new(if is_binary { 0 } else { channel.size }),
            valid_link: U16Le::new(valid_link),
            name,
        })
    }
}

/// Encodes a row and appends it to `out`. A row consists of words of bits, followed by the values
/// of the analog channels.
///
/// # Errors
/// Returns an error if the number of words or values differs from the layout, or if a value does
/// not fit into its size.
pub fn encode_row(layout: &Layout, words: &[u32], values: &[i64], out: &mut Vec<u8>) -> Result<(), RldError> {
    if words.len() != layout.words || values.len() != layout.slots.len() {
        let (w, v) = (layout.words, layout.slots.len());
        return Err(RldError::not_writable(format!("a row needs {w} words and {v} values")));
    }
    for word in words {
        out.extend(word.to_le_bytes());
    }
    for (slot, value) in layout.slots.iter().zip(values) {
        // Shifting the value to the left and back drops the upper bits. If this changes the value,
        // it does not fit.
        let size = slot.size;
        let unused = 64 - 8 * size;
        if value << unused >> unused != *value {
            return Err(RldError::not_writable(format!("value {value} does not fit into {size} bytes")));
        }
        out.extend(&value.to_le_bytes()[..size]);
    }
    Ok(())
}

/// Writes a file block by block.
#[derive(Debug)]
pub struct RldWriter<W> {
    out: FailFast<W>,
    header: Header,
    layout: Layout,
    rows: u64,
    blocks: u64,
    /// True if a block was written that is not full. No block can follow such a block.
    closed: bool,
}

/// Number of rows, blocks and bytes that have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Written {
    pub rows: u64,
    pub blocks: u64,
    pub bytes: u64,
}

impl<W: Write> RldWriter<W> {
    /// Creates a writer and writes the header unchanged. The counts in the header must match the
    /// blocks that follow, unless [`finish_in_place`](Self::finish_in_place) corrects the counts at
    /// the end.
    ///
    /// # Errors
    /// Returns an error if the header allows no rows, or if writing fails.
    pub fn new(out: W, header: Header) -> Result<Self, RldError> {
        let layout = Layout::of(&header, header.size(), false).map_err(RldError::not_writable)?;
        if layout.row == 0 || layout.block_rows == 0 {
            return Err(RldError::not_writable("the header states rows of 0 bytes or blocks of 0 rows"));
        }
        let mut out = FailFast::new(out);
        out.write_all(&header.to_bytes())?;
        Ok(Self { out, header, layout, rows: 0, blocks: 0, closed: false })
    }

    /// Returns the layout of the rows to write.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Writes a block of complete rows. Only the last block can have fewer rows than the header
    /// states.
    ///
    /// # Errors
    /// Returns an error in these cases:
    ///
    /// - The block times are invalid (rule D26 of docs/formats/rld.md).
    /// - `rows` does not consist of complete rows, or has more rows than a full block.
    /// - The previous block is not full.
    /// - Writing fails, or has failed before.
    pub fn block(&mut self, block_times: &BlockTimes, rows: &[u8]) -> Result<(), RldError> {
        if !is_plausible(block_times) {
            return Err(RldError::not_writable(
                "block times are zero, beyond 2^33 s, or have nanoseconds of 1 s or more",
            ));
        }
        self.copy_block(block_times, rows)
    }

    /// Writes a block of an existing log. Unlike in [`block`](Self::block), the block times may be
    /// invalid.
    pub(crate) fn copy_block(&mut self, block_times: &BlockTimes, rows: &[u8]) -> Result<(), RldError> {
        let count = (rows.len() / self.layout.row) as u64;
        if !rows.len().is_multiple_of(self.layout.row) || count == 0 || count > self.layout.block_rows {
            let (len, most) = (rows.len(), self.layout.block_rows);
            return Err(RldError::not_writable(format!("{len} bytes are not a block of 1 to {most} rows")));
        }
        self.start_block(block_times, count)?;
        Ok(self.out.write_all(rows)?)
    }

    /// Writes the times of a block that will have `rows` rows. The rows must then be written by
    /// [`rows`](Self::rows).
    pub(crate) fn start_block(&mut self, block_times: &BlockTimes, rows: u64) -> Result<(), RldError> {
        if self.closed {
            return Err(RldError::not_writable("only the last block can have fewer rows than a full block"));
        }
        self.closed = rows < self.layout.block_rows;
        self.rows += rows;
        self.blocks += 1;
        Ok(self.out.write_all(block_times.as_bytes())?)
    }

    /// Writes rows of the current block.
    pub(crate) fn rows(&mut self, rows: &[u8]) -> Result<(), RldError> {
        Ok(self.out.write_all(rows)?)
    }

    /// Returns the number of bytes of the file that have been written so far.
    pub fn bytes(&self) -> u64 {
        self.header.size() + self.blocks * BLOCK_TIMES_LEN + self.rows * self.layout.row as u64
    }

    /// Finishes a log whose header had the right counts from the start.
    ///
    /// # Errors
    /// Returns an error if the counts in the header are wrong, or if writing fails.
    pub fn finish(mut self) -> Result<(W, Written), RldError> {
        let lead_in = &self.header.lead_in;
        let (rows, blocks) = (lead_in.sample_count.get(), u64::from(lead_in.data_block_count.get()));
        if (rows, blocks) != (self.rows, self.blocks) {
            let why = format!(
                "the header states {rows} rows in {blocks} blocks, but {} rows in {} blocks were written",
                self.rows, self.blocks
            );
            return Err(RldError::not_writable(why));
        }
        self.out.flush()?;
        let written = Written { rows, blocks, bytes: self.bytes() };
        Ok((self.out.into_inner()?, written))
    }
}

impl<W: Write + Seek> RldWriter<W> {
    /// Finishes a log and corrects the counts in the header, as the logger does.
    ///
    /// # Errors
    /// Returns an error if there are 2^32 blocks or more, or if writing fails.
    pub fn finish_in_place(mut self) -> Result<(W, Written), RldError> {
        set_counts(&mut self.header, self.rows)?;
        let end = self.out.stream_position()?;
        let start = end.saturating_sub(self.bytes());
        self.out.seek(SeekFrom::Start(start))?;
        self.out.write_all(self.header.lead_in.as_bytes())?;
        self.out.seek(SeekFrom::Start(end))?;
        self.finish()
    }
}

/// Sets the number of rows and the number of blocks in a header.
///
/// # Errors
/// Returns an error if there are 2^32 blocks or more.
pub fn set_counts(header: &mut Header, rows: u64) -> Result<(), RldError> {
    let size = u64::from(header.lead_in.data_block_size.get()).max(1);
    let blocks = u32::try_from(rows.div_ceil(size))
        .map_err(|_| RldError::not_writable(format!("{rows} rows need too many blocks of {size} rows")))?;
    header.lead_in.sample_count = U64Le::new(rows);
    header.lead_in.data_block_count = U32Le::new(blocks);
    Ok(())
}

/// Writes a split recording. If a block would make the current file too large, a new file is
/// started before this block, as in the logger. Every file has a complete header with its own
/// counts.
#[derive(Debug)]
pub struct SplitWriter<W, F> {
    create: F,
    header: Header,
    limit: u64,
    current: Option<RldWriter<W>>,
    parts: Vec<Written>,
}

impl<W: Write + Seek, F: FnMut(usize) -> std::io::Result<W>> SplitWriter<W, F> {
    /// Creates a writer of files with at most `limit` bytes each. A file with a single block may be
    /// larger. `create` opens the file for a part number.
    pub fn new(header: Header, limit: u64, create: F) -> Self {
        Self { create, header, limit, current: None, parts: Vec::new() }
    }

    /// Writes a block, to a new file if the current file has no room for it.
    ///
    /// # Errors
    /// Returns the errors of [`RldWriter::block`]. Returns an error if a file cannot be created.
    pub fn block(&mut self, block_times: &BlockTimes, rows: &[u8]) -> Result<(), RldError> {
        let size = BLOCK_TIMES_LEN + rows.len() as u64;
        if let Some(full) = self.current.take_if(|part| part.blocks > 0 && part.bytes() + size > self.limit) {
            self.parts.push(full.finish_in_place()?.1);
        }
        if self.current.is_none() {
            let out = (self.create)(self.parts.len())?;
            self.current = Some(RldWriter::new(out, self.header.clone())?);
        }
        match &mut self.current {
            Some(part) => part.block(block_times, rows),
            None => Ok(()),
        }
    }

    /// Finishes the last file, and returns the number of rows, blocks and bytes of each file.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self) -> Result<Vec<Written>, RldError> {
        if let Some(part) = self.current.take() {
            self.parts.push(part.finish_in_place()?.1);
        }
        Ok(self.parts)
    }
}
