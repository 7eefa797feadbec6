//! The index: index data after each chunk, and the index section.

use super::log::{Bag, Own, index_data, talk, talker};
use crate::cases;
use crate::lay::lay;
use crate::rosbag::log::{Stamp, record};
use crate::rosbag::stamp;

cases! {
    "v2.0+unindexed" [K10] "whole chunks, index_pos 0: the recorder was killed between two chunks" =>
        chunks().unindexed();
    "v2.0+index-times-wrong" [K9 K11] "the times of messages are those of their records" =>
        indexed(|entries| entries[1].0 = stamp(9));
    "v2.0+index-offsets-wrong" [K9] "three bytes too far" =>
        indexed(|entries| entries.iter_mut().for_each(|entry| entry.1 += 3));
    "v2.0+index-offsets-outside" [K9] "behind the end of the chunk" =>
        indexed(|entries| entries.iter_mut().for_each(|entry| entry.1 += 0x7fff_0000));
    "v2.0+index-data-short" [K9] "one of three messages is not named" => indexed(|entries| entries.truncate(2));
    "v2.0+index-data-missing" [K9] "the second chunk has none" =>
        Bag::recorder().put(talk(0..3).plain()).put(talk(3..6).plain().unindexed()).close_differing();
    "v2.0+index-of-c-turtle" [K18] "20 bytes for each entry are claimed, and 12 follow" => {
        let claimed = |i: u32| {
            let (count, data) = (3_u32.to_le_bytes(), lay![[0, 1, 2].map(|n| (stamp(i + n), offset(i, n)))]);
            let mut bytes = index(&count, &data);
            let at = bytes.len() - data.len() - 4;
            bytes[at..at + 4].copy_from_slice(&60_u32.to_le_bytes());
            bytes
        };
        let bag = Bag::recorder().put(talk(0..3).plain().unindexed()).note("index_length").other(4, claimed(0));
        bag.put(talk(3..6).plain().unindexed()).note("index_length").other(4, claimed(3)).close()
    };
    "v2.0+index-data-of-another-length" [K18] "a count that is not that of the entries" => {
        let data = lay![[0, 1, 2].map(|n| (stamp(n), offset(0, n)))];
        let bag = Bag::recorder().put(talk(0..3).plain().unindexed()).note("index_length");
        bag.other(4, index(&2_u32.to_le_bytes(), &data)).put(talk(3..6).plain()).close()
    };
    "v2.0+field-twice" [B16] "in the header of an index data record" => {
        let (id, count, data) = ([0; 4], 3_u32.to_le_bytes(), lay![[0, 1, 2].map(|n| (stamp(n), offset(0, n)))]);
        let twice: [(&str, &[u8]); 5] =
            [("conn", &[9, 0, 0, 0]), ("conn", &id), ("count", &count), ("op", &[4]), ("ver", &[1, 0, 0, 0])];
        let bag = Bag::recorder().put(talk(0..3).plain().unindexed()).note("duplicate_field");
        bag.other(4, record(&twice, &data)).close()
    };
    "v2.0+chunk-info-times-wrong" [K9] "of one of two chunks" =>
        infos(|own| own.infos[0].span = (stamp(7), stamp(8)));
    "v2.0+chunk-info-counts-wrong" [K9] "one message too many" => infos(|own| own.infos[1].counts[0].1 += 1);
    "v2.0+chunk-info-position-wrong" [K9] "points into a chunk" => infos(|own| own.infos[1].pos += 5);
    "v2.0+chunk-info-missing" [K9] "leaves out a chunk, and the bag header too" =>
        infos(|own| drop(own.infos.remove(0)));
    "v2.0+index-pos-wrong" [K9] "points into a chunk" => {
        let pos = 4200;
        let bag = chunks();
        let at = bag.header_at();
        bag.note("index_differs").note_at(at, "index_pos_wrong").index_section().set_header(pos, 1, 2).section(pos, "differs")
    };
    "v2.0+index-pos-out-of-range" [K9] "points behind the end of the file" => {
        let bag = chunks();
        let at = bag.header_at();
        bag.note("index_differs").note_at(at, "index_pos_wrong").index_section().set_header(1 << 40, 1, 2)
            .section(1 << 40, "differs")
    };
    "v2.0+counts-wrong" [K9] "the bag header says seven connections and no chunk" => {
        let bag = chunks().note("index_differs");
        let pos = bag.at() as u64;
        bag.index_section().set_header(pos, 7, 0).section(pos, "differs")
    };
    "v2.0+old-index" [K19] "an index section between chunks, as appending without cutting it off leaves it" => {
        let bag = Bag::recorder().put(talk(0..3).plain());
        let infos = bag.own.infos.clone();
        let bag = bag.note("old_index").other(7, talker().record());
        infos.iter().fold(bag, |bag, info| bag.other(6, info.record())).put(talk(3..6).plain()).close_differing()
    };
}

/// Returns a bag of two chunks, not closed yet.
fn chunks() -> Bag {
    Bag::recorder().put(talk(0..3).plain()).put(talk(3..6).plain())
}

/// Returns a bag with changed index section.
fn infos(change: impl FnOnce(&mut Own)) -> Bag {
    chunks().change(change).close_differing()
}

/// Returns the offset in its chunk of message `n` of a chunk that starts with message `first`.
fn offset(first: u32, n: u32) -> u32 {
    let connection = if first == 0 { talker().record().len() } else { 0 };
    u32::try_from(connection + n as usize * talker().said(0).len()).expect("small")
}

/// Returns a bag with changed index data of its second chunk.
fn indexed(change: impl FnOnce(&mut Vec<(Stamp, u32)>)) -> Bag {
    let mut entries = [0, 1, 2].map(|n| (stamp(3 + n), offset(3, n))).to_vec();
    change(&mut entries);
    let chunk = talk(3..6).plain().index(|records| *records = vec![index_data(0, &entries)]);
    Bag::recorder().put(talk(0..3).plain()).put(chunk).close_differing()
}

/// Returns an index data record of the usual connection with this count.
fn index(count: &[u8], data: &[u8]) -> Vec<u8> {
    record(&[("conn", &[0; 4]), ("count", count), ("op", &[4]), ("ver", &[1, 0, 0, 0])], data)
}
