//! Tests small bags that are truncated at every length or damaged at every byte, and large bags that
//! are truncated or damaged at some bytes. Reading must not panic, and no message before the damage
//! may be lost.

mod support;

use rosbag12::{BagReader, Version};
use rovelog_core::{Bytes, LogReader, Select};
use rovelog_testing::{Content, Log, bit_flips, content};
use support::{LOGS, open, try_open};

/// A message: its offset and its content.
type Seen = (u64, Content);

fn records(bag: &BagReader) -> Vec<Seen> {
    bag.records_in_file_order().map(|record| (record.offset, content(&record))).collect()
}

/// Opens a damaged bag, and checks that the result accounts for every byte. Returns `None` if the
/// bag is rejected.
fn reopen(bytes: &Bytes, what: &str) -> Option<BagReader> {
    let len = bytes.len() as u64;
    let bag = try_open(bytes)?;
    bag.records_in_file_order().for_each(|record| drop(record.value()));
    assert_eq!(bag.records(&Select::all()).count() as u64, bag.info().records, "{what}");
    let (mut at, mut before) = (0, None);
    for (part, range) in bag.ledger() {
        assert!(range.start == at && range.end > at, "{what}: {part:?} {range:?} behind {at}");
        assert_ne!(before, Some(part), "{what}: neighbours at {at} of one kind");
        (at, before) = (range.end, Some(part));
    }
    assert_eq!(at, len, "{what}: bytes are not accounted for");
    Some(bag)
}

/// Returns intact bags in which later bytes do not change how earlier bytes are read.
fn sound() -> impl Iterator<Item = (Log, BagReader)> {
    // The connections of this bag are declared only in its index. Without the index, the topics of
    // its messages change.
    let at_end = "v2.0+connections-only-at-the-end";
    let logs = LOGS
        .corpus()
        .into_iter()
        .filter(move |log| !log.name.starts_with("compressed") && log.name != at_end);
    let opened = logs.filter_map(|log| try_open(&log.bytes).map(|bag| (log, bag)));
    opened.filter(|(_, bag)| bag.info().lost.losses == 0)
}

/// Returns the lengths to which a bag of `len` bytes is truncated. These are all lengths, except
/// within the padding of a large bag, where only some lengths are tested.
fn steps(len: usize) -> impl Iterator<Item = usize> {
    (0..len).filter(move |at| !(100..4100).contains(at) || at % 97 == 0)
}

#[test]
fn a_bag_cut_anywhere_is_read_up_to_the_cut() {
    let mut tried = 0;
    for (log, whole) in sound() {
        let all = records(&whole);
        for len in steps(log.bytes.len()) {
            let what = format!("{} cut at {len}", log.name);
            let Some(cut) = reopen(&log.bytes.slice(..len), &what) else {
                // A truncated bag may be rejected only if its version line and its first record are
                // both missing.
                assert!(len < 17 || log.name.contains("version-line-"), "{what} does not open");
                continue;
            };
            let got = records(&cut);
            // A message must be found if the next message starts before the end of the truncated
            // bag. The last message must be found if it ends there. Messages of a compressed chunk
            // all have the offset of the chunk.
            let next =
                |i: usize| all[i..].iter().find(|next| next.0 > all[i].0).map_or(u64::MAX, |next| next.0);
            let sure = (0..all.len()).take_while(|i| next(*i) <= len as u64).count();
            let possible = all.iter().take_while(|seen| seen.0 < len as u64).count();
            assert!(
                (sure..=possible).contains(&got.len()),
                "{what}: {} messages, {sure} are sure",
                got.len()
            );
            assert!(all.starts_with(&got), "{what}: other messages");
            tried += 1;
        }
    }
    assert!(tried > 20_000, "only {tried} cuts were tried");
}

#[test]
fn a_flipped_byte_leaves_everything_before_it() {
    let mut tried = 0;
    for (log, whole) in sound().filter(|(log, _)| log.bytes.len() < 8192) {
        let all = records(&whole);
        // Fewer offsets are tested for V2.0, because there are more V2.0 bags, and opening one
        // takes longer.
        let step = if whole.version() == Version::V2_0 { 11 } else { 1 };
        for (at, mask, bytes) in bit_flips(&log.bytes, steps(log.bytes.len()).step_by(step)) {
            let what = format!("{} byte {at} ^ {mask:#x}", log.name);
            let Some(flipped) = reopen(&bytes, &what) else {
                assert!(at < 17, "{what} does not open");
                continue;
            };
            if flipped.version() == Version::V1_2 && at >= 17 {
                let want = all.windows(2).take_while(|two| two[1].0 <= at as u64).map(|two| &two[0]);
                let got = records(&flipped);
                assert_eq!(want.clone().zip(&got).filter(|(a, b)| a == b).count(), want.count(), "{what}");
            }
            tried += 1;
        }
    }
    assert!(tried > 60_000, "only {tried} flips were tried");
}

/// The two reference readers report a bag that was truncated before its index as empty, without an
/// error.
#[test]
fn real_bags_cut_at_a_hundred_places() {
    for log in LOGS.real().into_iter().filter(|log| log.name.starts_with("real_scan")) {
        let whole = open(&log.bytes);
        let ends: Vec<_> =
            whole.records_in_file_order().map(|r| r.offset + 121 + 4 + r.payload.len() as u64).collect();
        for i in 1..100usize {
            // Add a multiple of 7, so that not all lengths are round numbers.
            let len = (log.bytes.len() * i / 100 + i * 7).min(log.bytes.len());
            let cut = reopen(&log.bytes.slice(..len), &log.name).expect("it has its version line");
            let want = ends.iter().filter(|end| **end <= len as u64).count() as u64;
            assert_eq!(cut.info().records, want, "{} cut at {len}", log.name);
        }
    }
}
