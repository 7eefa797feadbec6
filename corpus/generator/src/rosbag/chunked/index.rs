//! Cases about the index, which consists of index data after each chunk and the index section.

use super::prelude::*;

cases! {
    "v2.0+unindexed" [K10] "whole chunks, index_pos 0: the recorder was killed between two chunks" =>
        with_second(talk(3..6)).unindexed();
    "v2.0+index-times-wrong" [K9 K11] "the times of messages are those of their records" =>
        indexed(|entries| entries[1].0 = stamp(9));
    "v2.0+index-offsets-wrong" [K9] "three bytes too far" =>
        indexed(|entries| entries.iter_mut().for_each(|entry| entry.1 += 3));
    "v2.0+index-offsets-outside" [K9] "behind the end of the chunk" =>
        indexed(|entries| entries.iter_mut().for_each(|entry| entry.1 += 0x7fff_0000));
    "v2.0+index-data-short" [K9] "one of three messages is not named" => indexed(|entries| entries.truncate(2));
    "v2.0+index-data-missing" [K9] "the second chunk has none" =>
        with_second(talk(3..6).plain().unindexed()).close_differing();
    "v2.0+index-of-c-turtle" [K18] "20 bytes for each entry are claimed, and 12 follow" => {
        let claimed = |i: u32| {
            let bytes = index_data(0, &entries(i));
            let at = bytes.len() - 3 * 12 - 4;
            bytes.with(|bytes| bytes[at] = 60)
        };
        let chunk = |i: u32| talk(i..i + 3).plain().unindexed();
        let step = |bag: Bag, i: u32| bag.put(chunk(i)).note("index_length").other(4, claimed(i));
        Bag::recorder().each([0, 3], step).close()
    };
    "v2.0+index-data-of-another-length" [K18] "a count that is not that of the entries" => {
        let bag = Bag::with([talk(0..3).plain().unindexed()]).note("index_length");
        bag.other(4, index_data_with(0, 2, &lay![entries(0)])).put(talk(3..6)).close()
    };
    "v2.0+field-twice" [B16] "in the header of an index data record" => {
        let twice: &Fields<'_> =
            &[("conn", &9_u32), ("conn", &0_u32), ("count", &3_u32), ("op", &4_u8), ("ver", &1_u32)];
        let bag = Bag::with([talk(0..3).plain().unindexed()]).note("duplicate_field");
        bag.other(4, record(twice, lay![entries(0)])).close()
    };
    "v2.0+chunk-info-times-wrong" [K9] "of one of two chunks" =>
        infos(|index| index.infos[0].span = (stamp(7), stamp(8)));
    "v2.0+chunk-info-counts-wrong" [K9] "one message too many" => infos(|index| index.infos[1].counts[0].1 += 1);
    "v2.0+chunk-info-position-wrong" [K9] "points into a chunk" => infos(|index| index.infos[1].pos += 5);
    "v2.0+chunk-info-missing" [K9] "leaves out a chunk, and the bag header too" =>
        infos(|index| drop(index.infos.remove(0)));
    "v2.0+index-pos-wrong" [K9] "points into a chunk" =>
        index_at(with_second(talk(3..6)).note_header("index_pos_wrong"), 4200, 1, 2);
    "v2.0+index-pos-out-of-range" [K9] "points behind the end of the file" =>
        index_at(with_second(talk(3..6)).note_header("index_pos_wrong"), 1 << 40, 1, 2);
    "v2.0+counts-wrong" [K9] "the bag header says seven connections and no chunk" => {
        let pos = with_second(talk(3..6)).pos();
        index_at(with_second(talk(3..6)), pos, 7, 0)
    };
    "v2.0+old-index" [K19] "an index section between chunks, as appending without cutting it off leaves it" => {
        let bag = Bag::with([talk(0..3)]);
        let info = bag.own.index.infos[0].record();
        bag.note("old_index").other(7, talker().record).other(6, info).put(talk(3..6)).close_differing()
    };
}

/// Returns a bag with changed index section.
fn infos(change: impl FnOnce(&mut Index)) -> Bag {
    with_second(talk(3..6)).change(change).close_differing()
}

/// Returns the offset of message `n` in a chunk that starts with message `first`.
fn offset(first: u32, n: u32) -> u32 {
    let connection = if first == 0 { talker().record.len() } else { 0 };
    u32_of(connection + n as usize * talker().said(0).len())
}

/// Returns the index entries of a chunk with three messages from message `first`.
fn entries(first: u32) -> Vec<(Stamp, u32)> {
    [0, 1, 2].map(|n| (stamp(first + n), offset(first, n))).into()
}

/// Closes a bag whose bag header has this index position and these counts, which are wrong.
fn index_at(bag: Bag, pos: u64, connections: u32, chunks: u32) -> Bag {
    bag.note("index_differs").index_section().set_counts(pos, connections, chunks).section(pos, "differs")
}

/// Returns a bag with changed index data of its second chunk.
fn indexed(change: impl FnOnce(&mut Vec<(Stamp, u32)>)) -> Bag {
    let mut entries = entries(3);
    change(&mut entries);
    let chunk = talk(3..6).plain().with(|chunk| chunk.index = vec![index_data(0, &entries)]);
    with_second(chunk).close_differing()
}
