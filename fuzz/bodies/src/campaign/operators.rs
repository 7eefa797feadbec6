//! Kinds of damage that happen to logs in practice. The same seed results in the same damage.

use rovelog::LogReader;

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The end of the log is missing.
    Cut,
    /// One to five bits of the log are flipped.
    Flip,
    /// A range of bytes is overwritten with zeros.
    Zero,
    /// A range of bytes is repeated.
    Duplicate,
    /// Two ranges of bytes are exchanged.
    Reorder,
    /// Random bytes are inserted into the log.
    Insert,
    /// The value of a length field is increased.
    Grow,
    /// The value of a length field is decreased.
    Shrink,
    /// The end of the log is replaced by the end of a second log in the same format.
    Splice,
    /// In a part of the log, every second sector comes from a second log.
    Interleave,
    /// Up to three pages of the log are missing.
    LosePages,
    /// Up to three pages of the log are repeated.
    DoublePages,
    /// Only some sectors of the last page were written. The remaining sectors contain zeros.
    HalfPage,
    /// Up to five single bytes of the log are missing.
    LoseBytes,
    /// Up to five single bytes of the log are repeated.
    DoubleBytes,
    /// The log was copied as text, which adds a carriage return before each line feed.
    TextMode,
    /// The end of the log is missing. The missing part starts at the start of a page.
    CutAtPage,
}

impl Operator {
    /// All kinds of damage, in the order of the tables.
    pub const ALL: [Self; 17] = [
        Self::Cut,
        Self::Flip,
        Self::Zero,
        Self::Duplicate,
        Self::Reorder,
        Self::Insert,
        Self::Grow,
        Self::Shrink,
        Self::Splice,
        Self::Interleave,
        Self::LosePages,
        Self::DoublePages,
        Self::HalfPage,
        Self::LoseBytes,
        Self::DoubleBytes,
        Self::TextMode,
        Self::CutAtPage,
    ];

    /// Kinds of damage for which it is known which records remain untouched.
    pub const PAGES: [Self; 8] = [
        Self::Interleave,
        Self::LosePages,
        Self::DoublePages,
        Self::HalfPage,
        Self::LoseBytes,
        Self::DoubleBytes,
        Self::TextMode,
        Self::CutAtPage,
    ];

    /// Returns the description of the damage that tables contain.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Flip => "1 to 5 bits flipped",
            Self::Zero => "a range zeroed",
            Self::Duplicate => "a range repeated",
            Self::Reorder => "two ranges swapped",
            Self::Insert => "random bytes inserted",
            Self::Grow => "a length field increased",
            Self::Shrink => "a length field decreased",
            Self::Splice => "another log spliced in",
            Self::Interleave => "sectors of two logs interleaved",
            Self::LosePages => "up to 3 pages of 4 KiB lost",
            Self::DoublePages => "up to 3 pages of 4 KiB doubled",
            Self::HalfPage => "last page half-written",
            Self::LoseBytes => "5 single bytes lost",
            Self::DoubleBytes => "5 single bytes doubled",
            Self::TextMode => "copied as text (CR LF)",
            Self::CutAtPage => "cut at a page",
        }
    }
}

/// A generator of pseudorandom numbers with the algorithm `SplitMix64`.
pub(super) struct Random(u64);

impl Random {
    /// Returns a generator whose numbers depend on the name of the log, the kind of damage and the
    /// seed.
    pub(super) fn of(name: &str, operator: Operator, seed: u64) -> Self {
        let mut state = 0xCBF2_9CE4_8422_2325u64;
        for byte in name.bytes().chain([operator as u8]).chain(seed.to_le_bytes()) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Self(state)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a random number below `end`. Returns 0 if `end` is 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end as u64).max(1)).unwrap_or(0)
    }
}

/// Offset and size in bytes of a length field.
type LengthField = (usize, usize);

/// Returns the length fields of up to a thousand records. For an RLD log, returns the length fields
/// in the header.
pub(super) fn length_fields(format: &str, log: &dyn LogReader) -> Vec<LengthField> {
    if format == "rld" {
        // These are the header fields `header_length`, `data_block_size`, `data_block_count`,
        // `sample_count` and `comment_length`.
        return vec![(6, 2), (8, 4), (12, 4), (16, 4), (0x30, 4)];
    }
    // Each record starts with a field that contains its length.
    let size = if format == "ulog" { 2 } else { 4 };
    let records = log.records(&rovelog::Select::all()).take(1000).filter_map(Result::ok);
    records.filter_map(|record| Some((usize::try_from(record.offset).ok()?, size))).collect()
}

/// Returns a damaged log, and the offset of the first damaged byte. The kind of damage must not be
/// one of [`Operator::PAGES`].
pub(super) fn damaged(
    clean: &[u8],
    operator: Operator,
    random: &mut Random,
    lengths: &[LengthField],
    other: &[u8],
) -> (Vec<u8>, usize) {
    let mut bytes = clean.to_vec();
    let at = random.below(clean.len());
    let segment = 1 + random.below(4096.min(clean.len()));
    let to = (at + segment).min(clean.len());
    let first = match operator {
        Operator::Cut => {
            bytes.truncate(at);
            at
        }
        Operator::Flip => {
            let flips = 1 + random.below(5);
            let mut first = clean.len();
            for _ in 0..flips {
                let at = random.below(clean.len());
                bytes[at] ^= 1 << random.below(8);
                first = first.min(at);
            }
            first
        }
        Operator::Zero => {
            bytes[at..to].fill(0);
            at
        }
        Operator::Duplicate => {
            bytes.splice(to..to, clean[at..to].iter().copied());
            to
        }
        Operator::Reorder => {
            let middle = at + (to - at) / 2;
            bytes[at..to].rotate_left(middle - at);
            at
        }
        Operator::Insert => {
            let noise: Vec<u8> = (0..segment).map(|_| random.next().to_le_bytes()[0]).collect();
            bytes.splice(at..at, noise);
            at
        }
        Operator::Grow | Operator::Shrink => {
            let Some(&(at, size)) = lengths.get(random.below(lengths.len())) else {
                return (bytes, clean.len());
            };
            let Some(field) = bytes.get_mut(at..at + size) else { return (bytes, clean.len()) };
            let mut word = [0; 4];
            word[..size].copy_from_slice(field);
            let length = u32::from_le_bytes(word);
            let by = 1 + u32::try_from(random.below(1 << (4 * size))).unwrap_or(0);
            let changed = match operator {
                Operator::Grow => length.saturating_add(by),
                _ => length.saturating_sub(by),
            };
            field.copy_from_slice(&changed.to_le_bytes()[..size]);
            at
        }
        Operator::Splice => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
            at
        }
        _ => unreachable!("an operator of pages"),
    };
    (bytes, first)
}
