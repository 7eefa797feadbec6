//! Damage that logs suffer in practice, as byte edits: the same seed gives the same damage.

use rovelog::LogReader;

use super::kinds::{Operator, Random};
use super::pages;

/// A length field: its offset and size.
type LengthField = (usize, usize);

/// Returns length fields of a log: those of up to a thousand records, and those of the header.
pub(super) fn length_fields(format: &str, log: &dyn LogReader) -> Vec<LengthField> {
    if format == "rld" {
        // header_length, data_block_size, data_block_count, sample_count, comment_length
        return vec![(6, 2), (8, 4), (12, 4), (16, 4), (0x30, 4)];
    }
    // Each record starts with its length.
    let size = if format == "ulog" { 2 } else { 4 };
    let records = log.records(&rovelog::Select::all()).take(1000).filter_map(Result::ok);
    records.filter_map(|record| Some((usize::try_from(record.offset).ok()?, size))).collect()
}

/// Returns the damaged log, and the offset where the damage starts.
pub(super) fn damaged(
    clean: &[u8],
    operator: Operator,
    random: &mut Random,
    lengths: &[LengthField],
    other: &[u8],
) -> (Vec<u8>, usize) {
    if let Some(pieces) = pages::pieces(clean, operator, random, other) {
        return pages::joined(clean, &pieces);
    }
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
        _ => unreachable!("damage in pieces returned above"),
    };
    (bytes, first)
}
