//! Damage caused by file systems or by copying files. A damaged log is described as a list of
//! pieces. Each piece is a range of the undamaged log, or contains bytes from elsewhere. So the
//! records that remain untouched are known.

use std::ops::Range;

use super::operators::{Operator, Random};

/// Size in bytes of a page of memory, and of a cluster of a file system.
const PAGE: usize = 4096;

/// Size in bytes of a disk sector.
const SECTOR: usize = 512;

/// A piece of a damaged log.
pub(super) enum Piece {
    /// A range of bytes from the undamaged log.
    Own(Range<usize>),
    /// Bytes that are not from the undamaged log.
    Foreign(Vec<u8>),
}

/// Returns the pieces of a damaged log. Returns `None` if the kind of damage is not one of
/// [`Operator::PAGES`].
pub(super) fn pieces(
    clean: &[u8],
    operator: Operator,
    random: &mut Random,
    other: &[u8],
) -> Option<Vec<Piece>> {
    let pages = clean.len().div_ceil(PAGE);
    Some(match operator {
        Operator::Interleave => interleaved(clean, random, other),
        Operator::LosePages => {
            let mut lost: Vec<_> = (0..3).map(|_| random.below(pages)).collect();
            lost.sort_unstable();
            lost.dedup();
            let mut kept = Vec::new();
            let mut from = 0;
            for page in lost {
                kept.push(Piece::Own(from..page * PAGE));
                from = ((page + 1) * PAGE).min(clean.len());
            }
            kept.push(Piece::Own(from..clean.len()));
            kept
        }
        Operator::DoublePages => {
            let mut twice: Vec<_> = (0..3).map(|_| random.below(pages)).collect();
            twice.sort_unstable();
            twice.dedup();
            let mut kept = Vec::new();
            let mut from = 0;
            for page in twice {
                let end = ((page + 1) * PAGE).min(clean.len());
                kept.push(Piece::Own(from..end));
                from = page * PAGE;
            }
            kept.push(Piece::Own(from..clean.len()));
            kept
        }
        Operator::HalfPage => {
            // The last page consists of some sectors that were written, followed by zeros.
            let page = random.below(pages) * PAGE;
            let written = (page + SECTOR * random.below(PAGE / SECTOR)).min(clean.len());
            vec![Piece::Own(0..written), Piece::Foreign(vec![0; page + PAGE - written.min(page + PAGE)])]
        }
        Operator::LoseBytes | Operator::DoubleBytes => {
            let mut places: Vec<_> = (0..5).map(|_| random.below(clean.len())).collect();
            places.sort_unstable();
            places.dedup();
            let mut kept = Vec::new();
            let mut from = 0;
            for at in places {
                if operator == Operator::LoseBytes {
                    kept.push(Piece::Own(from..at));
                    from = at + 1;
                } else {
                    kept.push(Piece::Own(from..at + 1));
                    from = at;
                }
            }
            kept.push(Piece::Own(from..clean.len()));
            kept
        }
        Operator::TextMode => {
            let mut kept = Vec::new();
            let mut from = 0;
            for at in (0..clean.len()).filter(|at| clean[*at] == b'\n') {
                kept.push(Piece::Own(from..at));
                kept.push(Piece::Foreign(vec![b'\r']));
                from = at;
            }
            kept.push(Piece::Own(from..clean.len()));
            kept
        }
        Operator::CutAtPage => vec![Piece::Own(0..random.below(pages) * PAGE)],
        _ => return None,
    })
}

/// In a part of the log, replaces every second sector by a sector of the log `other`. This happens
/// if a file system assigns the same clusters to two files.
fn interleaved(clean: &[u8], random: &mut Random, other: &[u8]) -> Vec<Piece> {
    let sectors = clean.len().div_ceil(SECTOR);
    let from = random.below(sectors);
    let to = (from + 2 * (1 + random.below(16))).min(sectors);
    let mut kept = vec![Piece::Own(0..from * SECTOR)];
    for sector in from..to {
        let range = sector * SECTOR..((sector + 1) * SECTOR).min(clean.len());
        let foreign = range.start % other.len().max(1)
            ..(range.start % other.len().max(1) + range.len()).min(other.len());
        kept.push(if (sector - from).is_multiple_of(2) {
            Piece::Foreign(other[foreign].to_vec())
        } else {
            Piece::Own(range)
        });
    }
    kept.push(Piece::Own((to * SECTOR).min(clean.len())..clean.len()));
    kept
}

/// Returns the bytes of the damaged log, and the offset of the first byte that differs from the
/// undamaged log.
pub(super) fn joined(clean: &[u8], pieces: &[Piece]) -> (Vec<u8>, usize) {
    let mut bytes = Vec::with_capacity(clean.len());
    for piece in pieces {
        match piece {
            Piece::Own(range) => bytes.extend_from_slice(&clean[range.clone()]),
            Piece::Foreign(foreign) => bytes.extend_from_slice(foreign),
        }
    }
    let first = bytes.iter().zip(clean).take_while(|(a, b)| a == b).count();
    (bytes, first)
}

/// Returns the ranges of the undamaged log that remain untouched. Adjacent pieces are joined, so
/// that a record across their border counts as untouched.
pub(super) fn untouched(pieces: &[Piece]) -> Vec<Range<usize>> {
    let mut own: Vec<Range<usize>> = Vec::new();
    let mut continues = false;
    for piece in pieces {
        match piece {
            Piece::Own(range) if range.is_empty() => {}
            Piece::Own(range) => {
                match own.last_mut() {
                    Some(last) if continues && last.end == range.start => last.end = range.end,
                    _ => own.push(range.clone()),
                }
                continues = true;
            }
            Piece::Foreign(bytes) => continues &= bytes.is_empty(),
        }
    }
    own
}
