use super::*;
use crate::unit::Unit;
use crate::validate::validate;
use crate::writer::{ChannelSpec, LogSpec, set_counts};

/// Duration of a block of 20 rows at 1 kSPS, in nanoseconds.
const PERIOD: i64 = 20 * 1_003_520;

/// Size in bytes of a block of 20 rows with one value each.
const BLOCK: u64 = 32 + 20 * 4;
const HEADER: u64 = 56 + 4 + 28;

/// A byte that cannot be part of valid block times.
const NOISE: u8 = 0x7F;

fn scan(block_rows: u32, rows: u64) -> BlockScan {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let spec = LogSpec { block_rows, channels, ..LogSpec::new(1000) };
    let mut header = spec.header().unwrap();
    set_counts(&mut header, rows).unwrap();
    BlockScan::new(&validate(&header.to_bytes(), Some(HEADER)).unwrap().unwrap(), true)
}

/// Returns the times of a block that starts `after` nanoseconds after the first block.
fn times(after: i64) -> BlockTimes {
    let after = i128::from(after);
    BlockTimes::new(1_700_000_000_000_000_000 + after, 987_654_321_000 + after).unwrap()
}

fn timed_block(at: u64, number: u64) -> TimedBlock {
    TimedBlock { at, number, times: times(i64::try_from(number).unwrap() * PERIOD) }
}

fn bytes(len: u64, blocks: &[(u64, BlockTimes)]) -> Vec<u8> {
    let mut bytes = vec![NOISE; usize::try_from(len).unwrap()];
    for (at, times) in blocks {
        let at = usize::try_from(*at).unwrap();
        bytes[at..at + 32].copy_from_slice(zerocopy::IntoBytes::as_bytes(times));
    }
    bytes
}

#[test]
fn search_ranges_surround_the_next_three_blocks() {
    assert_eq!(scan(20, 100).ranges(), [120..65_737, 65_737..65_849, 65_849..65_961]);
    assert_eq!(scan(50_000, 500_000).ranges()[1..], [334_616..465_689, 534_648..665_721]);
}

#[test]
fn a_stream_buffers_the_search_ranges() {
    let next = |len: usize, eof| {
        let data = vec![NOISE; len];
        scan(20, 100_000).next(Window { data: &data, base: 0, eof })
    };
    let until = 65_961 + 2 * BLOCK + 32;
    assert_eq!((next(66_216, false), until), (Err(NeedMore(until)), 66_217));
    assert!(next(66_217, false).is_ok() && next(66_216, true).is_ok());
}

#[test]
fn searches_are_limited_by_the_bytes_read() {
    let budget = |budget| {
        let mut scan = scan(20, 100_000);
        scan.resync.budget = budget;
        scan.search(Window::whole(&bytes(70_000, &[])), None, PERIOD).unwrap();
        (scan.resync.searched_until, scan.resync.budget)
    };
    assert_eq!((budget(65_841), budget(65_840)), ((65_961, 0), (0, 65_840)));

    let mut scan = scan(20, 100);
    let shifted = [(0, HEADER), (1, HEADER + BLOCK - 3), (2, HEADER + 2 * BLOCK - 3)];
    let log = bytes(5000, &shifted.map(|(block, at)| (at, times(block * PERIOD))));
    let mut after_search = scan.clone();
    after_search.search(Window::whole(&log), Some(timed_block(HEADER, 0)), PERIOD).unwrap();
    let Ok(Step::LeftOut(left_out)) = scan.next(Window::whole(&log)) else { panic!("it is short") };
    assert_eq!((left_out.range, left_out.rows), (HEADER..HEADER + BLOCK - 3, 20));
    assert_eq!(scan.resync.budget, after_search.resync.budget + 2 * (BLOCK - 3));
    assert!(matches!(scan.next(Window::whole(&log)), Ok(Step::Block { .. })));
    assert_eq!(scan.resync.budget, after_search.resync.budget + 2 * (BLOCK - 3) + 2 * BLOCK);
    let last = scan.resync.reference;
    assert_eq!(last.map(|reference| reference.number), Some(2), "the last block that was found");
}

#[test]
fn candidates_get_block_numbers() {
    let of_times = |log: &[(u64, BlockTimes)], own, reference, before, counted| {
        let mut scan = BlockScan { before, ..scan(20, counted) };
        scan.resync.reference = reference;
        scan.at += before / 20 * BLOCK;
        let log_bytes = bytes(3000, log);
        let (at, times) = log[0];
        scan.candidate(Window::whole(&log_bytes), at, &times, own, PERIOD).unwrap().map(|it| it.number)
    };
    let fourth = [(HEADER + 4 * BLOCK + 40, times(4 * PERIOD))];
    let own = Some(timed_block(HEADER + 3 * BLOCK, 3));
    assert_eq!(of_times(&fourth, own, None, 60, 81), Some(4));
    assert_eq!(of_times(&fourth, own, None, 60, 80), None, "the header does not count it");
    assert_eq!(of_times(&fourth, Some(timed_block(0, 3)), None, 80, 200), None, "it is not a later one");
    // Without a reference block, the number of a block follows from its offset, if two more blocks
    // follow.
    let paused = |at| [0, 1, 2].map(|i: u64| (at + i * BLOCK, times(9_000_000 + i.cast_signed() * PERIOD)));
    assert_eq!(of_times(&paused(HEADER + 2 * BLOCK - 1), None, None, 0, 200), Some(2));
    assert_eq!(of_times(&paused(HEADER + 40), None, None, 0, 200), Some(1));
    assert_eq!(of_times(&paused(HEADER + 3 * BLOCK), None, Some(timed_block(HEADER, 0)), 20, 200), Some(3));
    assert_eq!(of_times(&paused(HEADER + 3 * BLOCK)[..2], None, None, 20, 200), None);
    assert_eq!(of_times(&paused(HEADER + 3 * BLOCK), None, Some(timed_block(HEADER, 1)), 20, 200), None);
}

#[test]
fn candidates_are_kept_until_a_later_one_confirms_them() {
    let search = |candidates: Vec<TimedBlock>, second: u64| {
        let log = bytes(70_000, &[(second, times(2 * PERIOD))]);
        let mut scan = scan(20, 100_000);
        scan.resync.candidates = candidates;
        let found = scan.search(Window::whole(&log), Some(timed_block(HEADER, 0)), PERIOD).unwrap();
        (found.map(|found| found.at), scan.resync.candidates, scan.resync.searched_until)
    };
    let second = HEADER + 2 * BLOCK - 4;
    let of_place = |at, number| search(vec![TimedBlock { number, ..timed_block(at, 1) }], second).0;
    for at in [HEADER + 108, HEADER + 32] {
        assert_eq!(of_place(at, 1), Some(at));
    }
    assert_eq!((of_place(HEADER + 31, 1), of_place(HEADER + 108, 0)), (None, None), "they are passed");
    assert_eq!(search(vec![timed_block(HEADER + 108, 90); 16], second).1.len(), 16, "and no more");
    // If valid times are found at the expected offset of a block, the search ends.
    let (found, candidates, searched_until) = search(Vec::new(), HEADER + 2 * BLOCK);
    assert_eq!((found, candidates.len(), searched_until), (None, 0, 0));
    // The search finds a block just before the end of the last range of offsets, but not at the
    // end.
    let at = scan(20, 100).ranges()[2].end;
    let found = |at: u64| {
        let blocks = [0, 1, 2].map(|i: u64| (at + i * BLOCK, times(i.cast_signed() * PERIOD)));
        let mut scan = scan(20, 100_000);
        scan.search(Window::whole(&bytes(70_000, &blocks)), None, PERIOD).unwrap().map(|it| it.at)
    };
    assert_eq!((found(at - 1), found(at)), (Some(at - 1), None));
}

#[test]
fn a_candidate_is_confirmed_by_the_next_block_or_the_end_of_the_rows() {
    let is_confirmed = |len: u64, blocks: &[(u64, BlockTimes)]| {
        let (log, candidate) = (bytes(len, blocks), timed_block(HEADER + BLOCK + 40, 1));
        scan(20, 100).is_confirmed(Window::whole(&log), &candidate, PERIOD).unwrap()
    };
    let next = HEADER + 2 * BLOCK + 40;
    assert!(!is_confirmed(next + 32, &[]) && is_confirmed(next + 31, &[]));
    assert!(is_confirmed(next + 32, &[(next, times(2 * PERIOD))]));

    let end = |len, run| BlockScan { run, ..scan(20, 100) }.end(Window::whole(&bytes(len, &[])));
    let first = BlockRun::from(HEADER);
    assert_eq!(end(HEADER + 2 * BLOCK + 32 + 13, first), HEADER + 2 * BLOCK + 32 + 12);
    assert_eq!(end(HEADER + 7 * BLOCK, first), HEADER + 5 * BLOCK);
    assert_eq!(end(HEADER + 7 * BLOCK, BlockRun { at: 300, before: 40, left_out: 20 }), 300 + 3 * BLOCK);
}

#[test]
fn nothing_is_left_out_if_rows_may_have_an_extra_word() {
    let resumes = |before: u64, left_out, first| {
        let number = before / 20;
        let at = HEADER + number * BLOCK;
        let follows = [0, 1, 2].map(|i| (at + i * BLOCK - i.min(1) * 4, timed_block(0, number + i).times));
        let mut scan = BlockScan { before, at, first: Some(first), ..scan(20, 1000) };
        scan.run.left_out = left_out;
        scan.check(Window::whole(&bytes(5000, &follows)), PERIOD).unwrap().is_some()
    };
    let (earlier, later, noise) = (times(0), times(900 * PERIOD), bytes(32, &[]));
    let noise = *BlockTimes::ref_from_bytes(&noise).unwrap();
    for (before, left_out) in [(20, 0), (40, 20)] {
        assert!(resumes(before, left_out, earlier) && resumes(before, left_out, noise));
        assert!(!resumes(before, left_out, later), "the second block does not follow the first");
    }
    assert!(resumes(40, 0, later) && resumes(60, 20, later), "it is not the second block");
}

#[test]
fn the_rest_after_left_out_blocks_must_have_the_counted_length() {
    let (at, own) = (HEADER + 4 * BLOCK, times(0));
    let last = |len: u64, eof, left_out, next: &[(u64, BlockTimes)]| {
        let log = bytes(len, &[&[(at, own)], next].concat());
        let mut scan = BlockScan { before: 80, at, ..scan(20, 87) };
        scan.run.left_out = left_out;
        let window = Window { eof, ..Window::whole(&log) };
        scan.check_last(window).map(|left_out| left_out.map(|it| (it.range, it.expected, it.rows)))
    };
    // According to the header, the last block has seven rows.
    let end = at + 32 + 28;
    let until = end + MAX_SHIFT;
    for whole in [end, at + BLOCK, until + 1] {
        assert_eq!(last(whole, true, 20, &[]), Ok(None));
    }
    for wrong in [end - 1, end + 1, end + 40, until] {
        assert_eq!(last(wrong, true, 20, &[]), Ok(Some((at..wrong, 60, 7))));
        assert_eq!(last(wrong, true, 0, &[]), Ok(None), "no byte is known to be missing");
    }
    assert_eq!(last(end + 40, true, 20, &[(end, times(7 * 1_003_520))]), Ok(None), "blocks follow");
    assert_eq!(last(until, false, 20, &[]), Err(NeedMore(until + 1)));
    assert_eq!(last(until + 1, false, 20, &[]), Ok(None));
}

/// No block follows the last block that the header counts. So bytes after this block must not be
/// taken for block times.
#[test]
fn bytes_after_the_last_counted_block_are_not_block_times() {
    let mut scan = scan(20, 40);
    scan.run.left_out = 20;
    assert!(!scan.is_last(0) && scan.is_last(1) && scan.is_last(2));
    let log = bytes(HEADER + 2 * BLOCK + 40, &[(HEADER, times(0)), (HEADER + BLOCK, times(PERIOD))]);
    (scan.at, scan.before) = (HEADER + BLOCK, 20);
    let left_out = scan.check(Window::whole(&log), PERIOD).unwrap().unwrap();
    assert_eq!((left_out.range, left_out.rows), (HEADER + BLOCK..HEADER + 2 * BLOCK + 40, 20));
}

#[test]
fn messages_state_the_bytes_and_rows_left_out() {
    let text = |range, rows| LeftOut { range, expected: 112, rows }.text(7);
    assert_eq!(text(10..119, 20), "20 rows before row 7 are lost, because the block is 3 bytes too short");
    assert_eq!(text(10..123, 1), "1 row before row 7 is lost, because the block is 1 byte too long");
}
