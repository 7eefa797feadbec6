//! Bags cut at every length and damaged at every byte: nothing panics, nothing before the damage is
//! lost.

mod support;

use rosbag12::{BagReader, Version};
use rovelog_core::{Bytes, LogReader, Select};
use rovelog_testing::{Content, Log, content, flips};
use support::{LOGS, open, try_open};

/// A message and where it is.
type Seen = (u64, Content);

fn records(bag: &BagReader) -> Vec<Seen> {
    bag.records_in_file_order().map(|record| (record.offset, content(&record))).collect()
}

/// Opens what is left of a bag; every byte of it must be accounted for.
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

/// Bags without damage of their own, of which what follows a byte cannot change what is before it.
fn sound() -> impl Iterator<Item = (Log, BagReader)> {
    // A cut costs these their connections, and the messages their topics.
    let at_end = "v2.0+connections-only-at-the-end";
    let logs = LOGS
        .corpus()
        .into_iter()
        .filter(move |log| !log.name.starts_with("compressed") && log.name != at_end);
    let opened = logs.filter_map(|log| try_open(&log.bytes).map(|bag| (log, bag)));
    opened.filter(|(_, bag)| bag.info().lost.losses == 0)
}

/// Returns every length of a small bag, some lengths of the padding of a large one.
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
                // Without its version line and its first record a bag is refused.
                assert!(len < 17 || log.name.contains("version-line-"), "{what} does not open");
                continue;
            };
            let got = records(&cut);
            // A message is whole where the next one starts before the cut; the last may end at it. Those of a
            // compressed chunk start where the chunk does.
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
        // There are many bags of V2.0, and opening one costs more.
        let step = if whole.version() == Version::V2_0 { 11 } else { 1 };
        for (at, mask, bytes) in flips(&log.bytes, steps(log.bytes.len()).step_by(step)) {
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

/// Both reference readers report a bag that was cut before its index as empty, without an error.
#[test]
fn real_bags_cut_at_a_hundred_places() {
    for log in LOGS.real().into_iter().filter(|log| log.name.starts_with("real_scan")) {
        let whole = open(&log.bytes);
        let ends: Vec<_> =
            whole.records_in_file_order().map(|r| r.offset + 121 + 4 + r.payload.len() as u64).collect();
        for i in 1..100usize {
            // Not at round places.
            let len = (log.bytes.len() * i / 100 + i * 7).min(log.bytes.len());
            let cut = reopen(&log.bytes.slice(..len), &log.name).expect("it has its version line");
            let want = ends.iter().filter(|end| **end <= len as u64).count() as u64;
            assert_eq!(cut.info().records, want, "{} cut at {len}", log.name);
        }
    }
}
