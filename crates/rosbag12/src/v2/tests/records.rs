//! Tests of iterating over the records of damaged chunks.

use rovelog_testing::Random;

use super::made::{chunk, connection, entries_of, message, unknown};
use crate::message::usize_of;
use crate::v2::content::IndexRange;
use crate::v2::records::{ChunkItem, ChunkRecords, Hints};

/// An item found in a chunk: its kind, its offset, and a third value. The third value is the end of
/// the item, the connection id, or the op (record type).
type Seen = (&'static str, usize, usize);

const LINE: &[u8] = b"#ROSBAG V2.0\n";

/// Returns a message record of 50 + `more` bytes for the connection id `conn`.
fn of(conn: u32, more: usize) -> Vec<u8> {
    message(conn, 7, &vec![b'x'; 4 + more])
}

/// Returns a message record with the payload `payload`. Its length field states `more` additional
/// bytes.
fn longer(conn: u32, payload: &[u8], more: usize) -> Vec<u8> {
    let mut record = message(conn, 7, payload);
    let len = u32::try_from(payload.len() + more).unwrap();
    record[42..46].copy_from_slice(&len.to_le_bytes());
    record
}

/// Returns a message record whose header is damaged.
fn broken(conn: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = message(conn, 7, payload);
    record[8] = 0;
    record
}

/// Returns the offset of each record, and all records joined in one buffer.
fn laid(records: &[Vec<u8>]) -> (Vec<usize>, Vec<u8>) {
    let starts = records.iter().scan(0, |at, record| {
        *at += record.len();
        Some(*at - record.len())
    });
    (starts.collect(), records.concat())
}

/// Scans the records in `data`. `indexed` are the connection ids and offsets that the index data of
/// the chunk list.
fn scan(data: &[u8], indexed: &[(u32, usize)], declared_len: u64) -> Vec<Seen> {
    let index = indexed.iter().map(|(conn, place)| (*conn, vec![(7, u32::try_from(*place).unwrap())]));
    scan_indexed(data, &index.collect::<Vec<_>>(), u32::MAX, declared_len)
}

/// Scans a chunk with index data in three ways: like the reader of files, item by item like a
/// stream, and like the reader of files when it repeats a scan with known losses. All three scans
/// must find the same items.
fn scan_indexed(data: &[u8], indexed: &[(u32, Vec<(u32, u32)>)], had: u32, declared_len: u64) -> Vec<Seen> {
    let mut index: Vec<IndexRange> = Vec::new();
    let mut file = Vec::new();
    for (conn, entries) in indexed {
        let data_at = file.len() as u64;
        file.extend(entries_of(entries));
        index.push(IndexRange { conn: *conn, data_at, end: file.len() as u64 });
    }
    let begin = || ChunkRecords::new(data, Hints::new(&index, &file, had), declared_len, None);
    let seen = seen_by(begin(), data.len(), true, |records| records);
    // A stream has no index data, and creates a new iterator after each item.
    let from_place = |records: ChunkRecords<'_>| begin().at(records.place());
    let piped = if indexed.is_empty() {
        seen_by(begin(), data.len(), false, from_place)
    } else {
        seen_by(begin(), data.len(), false, |records| records)
    };
    assert_eq!(seen, piped);
    let as_lost = |(kind, at, end): &Seen| (if *kind == "tail" { "lost" } else { *kind }, *at, *end);
    let seen_lost: Vec<_> = seen.iter().map(as_lost).collect();
    let lost = seen_lost.iter().filter(|(kind, ..)| *kind == "lost");
    let lost: Vec<_> = lost.map(|(_, at, end)| *at as u64..*end as u64).collect();
    assert_eq!(seen_by(begin().with_known_lost(&lost), data.len(), true, |records| records), seen_lost);
    seen
}

/// Returns all items of a chunk with `len` bytes. If `at_once` is true, consecutive messages are
/// read with one call. `go_on` returns the iterator that continues after each item.
fn seen_by<'a>(
    mut records: ChunkRecords<'a>,
    len: usize,
    at_once: bool,
    go_on: impl Fn(ChunkRecords<'a>) -> ChunkRecords<'a>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        if at_once {
            records.messages(|message| seen.push(("message", usize_of(message.at), usize_of(message.end()))));
        }
        let Some(item) = records.next() else { return seen };
        seen.push(match item {
            ChunkItem::Message(message) => ("message", usize_of(message.at), usize_of(message.end())),
            ChunkItem::Connection { at, record } => ("connection", at, record.conn as usize),
            ChunkItem::Other { at, op, .. } => ("other", at, op.into()),
            ChunkItem::Lost { at, end } => ("lost", at, end),
            ChunkItem::Tail { at } => ("tail", at, len),
        });
        records = go_on(records);
    }
}

/// Checks the items that a scan finds in `records`. `want` has the expected kind of each record, or
/// an empty string if the record is part of the loss before it.
fn check(records: &[Vec<u8>], indexed: &[(u32, usize)], declared_len: u64, want: &[&'static str]) {
    let (starts, data) = laid(records);
    let indexed: Vec<_> = indexed.iter().map(|(conn, number)| (*conn, starts[*number])).collect();
    assert_eq!(scan(&data, &indexed, declared_len), kinds_of(records, want));
}

fn kinds_of(records: &[Vec<u8>], want: &[&'static str]) -> Vec<Seen> {
    assert_eq!(records.len(), want.len());
    let (starts, data) = laid(records);
    let mut expected: Vec<Seen> = Vec::new();
    for (number, kind) in want.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(data.len());
        match (*kind, expected.last_mut()) {
            ("", Some(last)) => last.2 = end,
            ("connection", _) => expected.push((kind, starts[number], 1)),
            _ => expected.push((kind, starts[number], end)),
        }
    }
    expected
}

#[test]
fn records_of_all_kinds_are_returned() {
    let records = [connection(3, "/a"), of(3, 9), message(3, 8, b""), unknown(9, b"data"), of(3, 5)];
    let (at, data) = laid(&records);
    let want = [
        ("connection", at[0], 3),
        ("message", at[1], at[2]),
        ("message", at[2], at[3]),
        ("other", at[3], 9),
        ("message", at[4], data.len()),
    ];
    assert_eq!(scan(&data, &[], 0), want);
    assert_eq!(scan(&data, &[(3, at[1]), (3, at[2]), (3, at[4])], 0), want);
}

#[test]
fn scanning_resumes_at_the_record_after_a_damaged_header() {
    check(&[broken(0, b"xx"), of(0, 1), of(0, 2)], &[], 0, &["lost", "message", "message"]);
    check(&[of(0, 1), broken(0, b"xx"), of(0, 2)], &[], 0, &["message", "lost", "message"]);
    check(&[of(0, 1), broken(0, b"xx")], &[], 0, &["message", "lost"]);
    let records = [broken(0, b"xx"), of(0, 1), of(0, 2), of(0, 3), of(0, 4)];
    check(&records, &[], 0, &["lost", "message", "message", "message", "message"]);
    check(&[vec![38, 0, 0]], &[], 0, &["tail"]);
    check(&[of(0, 1), of(0, 1)[..30].to_vec()], &[], 0, &["message", "tail"]);
}

/// If the message ends within the size in the chunk header, its length is right, and the chunk was
/// truncated. If not, the length of the message is damaged.
#[test]
fn a_message_beyond_the_end_is_cut_or_damaged() {
    let first = of(0, 1);
    let records = |count: usize, behind: &[u8]| {
        let mut records = vec![first.clone(), longer(0, b"page", 1000)];
        records.extend(std::iter::repeat_n(of(1, 0), count));
        records.push(behind.to_vec());
        records.retain(|record| !record.is_empty());
        records
    };
    let (cut, end) = (records(1, b""), first.len() as u64 + 50 + 1000);
    check(&cut, &[], end, &["message", "tail", ""]);
    check(&cut, &[], end - 1, &["message", "lost", "message"]);
    check(&cut, &[], 0, &["message", "lost", "message"]);
    check(&cut, &[(0, 0)], end, &["message", "lost", "message"]);
    check(&records(3, b""), &[], 0, &["message", "lost", "message", "message", "message"]);
    let many = [&["message", "lost"][..], &["message"; 15]].concat();
    check(&records(15, b""), &[], 0, &many);
    check(&records(1, b"q"), &[], 0, &["message", "tail", "", ""]);
    // If the chunk was never closed, a chain of adjacent records may end with a truncated record.
    let last = longer(1, b"x", 1000);
    let head = &last[..last.len() - 1];
    check(&records(1, head), &[], 0, &["message", "lost", "message", "tail"]);
    check(&records(1, head), &[], 2, &["message", "tail", "", ""]);
    check(&records(0, head), &[], 0, &["message", "tail", ""]);
    check(&records(2, &head[..3]), &[], 0, &["message", "tail", "", "", ""]);
    check(&records(3, &head[..3]), &[], 0, &["message", "lost", "message", "message", "message", "tail"]);
    // A chain of adjacent records may also end at more damage.
    let more = [b"q", &of(1, 0)[..]].concat();
    check(&records(2, &more), &[], 0, &["message", "tail", "", "", ""]);
    let mut damaged = records(3, b"q");
    damaged.push(of(1, 0));
    check(&damaged, &[], 0, &["message", "lost", "message", "message", "message", "lost", "message"]);
    // The payload is a whole bag. It contains a chunk record, which never occurs inside a chunk.
    let inner = records(3, b"").split_off(2).concat();
    let bag = [first.clone(), longer(0, b"page", 1000), chunk("none", 150, &inner)];
    check(&bag, &[], 0, &["message", "tail", ""]);
    check(&records(0, b""), &[(0, 0)], 0, &["message", "tail"]);
}

/// Without index data, a chain of adjacent records in a payload shows that the length of the
/// message is damaged, if the chain leads beyond the stated end of the message.
#[test]
fn a_length_that_is_too_large_does_not_hide_records() {
    for start in [&b""[..], LINE] {
        let swallowing = longer(0, start, 50 + 7);
        let records = [of(0, 1), swallowing.clone(), of(0, 0), of(0, 3), of(0, 4)];
        check(&records, &[], 0, &["message", "lost", "message", "message", "message"]);
        // No record follows the last record of the chain, so the payload may be a whole bag.
        let (at, data) = laid(&[of(0, 1), swallowing, of(0, 0), of(0, 3), b"garbage".to_vec(), of(0, 4)]);
        let end = at[2] + 57;
        let want = [
            ("message", 0, at[1]),
            ("message", at[1], end),
            ("lost", end, at[5]),
            ("message", at[5], data.len()),
        ];
        assert_eq!(scan(&data, &[], 0), want);
    }
    // The payload is a whole bag, and damage follows the message.
    let bag = [of(1, 0), of(1, 0)].concat();
    let records = [of(0, 1), message(0, 7, &bag), broken(0, b"x"), of(0, 2)];
    check(&records, &[], 0, &["message", "message", "lost", "message"]);
}

/// The payload of a valid message is not searched for records.
#[test]
fn a_record_that_starts_in_a_valid_payload_is_ignored() {
    let next = of(0, 1);
    let records = [message(0, 7, &longer(1, b"", next.len())), next, of(0, 2)];
    check(&records, &[], 0, &["message"; 3]);
    check(&records, &[(0, 0), (0, 1), (0, 2)], 0, &["message"; 3]);
    check(&records, &[(0, 2)], 0, &["message"; 3]);
}

/// The index data list the offsets of messages, so a message is found even if no record follows it.
#[test]
fn scanning_resumes_at_indexed_messages() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let all = [(0, 0), (0, 1), (0, 2)];
    let kinds = ["message", "lost", "message", "lost"];
    for swallowing in [longer(0, b"page", 50 + 7), longer(0, b"", 50 + 7)] {
        check(&[of(0, 1), swallowing, of(0, 0), garbage.clone()], &all, 0, &kinds);
    }
    check(&[of(0, 1), broken(0, b"x"), of(0, 0), garbage], &all, 0, &kinds);
    // The index data have a different connection id for this offset.
    let records = [of(0, 1), broken(0, b"x"), of(0, 2), of(0, 3)];
    check(&records, &[(0, 0), (0, 1), (1, 2), (0, 3)], 0, &["message", "lost", "", "message"]);
    // The index data list this message, but the message is truncated.
    let records = [of(0, 1), broken(0, b"x"), longer(0, b"page", 9)];
    check(&records, &all, 0, &["message", "lost", ""]);
}

/// The payload of the damaged message contains a valid record.
#[test]
fn records_in_the_payload_of_a_damaged_message_are_ignored() {
    let indexed = [(0, 0), (0, 1), (0, 2), (0, 3)];
    for damaged in [broken(0, &of(0, 5)), longer(0, &of(0, 5), 50 + 7)] {
        let records = [of(0, 1), damaged, of(0, 0), of(0, 3)];
        check(&records, &indexed, 0, &["message", "lost", "message", "message"]);
    }
}

/// The index data of one connection are lost, so its records are not indexed.
#[test]
fn unindexed_records_are_kept_if_they_lead_to_an_indexed_message() {
    let records = [of(0, 1), broken(0, b"x"), connection(1, "/b"), of(1, 2), of(0, 3)];
    let indexed = [(0, 0), (0, 1), (0, 4)];
    check(&records, &indexed, 0, &["message", "lost", "connection", "message", "message"]);
    let records = [of(0, 1), broken(0, b"x"), of(1, 2), LINE.to_vec(), of(0, 3)];
    check(&records, &indexed, 0, &["message", "lost", "", "", "message"]);
    check(&records[..4], &indexed[..2], 0, &["message", "lost", "message", "lost"]);
    let records = [of(0, 1), broken(0, b"x"), LINE.to_vec(), b"garbage".to_vec()];
    check(&records, &indexed[..2], 0, &["message", "lost", "", ""]);
}

/// Scans the records `now`. The index data were made for the records `recorded`, before bytes were
/// removed or added.
fn check_displaced(recorded: &[Vec<u8>], indexed: &[usize], now: &[Vec<u8>], want: &[&'static str]) {
    let (was, _) = laid(recorded);
    let indexed: Vec<_> = indexed.iter().map(|number| (0, was[*number])).collect();
    assert_eq!(scan(&now.concat(), &indexed, 0), kinds_of(now, want));
}

#[test]
fn records_are_found_after_missing_bytes() {
    let recorded = [of(0, 1), of(0, 9), of(0, 2), of(0, 3), of(0, 4), of(0, 5), of(0, 0)];
    let mut now = recorded.to_vec();
    now[1].drain(50..53);
    let want = ["message", "lost", "message", "message", "message", "message", "message"];
    check_displaced(&recorded, &[0, 1, 2, 3, 4, 5, 6], &now, &want);
    check_displaced(&recorded[..3], &[0, 1, 2], &now[..3], &want[..3]);
    // The distance of records from their indexed offsets is the same after more damage.
    now[5][8] = 0;
    now.push(b"garbage".to_vec());
    let want = ["message", "lost", "message", "message", "message", "lost", "message", "lost"];
    check_displaced(&recorded, &[0, 1, 2, 3, 4, 5, 6], &now, &want);
    // The first record after the damage belongs to a connection that has no index data.
    let mut recorded = recorded;
    recorded[2] = of(1, 2);
    let mut now = recorded.to_vec();
    now[1].drain(50..53);
    let want = ["message", "lost", "message", "message", "message", "message", "message"];
    check_displaced(&recorded, &[0, 1, 3, 4, 5, 6], &now, &want);
    // A connection record is the first or a later record after the damage.
    for (number, indexed) in
        [(2, [0, 1, 3, 4, 5, 6].as_slice()), (3, &[0, 1, 4, 5, 6]), (4, &[0, 1, 3, 5, 6])]
    {
        let (mut recorded, mut now, mut want) = (recorded.clone(), now.clone(), want);
        (recorded[number], now[number]) = (connection(1, "/b"), connection(1, "/b"));
        want[number] = "connection";
        check_displaced(&recorded, indexed, &now, &want);
    }
}

/// A byte is missing in the index data, so all later index entries are wrong. The index data must
/// not be used.
#[test]
fn index_data_with_offsets_far_beyond_the_chunk_are_ignored() {
    let recorded: Vec<_> = (0..9).map(|number| of(0, number)).collect();
    let mut now = recorded.clone();
    now[1].drain(50..51);
    now[5].drain(50..52);
    let want = ["message", "lost", "message", "message", "message", "lost", "message", "message", "message"];
    for wrong in [&[4, 5, 6, 7, 8][..], &[0, 1], &[3, 4]] {
        assert_eq!(scan_wrong(&recorded, &now, wrong), kinds_of(&now, &want), "{wrong:?}");
    }
    // A single wrong offset in the index data is tolerated. The index data are still used, so the
    // record inside the payload is not taken for a record of the chunk.
    let recorded = [of(0, 1), broken(0, &of(0, 2)), of(0, 3), of(0, 4), of(0, 5)];
    let of_index = kinds_of(&recorded, &["message", "lost", "message", "message", "message"]);
    for wrong in [&[][..], &[1], &[3], &[4]] {
        assert_eq!(scan_wrong(&recorded, &recorded, wrong), of_index, "{wrong:?}");
    }
    assert_ne!(scan_wrong(&recorded, &recorded, &[3, 4]), of_index);
    // Two consecutive offsets in the index data are wrong if their distance is below the minimum
    // size of a message.
    for (distance, is_index) in [(31, false), (32, true)] {
        let places = [0, 51, 51 + 98, 51 + 98 + distance];
        let got = scan_indexed(&recorded.concat(), &index_of(&places), 0, 0);
        assert_eq!(got == of_index, is_index, "{distance}: {got:?}");
    }
    // Offsets just beyond the end of the chunk are tolerated. They may belong to a chunk that was
    // larger before the damage, or to another chunk.
    let had = [&recorded[..], &[of(0, 6), of(0, 7)]].concat();
    let now = [of(0, 1), broken(0, &of(0, 9)), of(0, 4)];
    assert_eq!(scan_wrong(&had, &now, &[]), kinds_of(&now, &["message", "lost", "message"]));
    let (now, indexed) = (laid(&now).1, index_of(&laid(&had).0));
    assert_eq!(scan_indexed(&now, &indexed, 0, 0), scan_indexed(&now, &indexed, u32::MAX, 0));
}

/// Returns index data with the offsets `places` for the connection id 0.
fn index_of(places: &[usize]) -> Vec<(u32, Vec<(u32, u32)>)> {
    vec![(0, places.iter().map(|place| (7, u32::try_from(*place).unwrap())).collect())]
}

/// Scans the records `now`, with an index entry for each of the records `recorded`. The index
/// entries whose numbers are in `wrong` have offsets far beyond the chunk.
fn scan_wrong(recorded: &[Vec<u8>], now: &[Vec<u8>], wrong: &[usize]) -> Vec<Seen> {
    let (places, all) = laid(recorded);
    let (mut indexed, len) = (index_of(&places), u32::try_from(all.len()).unwrap());
    for number in wrong {
        indexed[0].1[*number].1 += 16 * len;
    }
    scan_indexed(&now.concat(), &indexed, len, all.len() as u64)
}

/// Many messages are missing, and some bytes are missing at three later places. After each damage,
/// the next message is found by its distance from its indexed offset.
#[test]
fn records_are_found_far_from_their_recorded_offsets() {
    let mut random = Random(1);
    let recorded: Vec<_> = (0..2000).map(|_| of(0, 10 + random.below(1000))).collect();
    let damaged = [1000, 1500, 1700];
    let mut now = recorded.clone();
    for number in damaged {
        now[number].drain(50..53);
    }
    now.drain(500..900);
    let mut want = vec!["message"; now.len()];
    for number in damaged {
        want[number - 400] = "lost";
    }
    check_displaced(&recorded, &(0..2000).collect::<Vec<_>>(), &now, &want);
}

/// The search after each of many losses must not examine the whole index data again.
#[test]
fn records_are_found_after_many_small_losses() {
    let recorded: Vec<_> = (0..4000).map(|_| of(0, 9)).collect();
    let (mut now, mut want) = (recorded.clone(), vec!["message"; recorded.len()]);
    for number in (16..recorded.len()).step_by(16) {
        now[number - 1].pop();
        want[number - 1] = "lost";
    }
    check_displaced(&recorded, &(0..recorded.len()).collect::<Vec<_>>(), &now, &want);
}

/// After the damage, only records of a connection without index data follow, and then more damage.
/// These records are kept because the index data list no later message.
#[test]
fn unindexed_records_are_kept_after_the_last_indexed_message() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let part = |more| [of(0, more), broken(0, b"x"), of(1, 2), of(1, 0), garbage.clone()];
    let records = [part(1), part(3)].concat();
    let want = ["message", "lost", "", "", "", "message", "lost", "message", "message", "lost"];
    check(&records, &[(0, 0), (0, 1), (0, 5), (0, 6)], 0, &want);
    // Bytes are missing, so no index entry matches until the number of missing bytes is known.
    let recorded = [&records[..5], &[of(0, 4), of(0, 5), of(0, 6)], &records[6..], &[of(0, 7)]].concat();
    let mut now = recorded.clone();
    now[1].drain(40..43);
    let want = [
        &["message", "lost", "message", "message", "lost", "message", "message", "message"][..],
        &["lost", "", "", "", "message"],
    ];
    check_displaced(&recorded, &[0, 1, 5, 6, 7, 8, 12], &now, &want.concat());
}

/// A payload may be a whole bag, so valid records in the payload of a damaged message do not belong
/// to the chunk for sure.
#[test]
fn unindexed_records_may_belong_to_a_payload() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let bag = [of(0, 1), message(0, 7, &[of(1, 0), of(1, 0)].concat()), garbage.clone()];
    check(&bag, &[(0, 0), (0, 1)], 0, &["message", "message", "lost"]);
    // The records in the payload lead beyond the stated end of the message.
    let records = [of(0, 1), longer(0, b"", 50 + 7), of(1, 0), of(1, 3), garbage];
    check(&records, &[(0, 0), (0, 1)], 0, &["message", "lost", "message", "message", "lost"]);
    // The records in the payload lead to an indexed message.
    let records = [of(0, 1), longer(0, b"", 50 + 50 + 7), of(1, 0), of(0, 3), of(0, 4)];
    check(
        &records,
        &[(0, 0), (0, 1), (0, 3), (0, 4)],
        0,
        &["message", "lost", "message", "message", "message"],
    );
}

/// All index entries are wrong. They must not be examined again for each damaged record.
#[test]
fn wrong_index_entries_are_examined_once() {
    let part = [of(1, 2), of(1, 3), b"garbage of 19 bytes".to_vec()];
    let records = [vec![of(0, 1), broken(0, b"x")], vec![part; 80].concat()].concat();
    let want = [vec!["message", "lost"], ["message", "message", "lost"].repeat(80)].concat();
    let (starts, data) = laid(&records);
    let wrong = (0..2000).map(|n| starts[2] + 7 + 33 * n);
    let places: Vec<_> = [0, starts[1]].into_iter().chain(wrong).collect();
    let len = u32::try_from(data.len()).unwrap();
    assert_eq!(scan_indexed(&data, &index_of(&places), len, 0), kinds_of(&records, &want));
}

/// All index entries are wrong, and each damaged record gives a new distance from the indexed
/// offsets. The search must be limited, because it would take quadratic time.
#[test]
fn the_search_of_wrong_index_entries_is_limited() {
    let found = |parts: usize| {
        let garbage = b"garbage of 19 bytes".to_vec();
        let part = [of(0, 1), of(0, 3), of(0, 6), broken(0, b"xyz"), of(1, 2), of(1, 0), garbage];
        let mut records = vec![part; parts].concat();
        let (starts, data) = laid(&records);
        let indexed = (0..records.len()).filter(|number| number % 7 < 3).map(|number| starts[number]);
        let wrong = (0..2000).map(|n| data.len() + 33 * n);
        let index = index_of(&indexed.chain(wrong).collect::<Vec<_>>());
        for number in (3..records.len()).step_by(7) {
            records[number].pop();
        }
        let seen = scan_indexed(&records.concat(), &index, u32::MAX, 0);
        seen.iter().filter(|(kind, ..)| *kind == "message").count()
    };
    assert_eq!(found(10), 5 * 10);
    let most = found(40);
    assert!(most < 5 * 40, "{most}");
}

/// The sizes of the messages repeat, so several distances from the indexed offsets match the index.
#[test]
fn the_smallest_shift_is_used() {
    let period = [of(0, 1), of(0, 4), of(0, 8)];
    // After the second damage, the offset of the message is known only from the index.
    let last = [broken(0, b"x"), of(0, 20), b"garbage of 19 bytes".to_vec()];
    let recorded = [vec![period; 4].concat(), last.to_vec()].concat();
    let indexed: Vec<_> = (0..14).collect();
    let behind = [["message"; 7].as_slice(), &["lost", "message", "lost"]].concat();
    let mut now = recorded.clone();
    now[4].drain(50..53);
    let want = [["message"; 4].as_slice(), &["lost"], &behind].concat();
    check_displaced(&recorded, &indexed, &now, &want);
    let mut now = recorded.clone();
    now.insert(5, b"add".to_vec());
    let want = [["message"; 5].as_slice(), &["lost"], &behind].concat();
    check_displaced(&recorded, &indexed, &now, &want);
}

/// Messages without an index entry are compared with index entries nearby. The number of
/// comparisons is limited.
#[test]
fn comparing_unindexed_messages_is_limited() {
    let found = |others: usize| {
        let mut recorded = vec![of(0, 1), broken(0, b"xyz")];
        recorded.extend(vec![of(0, 5); others]);
        recorded.extend([of(0, 3), of(0, 6), of(0, 2)]);
        let (starts, data) = laid(&recorded);
        let indexed = [0, 1, others + 2, others + 3, others + 4].map(|n| starts[n]);
        let wrong = (0..250).map(|n| data.len() + 33 * n);
        let index = index_of(&indexed.into_iter().chain(wrong).collect::<Vec<_>>());
        recorded[1].pop();
        scan_indexed(&recorded.concat(), &index, u32::MAX, 0).len()
    };
    assert_eq!(found(5), 5);
    assert_eq!(found(40), 2);
}

/// Each record without an index entry is followed by more such records, and none of them leads to
/// an indexed message.
#[test]
fn following_unindexed_records_is_limited() {
    let found = |others: usize| {
        let mut recorded = vec![of(0, 1), broken(0, b"xyz")];
        recorded.extend(vec![of(1, 2); others]);
        recorded.extend([unknown(9, b"data"), of(0, 3), of(0, 6), of(0, 2)]);
        let (starts, _) = laid(&recorded);
        let indexed: Vec<_> = [0, 1, others + 3, others + 4, others + 5].map(|n| (0, starts[n])).into();
        recorded[1].pop();
        scan(&recorded.concat(), &indexed, 0).len()
    };
    // The scan finds one message, the loss, and three messages that are not at their indexed
    // offsets.
    assert_eq!(found(20), 5);
    assert_eq!(found(200), 2);
}

#[test]
fn records_are_found_after_added_bytes() {
    let recorded = [of(0, 1), of(0, 9), of(0, 2), of(0, 3), of(0, 4)];
    for last in 3..=recorded.len() {
        let mut now = recorded[..last].to_vec();
        now.insert(2, b"add".to_vec());
        let want = ["message", "message", "lost", "message", "message", "message"];
        check_displaced(&recorded, &(0..last).collect::<Vec<_>>(), &now, &want[..now.len()]);
    }
}
