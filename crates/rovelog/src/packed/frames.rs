//! Decompression of zstd (RFC 8878) and lz4, frame by frame. It also determines how the compressed
//! data ends.
//!
//! A decoder reports a truncated frame as an error of the data. So the input is wrapped in
//! [`Counted`], which records whether the end of the input was reached. For example, a file has a
//! frame of 100 bytes, and the second frame is truncated after 20 bytes. Decoding the second frame
//! fails, and the input is at its end, so the result is `Cut { at: 120 }` instead of an error.

use std::io::{self, BufRead, Chain, Cursor, ErrorKind, Read};

use lz4_flex::frame::FrameDecoder as Lz4;
use rovelog_core::internal::packed::Ending;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::compression::{Compression, WINDOW_KIB};

/// Bytes 1 to 3 of the magic number of a skippable zstd frame (RFC 8878, section 3.1.2). Byte 0 is
/// 0x50 to 0x5f.
const SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Decompresses an input that consists of one or more frames.
pub(super) struct Frames<R: BufRead> {
    /// Compression of the frames.
    compression: Compression,
    /// Current position in the frames.
    state: State<R>,
    /// True if at least one frame has ended without an error.
    any_checked: bool,
}

/// An input, preceded by its magic number, which was already read to recognize the frame.
type Input<R> = Chain<Cursor<Vec<u8>>, Counted<R>>;

/// Position of the decoder within the frames of the input.
enum State<R: BufRead> {
    /// The decoder is at the start of a frame, or at the end of all frames.
    Between(Counted<R>),
    /// The decoder is inside a zstd frame.
    Zstd(Box<Zstd<R>>),
    /// The decoder is inside an lz4 frame.
    Lz4(Box<Lz4<Input<R>>>),
    /// The decoder is at the end of the input.
    Ended(Ending),
}

/// A zstd frame that is being decompressed.
struct Zstd<R> {
    /// Decoder of the frame.
    decoder: FrameDecoder,
    /// Compressed input.
    input: Input<R>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // The decoder decompresses one block at a time, so that it needs memory only for the window
        // and a block.
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let decoded = self.decoder.decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1));
            decoded.map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
        self.decoder.read(out)
    }
}

/// An input that counts the bytes that were read, and records whether the end of the input was
/// reached.
pub(super) struct Counted<R> {
    /// The wrapped input.
    input: R,
    /// Number of bytes that were read from the input.
    at: u64,
    /// True if the end of the input was reached.
    eof: bool,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.at += read as u64;
        self.eof |= read == 0 && !out.is_empty();
        Ok(read)
    }
}

impl<R: BufRead> Frames<R> {
    /// Creates a reader of the decompressed content of `input`.
    pub(super) fn new(compression: Compression, input: R) -> Self {
        let input = Counted { input, at: 0, eof: false };
        Self { compression, state: State::Between(input), any_checked: false }
    }

    /// Returns how the compressed data ends. The result is valid after reading has returned 0
    /// bytes.
    pub(super) fn ending(&self) -> Ending {
        match &self.state {
            State::Ended(ending) => *ending,
            state => Ending::Cut { at: state.input().map_or(0, |input| input.at) },
        }
    }

    /// Starts to decompress the next frame. If no frame follows, the decompression ends.
    fn start_frame(&self, mut input: Counted<R>) -> io::Result<State<R>> {
        let (from, magic) = (input.at, self.compression.magic());
        let mut head = Vec::new();
        input.by_ref().take(magic.len() as u64).read_to_end(&mut head)?;
        if head.is_empty() && self.any_checked {
            return Ok(State::Ended(Ending::Checked));
        }
        let is_skippable = self.compression == Compression::Zstd
            && head.len() == 4
            && head[0] & 0xf0 == 0x50
            && head[1..] == SKIPPABLE;
        if !is_skippable && head[..] != magic[..head.len()] {
            return read_trailing(input, from, &head);
        }
        if head.len() < magic.len() {
            return Ok(State::Ended(Ending::Cut { at: input.at }));
        }
        let input = Cursor::new(head).chain(input);
        Ok(match self.compression {
            Compression::Lz4 => State::Lz4(Box::new(Lz4::new(input))),
            _ => return start_zstd(input, from),
        })
    }

    /// Decompresses data of the current frame to `out`. Returns the number of bytes, or 0 at the
    /// end of the frame.
    fn decompress(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.state {
            State::Lz4(decoder) => decoder.read(out),
            State::Zstd(decoder) => decoder.read(out),
            State::Between(_) | State::Ended(_) => Ok(0),
        };
        read.map_err(|error| match error.kind() {
            ErrorKind::Interrupted | ErrorKind::OutOfMemory => error,
            _ => io::Error::new(ErrorKind::InvalidData, error),
        })
    }
}

/// Reads all bytes after the last frame, up to the end of the input. `head` has the first of these
/// bytes, which were already read.
fn read_trailing<R: BufRead>(mut input: Counted<R>, from: u64, head: &[u8]) -> io::Result<State<R>> {
    let mut zeros = head.iter().all(|byte| *byte == 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match input.read(&mut buffer)? {
            0 => return Ok(State::Ended(Ending::Followed { at: from, len: input.at - from, zeros })),
            read => zeros &= buffer[..read].iter().all(|byte| *byte == 0),
        }
    }
}

/// Starts to decompress a zstd frame, or skips a skippable frame.
fn start_zstd<R: BufRead>(mut input: Input<R>, from: u64) -> io::Result<State<R>> {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(u64::from(WINDOW_KIB) << 10);
    match decoder.init(&mut input) {
        Ok(()) => Ok(State::Zstd(Box::new(Zstd { decoder, input }))),
        Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
            let mut input = input.into_inner().1;
            let skipped = io::copy(&mut input.by_ref().take(length.into()), &mut io::sink())?;
            let is_cut = skipped < length.into();
            Ok(if is_cut { State::Ended(Ending::Cut { at: input.at }) } else { State::Between(input) })
        }
        Err(_) if input.get_ref().1.eof => Ok(State::Ended(Ending::Cut { at: input.get_ref().1.at })),
        Err(error) => {
            let why = format!("the header of the frame at byte {from} is invalid ({error})");
            Err(io::Error::new(ErrorKind::InvalidData, why))
        }
    }
}

impl<R: BufRead> State<R> {
    /// Returns the input. Returns `None` if the decompression has ended.
    fn input(&self) -> Option<&Counted<R>> {
        Some(match self {
            Self::Between(input) => input,
            Self::Zstd(frame) => frame.input.get_ref().1,
            Self::Lz4(decoder) => decoder.get_ref().get_ref().1,
            Self::Ended(_) => return None,
        })
    }

    /// Compares the checksum of a frame after its end. Returns the input after the frame.
    fn into_input(self) -> io::Result<Option<Counted<R>>> {
        let chain = match self {
            Self::Between(input) => return Ok(Some(input)),
            Self::Ended(_) => return Ok(None),
            Self::Lz4(decoder) => decoder.into_inner(),
            Self::Zstd(frame) => {
                let decoder = &frame.decoder;
                let (stored, computed) =
                    (decoder.get_checksum_from_data(), decoder.get_calculated_checksum());
                if stored.is_some() && stored != computed {
                    let why = "the checksum of a frame does not match its data";
                    return Err(io::Error::new(ErrorKind::InvalidData, why));
                }
                frame.input
            }
        };
        Ok(Some(chain.into_inner().1))
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, State::Ended(Ending::Checked)) {
                State::Ended(ending) => {
                    self.state = State::Ended(ending);
                    return Ok(0);
                }
                State::Between(input) => self.state = self.start_frame(input)?,
                decoding => {
                    self.state = decoding;
                    match self.decompress(out) {
                        // The input has ended inside the frame, so the file is truncated.
                        Ok(0) if let Some(input) = self.state.input().filter(|input| input.eof) => {
                            self.state = State::Ended(Ending::Cut { at: input.at });
                        }
                        Ok(0) => {
                            let ended = std::mem::replace(&mut self.state, State::Ended(Ending::Checked));
                            self.any_checked = true;
                            if let Some(input) = ended.into_input()? {
                                self.state = State::Between(input);
                            }
                        }
                        Ok(read) => return Ok(read),
                        // The decoder failed because the input has ended inside the frame.
                        Err(error) if error.kind() == ErrorKind::InvalidData => {
                            let Some(input) = self.state.input().filter(|input| input.eof) else {
                                return Err(error);
                            };
                            self.state = State::Ended(Ending::Cut { at: input.at });
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }
}
