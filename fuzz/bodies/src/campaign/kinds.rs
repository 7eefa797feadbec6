//! The kinds of damage, and the random numbers that place it.

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The end is missing.
    Cut,
    /// One to five bits are flipped.
    Flip,
    /// A range is zeroed.
    Zero,
    /// A range is there twice.
    Duplicate,
    /// Two ranges are swapped.
    Reorder,
    /// Random bytes are inserted.
    Insert,
    /// A length field is larger.
    Grow,
    /// A length field is smaller.
    Shrink,
    /// From some position on, another log of the same format follows.
    Splice,
    /// Every second sector of a part is one of another log.
    Interleave,
    /// Up to three pages are missing.
    LosePages,
    /// Up to three pages are there twice.
    DoublePages,
    /// The log ends in a page of which some sectors were written; the others are zeros.
    HalfPage,
    /// Up to five single bytes are missing.
    LoseBytes,
    /// Up to five single bytes are there twice.
    DoubleBytes,
    /// Copied as text: each line feed follows a carriage return.
    TextMode,
    /// The end is missing from the start of a page.
    CutAtPage,
}

impl Operator {
    /// All operators, in the order of the tables.
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

    /// The operators that keep track of untouched records.
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

    /// Returns a description for tables.
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

/// Pseudorandom numbers, the same on every machine (`SplitMix64`).
pub(super) struct Random(u64);

impl Random {
    /// Returns the generator for this log, operator and seed.
    pub(super) fn of(name: &str, operator: Operator, seed: u64) -> Self {
        let mut state = 0xCBF2_9CE4_8422_2325u64;
        for byte in name.bytes().chain([operator as u8]).chain(seed.to_le_bytes()) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        Self(state)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end as u64).max(1)).unwrap_or(0)
    }
}
