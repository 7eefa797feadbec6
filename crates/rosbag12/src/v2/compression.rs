//! Decompresses the data of chunks. The output buffer grows with the decompressed data. It is not
//! allocated from the size in the chunk header, because the header may be damaged.

use rovelog_core::Limits;

use super::buffer::{Buffer, DataStatus};

/// Compression of chunk data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// The chunk data are not compressed.
    #[default]
    None,
    /// The chunk data are compressed with bzip2.
    Bz2,
    /// The chunk data are LZ4 frames, which recorders have written since 2014.
    Lz4,
}

impl Compression {
    /// All known compressions, including uncompressed data.
    pub const ALL: [Self; 3] = [Self::None, Self::Bz2, Self::Lz4];

    /// Returns the name of the compression in chunk headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bz2 => "bz2",
            Self::Lz4 => "lz4",
        }
    }

    /// Returns the compression with the given name in a chunk header. Returns `None` if the name is
    /// unknown.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name().as_bytes() == name)
    }
}

/// Size in bytes up to which every chunk may be decompressed, regardless of the size in its header.
const LIMIT: u64 = 64 << 20;

/// Limits on the decompressed size of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecompressionLimit {
    /// Maximum size in bytes of a decompressed chunk.
    bytes: u64,
    /// Maximum number of decompressed bytes per compressed byte. Applies only to chunks larger than
    /// [`LIMIT`]. The value 0 means no maximum.
    expansion: u64,
}

impl DecompressionLimit {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { bytes: limits.unpacked, expansion: limits.expansion }
    }

    /// Returns the maximum decompressed size of a chunk with `stored` compressed bytes, whose
    /// header states `size` decompressed bytes. The stated size alone is not a safe limit, because
    /// bzip2 can expand 600 bytes to 800 MB.
    pub(super) fn limit(self, size: u32, stored: u64) -> usize {
        let real = if self.expansion == 0 { u64::MAX } else { stored.saturating_mul(self.expansion) };
        let limit = (4 * u64::from(size)).min(real).max(LIMIT).min(self.bytes);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// Decompresses the streams at the start of `data` into `buffer`, up to `limit` bytes. Returns the
/// status and the number of compressed bytes that were consumed.
pub(crate) fn decompress(
    compression: Compression,
    data: &[u8],
    limit: usize,
    buffer: &mut Buffer,
) -> (DataStatus, usize) {
    buffer.len = 0;
    match compression {
        Compression::None => (buffer.extend(data, limit).err().unwrap_or(DataStatus::Intact), buffer.len),
        #[cfg(feature = "compressed")]
        Compression::Lz4 => super::lz4::decompress(data, limit, buffer),
        #[cfg(feature = "compressed")]
        Compression::Bz2 => bz2::decompress(data, limit, buffer),
        #[cfg(not(feature = "compressed"))]
        _ => (DataStatus::Unknown, 0),
    }
}

/// Decompresses the data of a chunk. If bytes remain after the last compressed stream, the status
/// is [`DataStatus::Broken`], because these bytes are damaged or do not belong to the chunk.
pub(crate) fn decompress_chunk(
    compression: Compression,
    data: &[u8],
    limit: usize,
    buffer: &mut Buffer,
) -> (DataStatus, usize) {
    match decompress(compression, data, limit, buffer) {
        (DataStatus::Intact, used) if used < data.len() => (DataStatus::Broken, used),
        other => other,
    }
}

/// Size in bytes of the memory that a decoder of bzip2 needs. A decoder of LZ4 needs little.
pub(super) const DECODER_BYTES: usize = 4 << 20;

/// Decompression of bzip2 streams.
#[cfg(feature = "compressed")]
mod bz2 {
    use std::alloc::{Layout, handle_alloc_error};

    use bzip2::{Decompress, Status};

    use super::{Buffer, DECODER_BYTES, DataStatus};

    const MAGIC: &[u8] = b"BZh";

    /// Size in bytes of the output space for each call of the decoder.
    const STEP: usize = 1 << 20;

    /// Maximum number of bytes of output that are kept before their checksums are verified, unless
    /// [`USUAL_RATIO`] allows more. The limit is needed because the checksum comes at the end of a
    /// block, and a damaged block may expand to 46 MB.
    const UNCHECKED: usize = 4 << 20;

    /// Up to this many bytes of output per compressed byte are kept before their checksums are
    /// verified. Logs rarely compress better. Output that is not kept must be decompressed twice.
    const USUAL_RATIO: usize = 16;

    /// Number of compressed bytes before an error that are passed to the decoder one at a time.
    const SLOW: usize = 256;

    /// Destination of decompressed bytes.
    enum Output<'a> {
        Kept(&'a mut Buffer),
        /// Counts the bytes without keeping them.
        Counted {
            len: usize,
            space: Vec<u8>,
        },
    }

    impl Output<'_> {
        fn len(&mut self) -> &mut usize {
            match self {
                Self::Kept(buffer) => &mut buffer.len,
                Self::Counted { len, .. } => len,
            }
        }

        /// Returns space for more output. The space is limited so that the total output has at most
        /// `limit` bytes.
        fn spare(&mut self, limit: usize) -> &mut [u8] {
            match self {
                Self::Kept(buffer) => buffer.spare(STEP, limit).1,
                Self::Counted { len, space } => {
                    space.resize(STEP, 0);
                    &mut space[..STEP.min(limit.saturating_sub(*len))]
                }
            }
        }
    }

    pub(super) fn decompress(data: &[u8], limit: usize, buffer: &mut Buffer) -> (DataStatus, usize) {
        if !data.starts_with(MAGIC) {
            return (if MAGIC.starts_with(data) { DataStatus::Cut } else { DataStatus::NotPacked }, 0);
        }
        let mut used = 0;
        while data[used..].starts_with(MAGIC) {
            let (rest, start) = (&data[used..], buffer.len);
            let first = limit.min(start.saturating_add(unchecked(rest)));
            let (mut status, mut len) = right_blocks(rest, first, &mut Output::Kept(buffer));
            // The first attempt stopped at the limit for unverified output. Count the bytes of the
            // verified output without keeping them, then decompress exactly this number of bytes.
            if status == DataStatus::Limit && first < limit {
                let mut right = Output::Counted { len: start, space: Vec::new() };
                (status, len) = right_blocks(rest, limit, &mut right);
                buffer.len = start;
                stream(rest, *right.len(), &mut Output::Kept(buffer), usize::MAX);
                // The last call of the decoder may have appended bytes of the damaged block. Remove
                // them, so that only verified bytes remain.
                buffer.len = *right.len();
            }
            used += len;
            if status != DataStatus::Intact {
                return (status, used);
            }
        }
        (DataStatus::Intact, used)
    }

    /// Returns the maximum number of bytes of output that are kept before their checksums are
    /// verified.
    pub(super) fn unchecked(stream: &[u8]) -> usize {
        UNCHECKED.max(stream.len().saturating_mul(USUAL_RATIO))
    }

    /// Decompresses the blocks of one stream whose checksums match.
    fn right_blocks(data: &[u8], limit: usize, output: &mut Output<'_>) -> (DataStatus, usize) {
        let start = *output.len();
        let (status, len) = stream(data, limit, output, usize::MAX);
        if status == DataStatus::Broken {
            // The decoder has already returned bytes of the damaged block. If it gets one input
            // byte at a time, it returns a block only with the last byte of the block, after its
            // checksum.
            *output.len() = start;
            stream(data, limit, output, len.saturating_sub(SLOW));
        }
        (status, len)
    }

    /// Decompresses one stream. The first `at_once` bytes are passed to the decoder together, the
    /// others one at a time.
    fn stream(data: &[u8], limit: usize, output: &mut Output<'_>, at_once: usize) -> (DataStatus, usize) {
        let mut decoder = Decompress::new(false);
        let (mut used, mut checked) = (0, *output.len());
        loop {
            let spare = output.spare(limit);
            if spare.is_empty() {
                return (DataStatus::Limit, used);
            }
            // After `at_once` bytes, feed single bytes, so that the decoder stops at the end of a
            // block.
            let fed = &data[used..at_once.max(used + 1).min(data.len())];
            let before = (decoder.total_in(), decoder.total_out());
            let status = decoder.decompress(fed, spare);
            let moved = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
            let (taken, made) = (moved(decoder.total_in(), before.0), moved(decoder.total_out(), before.1));
            used += taken;
            match status {
                Ok(Status::StreamEnd) => {
                    *output.len() += made;
                    return (DataStatus::Intact, used);
                }
                // A decoder without memory must not report intact data as damaged. So the process
                // ends, as if the allocation of a `Vec` failed. This is rare, because the memory
                // for the decoders was checked before.
                Ok(Status::MemNeeded) => handle_alloc_error(Layout::new::<[u8; DECODER_BYTES]>()),
                Ok(_) => *output.len() += made,
                Err(_) => {
                    *output.len() = checked;
                    return (DataStatus::Broken, used);
                }
            }
            // The decoder produces no output while it reads the next block, so all output so far
            // was verified.
            if made == 0 {
                checked = *output.len();
                if taken == 0 && used == data.len() {
                    return (DataStatus::Cut, used);
                }
                if taken == 0 && !fed.is_empty() {
                    return (DataStatus::Broken, used);
                }
            }
        }
    }
}

#[cfg(test)]
mod limit_tests {
    use rovelog_core::Limits;

    use super::{DecompressionLimit, LIMIT};

    #[test]
    fn a_stated_size_does_not_raise_the_limit_beyond_the_stored_bytes() {
        let limit = |limits: Limits, size: u32, stored: u64| {
            DecompressionLimit::of(&limits).limit(size, stored) as u64
        };
        let huge = 800_000_000;
        assert_eq!(limit(Limits::default(), huge, 600), LIMIT);
        assert_eq!(limit(Limits::default(), 1000, 600), LIMIT);
        assert_eq!(limit(Limits::default(), huge, 10 << 20), 640 << 20);
        assert_eq!(limit(Limits::default(), 200 << 20, 150 << 20), 800 << 20);
        assert_eq!(limit(Limits::default(), u32::MAX, 4 << 30), 1 << 30);
        // A user who trusts the bag may raise the limit.
        assert_eq!(limit(Limits::default().with_unpacked(2 << 30), huge, 600), 2 << 30);
        assert_eq!(limit(Limits::default().with_unpacked(1 << 20), huge, 600), 1 << 20);
    }
}

#[cfg(all(test, feature = "compressed"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn unpacked(compression: Compression, data: &[u8], limit: usize) -> (DataStatus, Vec<u8>) {
        let mut buffer = Buffer::default();
        let (status, _) = decompress(compression, data, limit, &mut buffer);
        (status, buffer.filled().to_vec())
    }

    fn text() -> Vec<u8> {
        (0..100_000u32).flat_map(|n| (n / 7 % 1000).to_le_bytes()).collect()
    }

    /// A block of 100 000 compressed bytes can contain runs of one byte that expand to five million
    /// bytes.
    #[test]
    fn only_verified_blocks_are_kept() {
        const LEN: usize = 12_000_000;
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packed.write_all(&vec![7; LEN]).unwrap();
        let packed = packed.finish().unwrap();
        let mut buffer = Buffer::default();
        let status = decompress(Compression::Bz2, &packed, usize::MAX, &mut buffer);
        assert_eq!((status, buffer.len), ((DataStatus::Intact, packed.len()), LEN));
        // Damage in the last block, and in the checksum of the stream after it.
        for (at, kept) in [(packed.len() - 30, 2 * 5_099_235), (packed.len() - 3, LEN)] {
            let mut bad = packed.clone();
            bad[at] ^= 4;
            let mut buffer = Buffer::default();
            let (status, _) = decompress(Compression::Bz2, &bad, usize::MAX, &mut buffer);
            assert_eq!((status, buffer.len), (DataStatus::Broken, kept));
            assert!(buffer.filled().iter().all(|byte| *byte == 7));
        }
        let mut bad = packed;
        bad[10] ^= 4;
        let mut buffer = Buffer::default();
        let (status, _) = decompress(Compression::Bz2, &bad, usize::MAX, &mut buffer);
        assert_eq!((status, buffer.len), (DataStatus::Broken, 0));
        assert!(buffer.bytes.len() <= 5 << 20, "{} bytes", buffer.bytes.len());
    }

    /// The data of one image may exceed [`UNCHECKED`], but their compression ratio is not higher
    /// than usual.
    #[test]
    fn large_blocks_with_usual_compression_are_decoded_once() {
        let mut content = 1_u32;
        let image: Vec<u8> = (0..6_000_000)
            .map(|_| {
                content = content.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                content.to_be_bytes()[0] >> 4
            })
            .collect();
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        packed.write_all(&image).unwrap();
        let packed = packed.finish().unwrap();
        assert!(image.len() < bz2::unchecked(&packed), "{} bytes", packed.len());
        let (status, bytes) = unpacked(Compression::Bz2, &packed, usize::MAX);
        assert!(status == DataStatus::Intact && bytes == image);
    }

    #[test]
    fn cut_data_give_a_prefix() {
        let text = text();
        let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bz2.write_all(&text).unwrap();
        let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
        let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
        lz4.write_all(&text).unwrap();
        for (compression, packed) in
            [(Compression::Bz2, bz2.finish().unwrap()), (Compression::Lz4, lz4.finish().unwrap())]
        {
            let twice = [&*packed, &packed, b"tail"].concat();
            let mut buffer = Buffer::default();
            let result = decompress(compression, &twice, usize::MAX, &mut buffer);
            assert_eq!(result, (DataStatus::Intact, 2 * packed.len()), "{compression:?}");
            assert!(buffer.filled() == [&*text, &text].concat());
            for cut in (0..packed.len()).step_by(97) {
                let (status, bytes) = unpacked(compression, &packed[..cut], usize::MAX);
                assert_eq!(status, DataStatus::Cut, "{compression:?} {cut}");
                assert!(text.starts_with(&bytes));
            }
            let (status, bytes) = unpacked(compression, &packed, 250_000);
            assert_eq!((status, bytes.len()), (DataStatus::Limit, 250_000), "{compression:?}");
            for at in (0..packed.len()).step_by(101) {
                let mut bad = packed.clone();
                bad[at] ^= 4;
                let (status, bytes) = unpacked(compression, &bad, 8 << 20);
                // A change to the reserved bit of the LZ4 flags is the only change without any
                // effect.
                assert!(status != DataStatus::Intact || bytes == text, "{compression:?} {at}");
                if compression == Compression::Bz2 {
                    assert!(text.starts_with(&bytes), "{at}: a block that was not checked");
                }
            }
        }
    }
}
