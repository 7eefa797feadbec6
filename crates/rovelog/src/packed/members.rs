//! Decompression of gzip (RFC 1952), bzip2 and xz, member by member. It also determines how the
//! compressed data ends: with a matching checksum, without a checksum, truncated, or followed by
//! other bytes. Decoders for whole files do not distinguish the last three cases.
//!
//! For example, `cat a.gz b.gz` is a file with two members. The reader decompresses the first
//! member, compares its checksum, and starts the second member, because the magic number of gzip
//! follows. If zeros follow the second member, as on tapes, the result is `Followed` with the flag
//! `zeros`.

use std::io::{self, BufRead, ErrorKind, Read};

use lzma_rust2::{Action, Status, XzStream};
use rovelog_core::internal::packed::Ending;

/// A compression whose files consist of one or more members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The file consists of gzip members (RFC 1952). This module compares their checksums.
    Gzip,
    /// The file consists of bzip2 streams. Their decoder compares the checksums of the blocks.
    Bzip2,
    /// The file consists of xz streams. Their decoder compares the checksums of the blocks.
    Xz,
}

/// Decompresses an input that consists of one or more members. If the input is truncated, reading
/// ends without an error, and [`ending`](Self::ending) returns [`Ending::Cut`].
pub(super) struct Members<R> {
    /// Compression of the members.
    kind: Kind,
    /// The compressed input.
    input: R,
    /// Number of bytes that were consumed from the input.
    at: u64,
    /// True if at least one member has ended with a matching checksum.
    any_checked: bool,
    /// Current position in the members.
    state: State,
}

/// Position of the decoder within the members of the input.
enum State {
    /// The decoder is at the start of a member, or at the end of all members.
    Between,
    /// The decoder is inside a gzip member. The checksum covers the content that was decompressed
    /// so far.
    Gzip(Box<flate2::Decompress>, flate2::Crc),
    /// The decoder is inside a bzip2 stream.
    Bzip2(bzip2::Decompress),
    /// The decoder is inside an xz stream.
    Xz(Box<XzStream>),
    /// The decoder is at the stored checksum and length of a gzip member. The values are the
    /// checksum and the length of the decompressed content, which must be equal to the stored ones.
    Sum([u32; 2]),
    /// The decoder is at the end of the input.
    Ended(Ending),
}

impl<R: BufRead> Members<R> {
    /// Creates a reader of the decompressed content of `input`.
    pub(super) fn new(kind: Kind, input: R) -> Self {
        Self { kind, input, at: 0, any_checked: false, state: State::Between }
    }

    /// Returns how the compressed data ends. The result is valid after reading has returned 0
    /// bytes.
    pub(super) fn ending(&self) -> Ending {
        if let State::Ended(ending) = self.state { ending } else { Ending::Cut { at: self.at } }
    }

    /// Returns buffered bytes of the input. Returns an empty slice at the end of the input.
    fn fill(&mut self) -> io::Result<&[u8]> {
        while let Err(error) = self.input.fill_buf() {
            if error.kind() != ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.input.fill_buf()
    }

    /// Marks the first `bytes` bytes of the buffer as consumed.
    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.at += bytes as u64;
    }

    /// Appends bytes of the input to `out` until `out` has `len` bytes. Returns false if the input
    /// ends earlier.
    fn take(&mut self, out: &mut Vec<u8>, len: usize) -> io::Result<bool> {
        while out.len() < len {
            let missing = len - out.len();
            let bytes = self.fill()?;
            let bytes = &bytes[..bytes.len().min(missing)];
            if bytes.is_empty() {
                return Ok(false);
            }
            out.extend_from_slice(bytes);
            let used = bytes.len();
            self.consume(used);
        }
        Ok(true)
    }

    /// Starts to decompress the next member. If no member follows, the decompression ends.
    fn start_member(&mut self) -> io::Result<State> {
        let from = self.at;
        let mut head = Vec::new();
        let whole = self.take(&mut head, 4)?;
        if head.is_empty() && self.any_checked {
            return Ok(State::Ended(Ending::Checked));
        }
        let magic: &[u8] = match self.kind {
            Kind::Gzip => b"\x1f\x8b\x08",
            Kind::Bzip2 => b"BZh",
            Kind::Xz => b"\xfd7zX",
        };
        // If the first member does not start with the magic number, the decoder returns an error.
        // Bytes after a complete member may be anything.
        let len = head.len().min(magic.len());
        if self.any_checked && head[..len] != magic[..len] {
            return self.read_trailing(from, &head);
        }
        if !whole {
            return Ok(State::Ended(Ending::Cut { at: self.at }));
        }
        match self.kind {
            Kind::Gzip => match self.gzip_header(&mut head)? {
                None => Ok(State::Ended(Ending::Cut { at: self.at })),
                Some(true) => Ok(State::Gzip(Box::new(flate2::Decompress::new(false)), flate2::Crc::new())),
                Some(false) => Err(corrupt(format!("its header at byte {from} is invalid"))),
            },
            Kind::Bzip2 => {
                let mut decoder = bzip2::Decompress::new(false);
                let fed = decoder.decompress(&head, &mut []);
                fed.map_err(|_| corrupt(format!("its header at byte {from} is invalid")))?;
                Ok(State::Bzip2(decoder))
            }
            Kind::Xz => {
                let mut decoder = XzStream::new_mem_limit(false, super::compression::WINDOW_KIB);
                decoder.process(&head, &mut [], Action::Run)?;
                Ok(State::Xz(Box::new(decoder)))
            }
        }
    }

    /// Reads all bytes after the last member, up to the end of the input. `head` has the first of
    /// these bytes, which were already read.
    fn read_trailing(&mut self, from: u64, head: &[u8]) -> io::Result<State> {
        let mut zeros = head.iter().all(|byte| *byte == 0);
        loop {
            let bytes = self.fill()?;
            if bytes.is_empty() {
                return Ok(State::Ended(Ending::Followed { at: from, len: self.at - from, zeros }));
            }
            zeros &= bytes.iter().all(|byte| *byte == 0);
            let used = bytes.len();
            self.consume(used);
        }
    }

    /// Reads the header of a gzip member (RFC 1952, section 2.3). `head` has the bytes of the
    /// header that were already read. Returns whether the header is valid. Returns `None` if the
    /// input ends inside the header.
    fn gzip_header(&mut self, head: &mut Vec<u8>) -> io::Result<Option<bool>> {
        const SUM: u8 = 2;
        const EXTRA: u8 = 4;
        const NAME: u8 = 8;
        const COMMENT: u8 = 16;
        if !self.take(head, 10)? {
            return Ok(None);
        }
        // The three highest flags are reserved and must be zero.
        let flags = head[3];
        if !head.starts_with(b"\x1f\x8b\x08") || flags & 0xe0 != 0 {
            return Ok(Some(false));
        }
        if flags & EXTRA != 0 {
            if !self.take(head, 12)? {
                return Ok(None);
            }
            let len = usize::from(u16::from_le_bytes([head[10], head[11]]));
            if !self.take(head, 12 + len)? {
                return Ok(None);
            }
        }
        for text in [NAME, COMMENT] {
            let mut ended = flags & text == 0;
            while !ended {
                // No tool writes a file name or comment of more than 1 MiB. This limit bounds the
                // memory that the header needs.
                if head.len() > 1 << 20 {
                    return Ok(Some(false));
                }
                if !self.take(head, head.len() + 1)? {
                    return Ok(None);
                }
                ended = head.last() == Some(&0);
            }
        }
        if flags & SUM != 0 {
            let mut crc = flate2::Crc::new();
            crc.update(head);
            let len = head.len();
            if !self.take(head, len + 2)? {
                return Ok(None);
            }
            return Ok(Some(crc.sum().to_le_bytes()[..2] == head[len..]));
        }
        Ok(Some(true))
    }

    /// Decompresses data of the current member to `out`. Returns the number of bytes, and true if
    /// the member ends after these bytes.
    fn inflate(&mut self, out: &mut [u8]) -> io::Result<(usize, bool)> {
        loop {
            let at = self.at;
            self.fill()?;
            let input = self.input.fill_buf()?;
            let is_end = input.is_empty();
            let broken = |why: &str| corrupt(format!("{why} after byte {at}"));
            let (used, made, ended) = match &mut self.state {
                State::Gzip(decoder, crc) => {
                    let before = (decoder.total_in(), decoder.total_out());
                    let status = decoder
                        .decompress(input, out, flate2::FlushDecompress::None)
                        .map_err(|_| broken("its data is damaged"))?;
                    let (used, made) = progress(before, (decoder.total_in(), decoder.total_out()));
                    crc.update(&out[..made]);
                    (used, made, status == flate2::Status::StreamEnd)
                }
                State::Bzip2(decoder) => {
                    let before = (decoder.total_in(), decoder.total_out());
                    let status = decoder
                        .decompress(input, out)
                        .map_err(|_| broken("its data is damaged or fails its checksum"))?;
                    if status == bzip2::Status::MemNeeded {
                        return Err(ErrorKind::OutOfMemory.into());
                    }
                    let (used, made) = progress(before, (decoder.total_in(), decoder.total_out()));
                    (used, made, status == bzip2::Status::StreamEnd)
                }
                State::Xz(decoder) => {
                    let done =
                        decoder.process(input, out, Action::Run).map_err(|error| match error.kind() {
                            ErrorKind::OutOfMemory => corrupt(format!(
                                "it needs more than {} MiB of memory for its window",
                                super::compression::WINDOW_KIB >> 10
                            )),
                            _ => broken(&format!("its data is damaged ({error})")),
                        })?;
                    (done.bytes_consumed, done.bytes_produced, done.status == Status::StreamEnd)
                }
                _ => return Ok((0, false)),
            };
            self.consume(used);
            if made > 0 || ended || is_end {
                return Ok((made, ended));
            }
            // If the decoder makes no progress, the loop would never end.
            if used == 0 {
                return Err(broken("its data is damaged"));
            }
        }
    }

    /// Compares the content of a gzip member with the stored checksum and length (RFC 1952, section
    /// 2.3.1).
    fn compare_checksum(&mut self, expected: [u32; 2]) -> io::Result<State> {
        let at = self.at;
        let mut stored = Vec::new();
        if !self.take(&mut stored, 8)? {
            return Ok(State::Ended(Ending::Unchecked { at: self.at }));
        }
        if stored != expected.map(u32::to_le_bytes).concat() {
            return Err(corrupt(format!("the checksum at byte {at} does not match the decompressed data")));
        }
        self.any_checked = true;
        Ok(State::Between)
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match &self.state {
                State::Ended(_) => return Ok(0),
                State::Between => self.state = self.start_member()?,
                State::Sum(expected) => self.state = self.compare_checksum(*expected)?,
                State::Gzip(..) | State::Bzip2(_) | State::Xz(_) => {
                    let (made, ended) = self.inflate(out)?;
                    if ended {
                        let member = std::mem::replace(&mut self.state, State::Between);
                        if let State::Gzip(_, crc) = member {
                            self.state = State::Sum([crc.sum(), crc.amount()]);
                        } else {
                            // The decoder has already compared the checksum.
                            self.any_checked = true;
                        }
                    }
                    if made > 0 {
                        return Ok(made);
                    }
                    if !ended {
                        self.state = State::Ended(Ending::Cut { at: self.at });
                    }
                }
            }
        }
    }
}

/// Returns the number of bytes that a call of a decoder consumed, and the number of bytes that it
/// produced. `before` and `now` are the decoder's totals before and after the call.
fn progress(before: (u64, u64), now: (u64, u64)) -> (usize, usize) {
    let len = |bytes: u64| usize::try_from(bytes).expect("within the slices of the call");
    (len(now.0 - before.0), len(now.1 - before.1))
}

/// Creates an error for damaged data.
fn corrupt(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}
