//! Records of chunks, laid with damage.

use rovelog_testing::Random;

use super::made::{chunk, connection, entries_of, message, unknown};
use crate::v2::inner::{Hints, Inner, Item};
use crate::v2::state::IndexRange;

/// What a scan has found: kind, place, and the end, the connection or the op.
type Seen = (&'static str, usize, usize);

const LINE: &[u8] = b"#ROSBAG V2.0\n";

/// A message of 50 bytes and more.
fn of(conn: u32, more: usize) -> Vec<u8> {
    message(conn, 7, &vec![b'x'; 4 + more])
}

/// A message with this payload, which says that it has `more` bytes more.
fn longer(conn: u32, payload: &[u8], more: usize) -> Vec<u8> {
    let mut record = message(conn, 7, payload);
    let len = u32::try_from(payload.len() + more).unwrap();
    record[42..46].copy_from_slice(&len.to_le_bytes());
    record
}

/// A message whose header is damaged.
fn broken(conn: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = message(conn, 7, payload);
    record[8] = 0;
    record
}

/// Where each of these records starts, and all of them.
fn laid(records: &[Vec<u8>]) -> (Vec<usize>, Vec<u8>) {
    let starts = records.iter().scan(0, |at, record| {
        *at += record.len();
        Some(*at - record.len())
    });
    (starts.collect(), records.concat())
}

/// Scans a chunk of which index data name messages by connection and place.
fn scan(data: &[u8], named: &[(u32, usize)], claimed: u64) -> Vec<Seen> {
    let index = named.iter().map(|(conn, place)| (*conn, vec![(7, u32::try_from(*place).unwrap())]));
    scan_indexed(data, &index.collect::<Vec<_>>(), u32::MAX, claimed)
}

/// Scans a chunk with these index data, entries by connection: as the reader does, item by item as a
/// pipe does, and as the reader does again with what it has lost.
fn scan_indexed(data: &[u8], named: &[(u32, Vec<(u32, u32)>)], had: u32, claimed: u64) -> Vec<Seen> {
    let mut index: Vec<IndexRange> = Vec::new();
    let mut file = Vec::new();
    for (conn, entries) in named {
        let data_at = file.len() as u64;
        file.extend(entries_of(entries));
        index.push(IndexRange { conn: *conn, data_at, end: file.len() as u64 });
    }
    let begin = || Inner::new(data, Hints::new(&index, &file, had), claimed, None);
    let seen = seen_by(begin(), data.len(), true, |inner| inner);
    // A pipe has no index data, and starts again behind each item.
    let from_place = |inner: Inner<'_>| begin().at(inner.place());
    let piped = if named.is_empty() {
        seen_by(begin(), data.len(), false, from_place)
    } else {
        seen_by(begin(), data.len(), false, |inner| inner)
    };
    assert_eq!(seen, piped);
    let as_lost = |(kind, at, end): &Seen| (if *kind == "tail" { "lost" } else { *kind }, *at, *end);
    let seen_lost: Vec<_> = seen.iter().map(as_lost).collect();
    let lost = seen_lost.iter().filter(|(kind, ..)| *kind == "lost");
    let lost: Vec<_> = lost.map(|(_, at, end)| (*at as u64, *end as u64)).collect();
    assert_eq!(seen_by(begin().again(&lost), data.len(), true, |inner| inner), seen_lost);
    seen
}

/// Returns what a scan finds in so many bytes, messages at once or one by one; `go_on` takes it
/// behind each item.
fn seen_by<'a>(
    mut inner: Inner<'a>,
    len: usize,
    at_once: bool,
    go_on: impl Fn(Inner<'a>) -> Inner<'a>,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    loop {
        if at_once {
            inner.messages(|message| seen.push(("message", message.at, message.end)));
        }
        let Some(item) = inner.next() else { return seen };
        seen.push(match item {
            Item::Message(message) => ("message", message.at, message.end),
            Item::Connection { at, conn, .. } => ("connection", at, conn as usize),
            Item::Other { at, op, .. } => ("other", at, op.into()),
            Item::Lost { at, end } => ("lost", at, end),
            Item::Tail { at } => ("tail", at, len),
        });
        inner = go_on(inner);
    }
}

/// Checks what a scan finds in these records: of each its kind, or nothing of one that belongs to
/// what is lost before it.
fn check(records: &[Vec<u8>], named: &[(u32, usize)], claimed: u64, want: &[&'static str]) {
    let (starts, data) = laid(records);
    let named: Vec<_> = named.iter().map(|(conn, number)| (*conn, starts[*number])).collect();
    assert_eq!(scan(&data, &named, claimed), kinds_of(records, want));
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
fn records_of_all_kinds_follow_each_other() {
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
fn behind_a_damaged_header_the_next_record_counts() {
    check(&[broken(0, b"xx"), of(0, 1), of(0, 2)], &[], 0, &["lost", "message", "message"]);
    check(&[of(0, 1), broken(0, b"xx"), of(0, 2)], &[], 0, &["message", "lost", "message"]);
    check(&[of(0, 1), broken(0, b"xx")], &[], 0, &["message", "lost"]);
    let records = [broken(0, b"xx"), of(0, 1), of(0, 2), of(0, 3), of(0, 4)];
    check(&records, &[], 0, &["lost", "message", "message", "message", "message"]);
    check(&[vec![38, 0, 0]], &[], 0, &["tail"]);
    check(&[of(0, 1), of(0, 1)[..30].to_vec()], &[], 0, &["message", "tail"]);
}

/// The chunk is cut as its header says, or the length of the message is damaged.
#[test]
fn a_message_beyond_the_end_is_cut_or_damaged() {
    let first = of(0, 1);
    let records = |inner: usize, behind: &[u8]| {
        let mut records = vec![first.clone(), longer(0, b"page", 1000)];
        records.extend(std::iter::repeat_n(of(1, 0), inner));
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
    // Records lead to one that the end cuts, if the chunk was never closed.
    let last = longer(1, b"x", 1000);
    let head = &last[..last.len() - 1];
    check(&records(1, head), &[], 0, &["message", "lost", "message", "tail"]);
    check(&records(1, head), &[], 2, &["message", "tail", "", ""]);
    check(&records(0, head), &[], 0, &["message", "tail", ""]);
    check(&records(2, &head[..3]), &[], 0, &["message", "tail", "", "", ""]);
    check(&records(3, &head[..3]), &[], 0, &["message", "lost", "message", "message", "message", "tail"]);
    // Or to further damage.
    let more = [b"q", &of(1, 0)[..]].concat();
    check(&records(2, &more), &[], 0, &["message", "tail", "", "", ""]);
    let mut damaged = records(3, b"q");
    damaged.push(of(1, 0));
    check(&damaged, &[], 0, &["message", "lost", "message", "message", "message", "lost", "message"]);
    // The payload is a bag, whose chunk begins with a record that no chunk has.
    let inner = records(3, b"").split_off(2).concat();
    let bag = [first.clone(), longer(0, b"page", 1000), chunk("none", 150, &inner)];
    check(&bag, &[], 0, &["message", "tail", ""]);
    check(&records(0, b""), &[(0, 0)], 0, &["message", "tail"]);
}

/// Without index data, records count that lead beyond the end which a damaged length claims.
#[test]
fn a_length_that_is_too_large_swallows_nothing() {
    for start in [&b""[..], LINE] {
        let swallowing = longer(0, start, 50 + 7);
        let records = [of(0, 1), swallowing.clone(), of(0, 0), of(0, 3), of(0, 4)];
        check(&records, &[], 0, &["message", "lost", "message", "message", "message"]);
        // What is behind them is no record: the payload may be a bag.
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
    // A bag in a message, in front of damage.
    let bag = [of(1, 0), of(1, 0)].concat();
    let records = [of(0, 1), message(0, 7, &bag), broken(0, b"x"), of(0, 2)];
    check(&records, &[], 0, &["message", "message", "lost", "message"]);
}

/// A valid message is not searched, whatever its payload looks like.
#[test]
fn a_payload_with_a_record_that_leads_out_of_it_is_one() {
    let next = of(0, 1);
    let records = [message(0, 7, &longer(1, b"", next.len())), next, of(0, 2)];
    check(&records, &[], 0, &["message"; 3]);
    check(&records, &[(0, 0), (0, 1), (0, 2)], 0, &["message"; 3]);
    check(&records, &[(0, 2)], 0, &["message"; 3]);
}

/// Index data say where messages start, also where what is there leads to no further record.
#[test]
fn behind_damage_records_go_on_where_the_index_says() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let all = [(0, 0), (0, 1), (0, 2)];
    let kinds = ["message", "lost", "message", "lost"];
    for swallowing in [longer(0, b"page", 50 + 7), longer(0, b"", 50 + 7)] {
        check(&[of(0, 1), swallowing, of(0, 0), garbage.clone()], &all, 0, &kinds);
    }
    check(&[of(0, 1), broken(0, b"x"), of(0, 0), garbage], &all, 0, &kinds);
    // Of another connection than the index says.
    let records = [of(0, 1), broken(0, b"x"), of(0, 2), of(0, 3)];
    check(&records, &[(0, 0), (0, 1), (1, 2), (0, 3)], 0, &["message", "lost", "", "message"]);
    // It is named, but cut.
    let records = [of(0, 1), broken(0, b"x"), longer(0, b"page", 9)];
    check(&records, &all, 0, &["message", "lost", ""]);
}

/// A payload may hold records.
#[test]
fn records_inside_of_a_damaged_message_are_not_those_of_the_chunk() {
    let named = [(0, 0), (0, 1), (0, 2), (0, 3)];
    for damaged in [broken(0, &of(0, 5)), longer(0, &of(0, 5), 50 + 7)] {
        let records = [of(0, 1), damaged, of(0, 0), of(0, 3)];
        check(&records, &named, 0, &["message", "lost", "message", "message"]);
    }
}

/// The index data of a connection may be lost.
#[test]
fn records_that_the_index_leaves_out_count_where_they_lead_to_those_it_names() {
    let records = [of(0, 1), broken(0, b"x"), connection(1, "/b"), of(1, 2), of(0, 3)];
    let named = [(0, 0), (0, 1), (0, 4)];
    check(&records, &named, 0, &["message", "lost", "connection", "message", "message"]);
    let records = [of(0, 1), broken(0, b"x"), of(1, 2), LINE.to_vec(), of(0, 3)];
    check(&records, &named, 0, &["message", "lost", "", "", "message"]);
    check(&records[..4], &named[..2], 0, &["message", "lost", "message", "lost"]);
    let records = [of(0, 1), broken(0, b"x"), LINE.to_vec(), b"garbage".to_vec()];
    check(&records, &named[..2], 0, &["message", "lost", "", ""]);
}

/// Scans these records with an index that was made before some bytes of theirs were changed.
fn check_displaced(recorded: &[Vec<u8>], named: &[usize], now: &[Vec<u8>], want: &[&'static str]) {
    let (was, _) = laid(recorded);
    let named: Vec<_> = named.iter().map(|number| (0, was[*number])).collect();
    assert_eq!(scan(&now.concat(), &named, 0), kinds_of(now, want));
}

#[test]
fn records_are_found_behind_bytes_that_are_missing() {
    let recorded = [of(0, 1), of(0, 9), of(0, 2), of(0, 3), of(0, 4), of(0, 5), of(0, 0)];
    let mut now = recorded.to_vec();
    now[1].drain(50..53);
    let want = ["message", "lost", "message", "message", "message", "message", "message"];
    check_displaced(&recorded, &[0, 1, 2, 3, 4, 5, 6], &now, &want);
    check_displaced(&recorded[..3], &[0, 1, 2], &now[..3], &want[..3]);
    // Places of the index hold on behind further damage.
    now[5][8] = 0;
    now.push(b"garbage".to_vec());
    let want = ["message", "lost", "message", "message", "message", "lost", "message", "lost"];
    check_displaced(&recorded, &[0, 1, 2, 3, 4, 5, 6], &now, &want);
    // The first one behind is of a connection without index data.
    let mut recorded = recorded;
    recorded[2] = of(1, 2);
    let mut now = recorded.to_vec();
    now[1].drain(50..53);
    let want = ["message", "lost", "message", "message", "message", "message", "message"];
    check_displaced(&recorded, &[0, 1, 3, 4, 5, 6], &now, &want);
    // It is a connection record, or one is among those behind.
    for (number, named) in [(2, [0, 1, 3, 4, 5, 6].as_slice()), (3, &[0, 1, 4, 5, 6]), (4, &[0, 1, 3, 5, 6])]
    {
        let (mut recorded, mut now, mut want) = (recorded.clone(), now.clone(), want);
        (recorded[number], now[number]) = (connection(1, "/b"), connection(1, "/b"));
        want[number] = "connection";
        check_displaced(&recorded, named, &now, &want);
    }
}

/// A byte is missing in the index data, so that all behind it is wrong: records count as if there were none.
#[test]
fn index_data_with_places_beyond_the_chunk_count_for_nothing() {
    let recorded: Vec<_> = (0..9).map(|number| of(0, number)).collect();
    let mut now = recorded.clone();
    now[1].drain(50..51);
    now[5].drain(50..52);
    let want = ["message", "lost", "message", "message", "message", "lost", "message", "message", "message"];
    for wrong in [&[4, 5, 6, 7, 8][..], &[0, 1], &[3, 4]] {
        assert_eq!(scan_wrong(&recorded, &now, wrong), kinds_of(&now, &want), "{wrong:?}");
    }
    // A single place that is wrong does not give away that a message is in another one.
    let recorded = [of(0, 1), broken(0, &of(0, 2)), of(0, 3), of(0, 4), of(0, 5)];
    let of_index = kinds_of(&recorded, &["message", "lost", "message", "message", "message"]);
    for wrong in [&[][..], &[1], &[3], &[4]] {
        assert_eq!(scan_wrong(&recorded, &recorded, wrong), of_index, "{wrong:?}");
    }
    assert_ne!(scan_wrong(&recorded, &recorded, &[3, 4]), of_index);
    // Two places in a row that are too near to each other for a message are wrong, too.
    for (distance, is_index) in [(31, false), (32, true)] {
        let places = [0, 51, 51 + 98, 51 + 98 + distance];
        let got = scan_indexed(&recorded.concat(), &index_of(&places), 0, 0);
        assert_eq!(got == of_index, is_index, "{distance}: {got:?}");
    }
    // Of a chunk that had more, or of another one, places beyond its end may be right.
    let had = [&recorded[..], &[of(0, 6), of(0, 7)]].concat();
    let now = [of(0, 1), broken(0, &of(0, 9)), of(0, 4)];
    assert_eq!(scan_wrong(&had, &now, &[]), kinds_of(&now, &["message", "lost", "message"]));
    let (now, named) = (laid(&now).1, index_of(&laid(&had).0));
    assert_eq!(scan_indexed(&now, &named, 0, 0), scan_indexed(&now, &named, u32::MAX, 0));
}

/// Index data of connection 0 that name these places.
fn index_of(places: &[usize]) -> Vec<(u32, Vec<(u32, u32)>)> {
    vec![(0, places.iter().map(|place| (7, u32::try_from(*place).unwrap())).collect())]
}

/// Scans records whose index data name all `recorded` ones, these numbers at places beyond the chunk.
fn scan_wrong(recorded: &[Vec<u8>], now: &[Vec<u8>], wrong: &[usize]) -> Vec<Seen> {
    let (places, all) = laid(recorded);
    let (mut named, len) = (index_of(&places), u32::try_from(all.len()).unwrap());
    for number in wrong {
        named[0].1[*number].1 += 16 * len;
    }
    scan_indexed(&now.concat(), &named, len, all.len() as u64)
}

/// Many messages are missing, and then bytes at three places: each time the next message is found by
/// its distance from where it was recorded.
#[test]
fn records_are_found_far_from_where_they_were_recorded() {
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

/// As often as that, each search must not look at all places of the index.
#[test]
fn records_are_found_where_a_byte_is_missing_again_and_again() {
    let recorded: Vec<_> = (0..4000).map(|_| of(0, 9)).collect();
    let (mut now, mut want) = (recorded.clone(), vec!["message"; recorded.len()]);
    for number in (16..recorded.len()).step_by(16) {
        now[number - 1].pop();
        want[number - 1] = "lost";
    }
    check_displaced(&recorded, &(0..recorded.len()).collect::<Vec<_>>(), &now, &want);
}

/// Behind damage, records of a connection without index data lead to further damage: they count
/// where the index names nothing more.
#[test]
fn records_that_the_index_leaves_out_count_behind_the_last_one_it_names() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let part = |more| [of(0, more), broken(0, b"x"), of(1, 2), of(1, 0), garbage.clone()];
    let records = [part(1), part(3)].concat();
    let want = ["message", "lost", "", "", "", "message", "lost", "message", "message", "lost"];
    check(&records, &[(0, 0), (0, 1), (0, 5), (0, 6)], 0, &want);
    // Behind missing bytes it names nothing, until those are known.
    let recorded = [&records[..5], &[of(0, 4), of(0, 5), of(0, 6)], &records[6..], &[of(0, 7)]].concat();
    let mut now = recorded.clone();
    now[1].drain(40..43);
    let want = [
        &["message", "lost", "message", "message", "lost", "message", "message", "message"][..],
        &["lost", "", "", "", "message"],
    ];
    check_displaced(&recorded, &[0, 1, 5, 6, 7, 8, 12], &now, &want.concat());
}

/// The payload may be a bag.
#[test]
fn records_that_the_index_leaves_out_may_be_those_of_a_payload() {
    let garbage = b"garbage of 19 bytes".to_vec();
    let bag = [of(0, 1), message(0, 7, &[of(1, 0), of(1, 0)].concat()), garbage.clone()];
    check(&bag, &[(0, 0), (0, 1)], 0, &["message", "message", "lost"]);
    // They lead beyond the end that the length claims.
    let records = [of(0, 1), longer(0, b"", 50 + 7), of(1, 0), of(1, 3), garbage];
    check(&records, &[(0, 0), (0, 1)], 0, &["message", "lost", "message", "message", "lost"]);
    // Or to one that the index names.
    let records = [of(0, 1), longer(0, b"", 50 + 50 + 7), of(1, 0), of(0, 3), of(0, 4)];
    check(
        &records,
        &[(0, 0), (0, 1), (0, 3), (0, 4)],
        0,
        &["message", "lost", "message", "message", "message"],
    );
}

/// Whether the index names anything is not asked again at each damage: all of its places are wrong.
#[test]
fn places_that_are_wrong_are_looked_at_once() {
    let part = [of(1, 2), of(1, 3), b"garbage of 19 bytes".to_vec()];
    let records = [vec![of(0, 1), broken(0, b"x")], vec![part; 80].concat()].concat();
    let want = [vec!["message", "lost"], ["message", "message", "lost"].repeat(80)].concat();
    let (starts, data) = laid(&records);
    let wrong = (0..2000).map(|n| starts[2] + 7 + 33 * n);
    let places: Vec<_> = [0, starts[1]].into_iter().chain(wrong).collect();
    let len = u32::try_from(data.len()).unwrap();
    assert_eq!(scan_indexed(&data, &index_of(&places), len, 0), kinds_of(&records, &want));
}

/// Where they are asked for again and again, behind a byte that is missing each time, the search ends:
/// it must not take the more time the more of them there are.
#[test]
fn places_that_are_wrong_are_not_looked_at_without_end() {
    let found = |parts: usize| {
        let garbage = b"garbage of 19 bytes".to_vec();
        let part = [of(0, 1), of(0, 3), of(0, 6), broken(0, b"xyz"), of(1, 2), of(1, 0), garbage];
        let mut records = vec![part; parts].concat();
        let (starts, data) = laid(&records);
        let named = (0..records.len()).filter(|number| number % 7 < 3).map(|number| starts[number]);
        let wrong = (0..2000).map(|n| data.len() + 33 * n);
        let index = index_of(&named.chain(wrong).collect::<Vec<_>>());
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

/// Messages whose sizes come again and again fit the index at several distances.
#[test]
fn the_smallest_distance_from_the_index_counts() {
    let period = [of(0, 1), of(0, 4), of(0, 8)];
    // Behind the second damage only the index tells where the message is.
    let last = [broken(0, b"x"), of(0, 20), b"garbage of 19 bytes".to_vec()];
    let recorded = [vec![period; 4].concat(), last.to_vec()].concat();
    let named: Vec<_> = (0..14).collect();
    let behind = [["message"; 7].as_slice(), &["lost", "message", "lost"]].concat();
    let mut now = recorded.clone();
    now[4].drain(50..53);
    let want = [["message"; 4].as_slice(), &["lost"], &behind].concat();
    check_displaced(&recorded, &named, &now, &want);
    let mut now = recorded.clone();
    now.insert(5, b"add".to_vec());
    let want = [["message"; 5].as_slice(), &["lost"], &behind].concat();
    check_displaced(&recorded, &named, &now, &want);
}

/// Messages at no place of the index are compared with those that are near, but not without end.
#[test]
fn messages_that_the_index_does_not_name_are_not_compared_without_end() {
    let found = |others: usize| {
        let mut recorded = vec![of(0, 1), broken(0, b"xyz")];
        recorded.extend(vec![of(0, 5); others]);
        recorded.extend([of(0, 3), of(0, 6), of(0, 2)]);
        let (starts, data) = laid(&recorded);
        let named = [0, 1, others + 2, others + 3, others + 4].map(|n| starts[n]);
        let wrong = (0..250).map(|n| data.len() + 33 * n);
        let index = index_of(&named.into_iter().chain(wrong).collect::<Vec<_>>());
        recorded[1].pop();
        scan_indexed(&recorded.concat(), &index, u32::MAX, 0).len()
    };
    assert_eq!(found(5), 5);
    assert_eq!(found(40), 2);
}

/// The same for records that the index leaves out: from each of them the others lead nowhere.
#[test]
fn records_that_lead_nowhere_are_not_followed_without_end() {
    let found = |others: usize| {
        let mut recorded = vec![of(0, 1), broken(0, b"xyz")];
        recorded.extend(vec![of(1, 2); others]);
        recorded.extend([unknown(9, b"data"), of(0, 3), of(0, 6), of(0, 2)]);
        let (starts, _) = laid(&recorded);
        let named: Vec<_> = [0, 1, others + 3, others + 4, others + 5].map(|n| (0, starts[n])).into();
        recorded[1].pop();
        scan(&recorded.concat(), &named, 0).len()
    };
    // One, what is lost, and three at other places.
    assert_eq!(found(20), 5);
    assert_eq!(found(200), 2);
}

#[test]
fn records_are_found_behind_bytes_that_were_added() {
    let recorded = [of(0, 1), of(0, 9), of(0, 2), of(0, 3), of(0, 4)];
    for last in 3..=recorded.len() {
        let mut now = recorded[..last].to_vec();
        now.insert(2, b"add".to_vec());
        let want = ["message", "message", "lost", "message", "message", "message"];
        check_displaced(&recorded, &(0..last).collect::<Vec<_>>(), &now, &want[..now.len()]);
    }
}
