//! What the data of a chunk hold: as they are, or unpacked, and how that ended. Nothing is reserved
//! by what a header claims.

use rovelog_core::Limits;

use super::buffer::{Buffer, Ending};

/// How the data of chunks are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// With bzip2.
    Bz2,
    /// As LZ4 frames; recorders since 2014.
    Lz4,
}

impl Compression {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Bz2, Self::Lz4];

    /// Returns the word of chunk headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bz2 => "bz2",
            Self::Lz4 => "lz4",
        }
    }

    /// Returns the one that a chunk header names.
    pub fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name().as_bytes() == name)
    }
}

/// Number of bytes that any chunk may be decompressed to.
const LIMIT: u64 = 64 << 20;

/// Limits of what a chunk may be decompressed to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cap {
    /// Maximum number of bytes.
    bytes: u64,
    /// Number of bytes for each compressed byte, above [`LIMIT`]; 0 for no such limit.
    expansion: u64,
}

impl Cap {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { bytes: limits.unpacked, expansion: limits.expansion }
    }

    /// Returns the limit for a chunk of `stored` bytes whose header claims `size`. The claim alone
    /// allows nothing: bzip2 makes 800 MB of 600 bytes.
    pub(super) fn limit(self, size: u32, stored: u64) -> usize {
        let real = if self.expansion == 0 { u64::MAX } else { stored.saturating_mul(self.expansion) };
        let limit = (4 * u64::from(size)).min(real).max(LIMIT).min(self.bytes);
        usize::try_from(limit).unwrap_or(usize::MAX)
    }
}

/// Unpacks the streams at the start of `data` into `buffer`, up to `limit` bytes: how they end, and
/// how many bytes of `data` they have.
pub(crate) fn unpack(
    compression: Compression,
    data: &[u8],
    limit: usize,
    buffer: &mut Buffer,
) -> (Ending, usize) {
    buffer.len = 0;
    match compression {
        Compression::None => (buffer.extend(data, limit).err().unwrap_or(Ending::Whole), buffer.len),
        #[cfg(feature = "compressed")]
        Compression::Lz4 => super::lz4::unpack(data, limit, buffer),
        #[cfg(feature = "compressed")]
        Compression::Bz2 => bz2::unpack(data, limit, buffer),
        #[cfg(not(feature = "compressed"))]
        _ => (Ending::Unknown, 0),
    }
}

/// Unpacks the data of a chunk, which are streams and nothing else. What is behind the last one is
/// damaged, or no part of the chunk.
pub(crate) fn unpack_chunk(
    compression: Compression,
    data: &[u8],
    limit: usize,
    buffer: &mut Buffer,
) -> (Ending, usize) {
    match unpack(compression, data, limit, buffer) {
        (Ending::Whole, used) if used < data.len() => (Ending::Broken, used),
        other => other,
    }
}

/// Streams of bzip2.
#[cfg(feature = "compressed")]
mod bz2 {
    use bzip2::{Decompress, Status};

    use super::{Buffer, Ending};

    const MAGIC: &[u8] = b"BZh";

    /// Bytes of output that there is space for.
    const STEP: usize = 1 << 20;

    /// Bytes of a stream that are kept before its blocks are known to be right, or those below. A
    /// block is known to be right at its end only, and a damaged one can give out 46 MB until then.
    const UNCHECKED: usize = 4 << 20;

    /// As many bytes for each byte of a stream are kept in any case: logs hardly ever shrink further,
    /// and what is not kept must be decoded again.
    const USUAL_RATIO: usize = 16;

    /// Bytes before an error that are fed one by one.
    const SLOW: usize = 256;

    /// Where the bytes of a stream go.
    enum Output<'a> {
        Kept(&'a mut Buffer),
        /// Nowhere: only their number is wanted.
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

        /// Returns space for more bytes, up to `limit` of them in all.
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

    pub(super) fn unpack(data: &[u8], limit: usize, buffer: &mut Buffer) -> (Ending, usize) {
        if !data.starts_with(MAGIC) {
            return (if MAGIC.starts_with(data) { Ending::Cut } else { Ending::NotPacked }, 0);
        }
        let mut used = 0;
        while data[used..].starts_with(MAGIC) {
            let (rest, start) = (&data[used..], buffer.len);
            let first = limit.min(start.saturating_add(unchecked(rest)));
            let (mut ending, mut len) = right_blocks(rest, first, &mut Output::Kept(buffer));
            if ending == Ending::Limit && first < limit {
                let mut right = Output::Counted { len: start, space: Vec::new() };
                (ending, len) = right_blocks(rest, limit, &mut right);
                buffer.len = start;
                stream(rest, *right.len(), &mut Output::Kept(buffer), usize::MAX);
                // The last call may have met what is damaged behind them.
                buffer.len = *right.len();
            }
            used += len;
            if ending != Ending::Whole {
                return (ending, used);
            }
        }
        (Ending::Whole, used)
    }

    /// Returns how many bytes of a stream are kept before its blocks are known to be right.
    pub(super) fn unchecked(stream: &[u8]) -> usize {
        UNCHECKED.max(stream.len().saturating_mul(USUAL_RATIO))
    }

    /// Unpacks the blocks of one stream that are right.
    fn right_blocks(data: &[u8], limit: usize, output: &mut Output<'_>) -> (Ending, usize) {
        let start = *output.len();
        let (ending, len) = stream(data, limit, output, usize::MAX);
        if ending == Ending::Broken {
            // The bytes of the damaged block have come out already. Fed byte by byte, the bytes of a
            // block come out with the last one of it.
            *output.len() = start;
            stream(data, limit, output, len.saturating_sub(SLOW));
        }
        (ending, len)
    }

    /// Unpacks one stream, of which so many bytes are fed at once, and then one after the other.
    fn stream(data: &[u8], limit: usize, output: &mut Output<'_>, at_once: usize) -> (Ending, usize) {
        let mut decoder = Decompress::new(false);
        let (mut used, mut checked) = (0, *output.len());
        loop {
            let spare = output.spare(limit);
            if spare.is_empty() {
                return (Ending::Limit, used);
            }
            let fed = &data[used..at_once.max(used + 1).min(data.len())];
            let before = (decoder.total_in(), decoder.total_out());
            let status = decoder.decompress(fed, spare);
            let moved = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
            let (taken, made) = (moved(decoder.total_in(), before.0), moved(decoder.total_out(), before.1));
            used += taken;
            match status {
                Ok(Status::StreamEnd) => {
                    *output.len() += made;
                    return (Ending::Whole, used);
                }
                Ok(_) => *output.len() += made,
                Err(_) => {
                    *output.len() = checked;
                    return (Ending::Broken, used);
                }
            }
            if made == 0 {
                checked = *output.len();
                if taken == 0 && used == data.len() {
                    return (Ending::Cut, used);
                }
                if taken == 0 && !fed.is_empty() {
                    return (Ending::Broken, used);
                }
            }
        }
    }
}

#[cfg(test)]
mod limit_tests {
    use rovelog_core::Limits;

    use super::{Cap, LIMIT};

    #[test]
    fn a_claim_allows_no_more_than_the_stored_bytes_can_hold() {
        let limit = |limits: Limits, size: u32, stored: u64| Cap::of(&limits).limit(size, stored) as u64;
        let huge = 800_000_000;
        assert_eq!(limit(Limits::default(), huge, 600), LIMIT);
        assert_eq!(limit(Limits::default(), 1000, 600), LIMIT);
        assert_eq!(limit(Limits::default(), huge, 10 << 20), 640 << 20);
        assert_eq!(limit(Limits::default(), 200 << 20, 150 << 20), 800 << 20);
        assert_eq!(limit(Limits::default(), u32::MAX, 4 << 30), 1 << 30);
        // A user who trusts the bag sets the limit of all.
        assert_eq!(limit(Limits::default().with_unpacked(2 << 30), huge, 600), 2 << 30);
        assert_eq!(limit(Limits::default().with_unpacked(1 << 20), huge, 600), 1 << 20);
    }
}

#[cfg(all(test, feature = "compressed"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn unpacked(compression: Compression, data: &[u8], limit: usize) -> (Ending, usize, Vec<u8>) {
        let mut buffer = Buffer::default();
        let (ending, used) = unpack(compression, data, limit, &mut buffer);
        (ending, used, buffer.filled().to_vec())
    }

    fn text() -> Vec<u8> {
        (0..100_000u32).flat_map(|n| (n / 7 % 1000).to_le_bytes()).collect()
    }

    /// Runs of one byte, which a block of 100 000 bytes holds five million of.
    #[test]
    fn of_a_damaged_block_no_more_is_kept_than_of_right_ones() {
        const LEN: usize = 12_000_000;
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        packed.write_all(&vec![7; LEN]).unwrap();
        let packed = packed.finish().unwrap();
        let mut buffer = Buffer::default();
        let ending = unpack(Compression::Bz2, &packed, usize::MAX, &mut buffer);
        assert_eq!((ending, buffer.len), ((Ending::Whole, packed.len()), LEN));
        // In the last block, and in the checksum of the whole, which is behind it.
        for (at, kept) in [(packed.len() - 30, 2 * 5_099_235), (packed.len() - 3, LEN)] {
            let mut bad = packed.clone();
            bad[at] ^= 4;
            let mut buffer = Buffer::default();
            let (ending, _) = unpack(Compression::Bz2, &bad, usize::MAX, &mut buffer);
            assert_eq!((ending, buffer.len), (Ending::Broken, kept));
            assert!(buffer.filled().iter().all(|byte| *byte == 7));
        }
        let mut bad = packed;
        bad[10] ^= 4;
        let mut buffer = Buffer::default();
        let (ending, _) = unpack(Compression::Bz2, &bad, usize::MAX, &mut buffer);
        assert_eq!((ending, buffer.len), (Ending::Broken, 0));
        assert!(buffer.bytes.len() <= 5 << 20, "{} bytes", buffer.bytes.len());
    }

    /// A chunk of one image is larger than what is kept unchecked, but packed no better than others.
    #[test]
    fn large_data_that_pack_as_usual_are_decoded_once() {
        let mut state = 1_u32;
        let image: Vec<u8> = (0..6_000_000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0] >> 4
            })
            .collect();
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
        packed.write_all(&image).unwrap();
        let packed = packed.finish().unwrap();
        assert!(image.len() < bz2::unchecked(&packed), "{} bytes", packed.len());
        let (ending, _, bytes) = unpacked(Compression::Bz2, &packed, usize::MAX);
        assert!(ending == Ending::Whole && bytes == image);
    }

    #[test]
    fn what_is_cut_gives_a_prefix_and_what_is_whole_everything() {
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
            let (ending, used, bytes) = unpacked(compression, &twice, usize::MAX);
            assert_eq!((ending, used), (Ending::Whole, 2 * packed.len()), "{compression:?}");
            assert!(bytes == [&*text, &text].concat());
            for cut in (0..packed.len()).step_by(97) {
                let (ending, _, bytes) = unpacked(compression, &packed[..cut], usize::MAX);
                assert_eq!(ending, Ending::Cut, "{compression:?} {cut}");
                assert!(text.starts_with(&bytes));
            }
            let (ending, _, bytes) = unpacked(compression, &packed, 250_000);
            assert_eq!((ending, bytes.len()), (Ending::Limit, 250_000), "{compression:?}");
            for at in (0..packed.len()).step_by(101) {
                let mut bad = packed.clone();
                bad[at] ^= 4;
                let (ending, _, bytes) = unpacked(compression, &bad, 8 << 20);
                // A reserved bit of an LZ4 flag is the only one that nothing depends on.
                assert!(ending != Ending::Whole || bytes == text, "{compression:?} {at}");
                if compression == Compression::Bz2 {
                    assert!(text.starts_with(&bytes), "{at}: a block that was not checked");
                }
            }
        }
    }
}
