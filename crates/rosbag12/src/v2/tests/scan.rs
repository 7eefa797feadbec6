//! Tests of damage between chunks, and of finding the end of each chunk.

use rovelog_core::internal::scan::{NeedMore, Scan as _, Window};

use super::made::{chunk, chunk_info, connection, data_len_of, index_data, message, unknown};
use crate::diagnostics as rules;
use crate::v2::compression::DecompressionLimit;
use crate::v2::scan::{LengthSource, Loss, Step, TopScan};
use crate::v2::wire::{VERSION_LINE, bag_header_record};

fn cap() -> DecompressionLimit {
    DecompressionLimit::of(&rovelog_core::Limits::default())
}

/// A part of the file that a scan has found: its kind, its start and its end.
type Seen = (&'static str, u64, u64);

const GARBAGE: &[u8] = &[0xff; 20];

/// Scans a bag as a stream. The stream never provides more bytes than the scanner requests.
fn piped(bytes: &[u8]) -> Vec<Seen> {
    let mut scan = TopScan::new(13, cap());
    let (mut filled, mut eof, mut seen) = (0, false, Vec::new());
    loop {
        let base = scan.needed_from();
        filled = filled.max(usize::try_from(base).unwrap());
        let data = &bytes[usize::try_from(base).unwrap()..filled];
        let window = Window { data, base, eof };
        match scan.step(window) {
            Ok(step) => match kind_of(step) {
                Some(found) => seen.push(found),
                None => return seen,
            },
            Err(NeedMore(to)) => {
                assert!(!eof && to > window.end(), "nothing more is asked for");
                let to = usize::try_from(to).unwrap_or(usize::MAX);
                (filled, eof) = (to.min(bytes.len()), to > bytes.len());
            }
        }
    }
}

fn kind_of(step: Step) -> Option<Seen> {
    Some(match step {
        Step::Line { at, end } => ("line", at, end),
        Step::Record { at, end } => ("record", at, end),
        Step::Lost(Loss { at, end, rule }) => (if rule == &rules::CUT { "cut" } else { "lost" }, at, end),
        Step::Chunk(extent) => {
            let kind = match extent.length {
                _ if extent.headless => "headless",
                LengthSource::Header => "stored",
                LengthSource::Data => "found",
                LengthSource::Unclosed => "unterminated",
                LengthSource::Cut => "cut_chunk",
            };
            (kind, extent.at, extent.end)
        }
        Step::End => return None,
    })
}

/// Checks which parts a scan finds after the version line. `want` has the expected kind of each
/// part, or an empty string if the part belongs to the part before it.
fn check(parts: &[&[u8]], want: &[&'static str]) {
    assert_eq!(parts.len(), want.len());
    let mut at = VERSION_LINE.len() as u64;
    let mut expected: Vec<Seen> = vec![("line", 0, at)];
    for (part, kind) in parts.iter().zip(want) {
        let end = at + part.len() as u64;
        match (*kind, expected.last_mut()) {
            ("", Some(last)) => last.2 = end,
            _ => expected.push((kind, at, end)),
        }
        at = end;
    }
    let bytes = [&VERSION_LINE[..], &parts.concat()].concat();
    let mut scan = TopScan::new(13, cap());
    let mut seen = Vec::new();
    while let Some(found) = kind_of(scan.step(Window::whole(&bytes)).unwrap()) {
        seen.push(found);
        assert_eq!(scan.needed_from(), found.2);
        assert!(seen.len() <= bytes.len(), "{seen:?}");
    }
    assert_eq!(seen, expected);
    assert_eq!(piped(&bytes), expected);
}

/// Returns `record` with `data_len` as the data length. The head of the record has `head` bytes.
fn claiming(mut record: Vec<u8>, head: usize, data_len: usize) -> Vec<u8> {
    let data_len = u32::try_from(data_len).unwrap();
    record[head - 4..head].copy_from_slice(&data_len.to_le_bytes());
    record
}

/// Returns a chunk record whose header states the data length `data_len`.
fn chunk_claiming(compression: &str, size: u32, data: &[u8], data_len: usize) -> Vec<u8> {
    let head = chunk(compression, size, &[]).len();
    claiming(chunk(compression, size, data), head, data_len)
}

fn messages() -> Vec<u8> {
    [message(0, 1, b"first"), message(0, 2, b"second"), message(0, 3, b"")].concat()
}

fn index() -> Vec<u8> {
    index_data(0, &[(1, 0), (2, 51), (3, 103)])
}

#[test]
fn an_intact_bag_is_scanned_record_by_record() {
    let header = bag_header_record(1, 2, 3);
    let (whole, empty) = (chunk("none", 149, &messages()), chunk("none", 0, &[]));
    assert_eq!(messages().len(), 149);
    let info = chunk_info(13, (1, 3), &[(0, 3)]);
    let parts: [&[u8]; 9] = [
        &header,
        &whole,
        &index(),
        &empty,
        &index(),
        &unknown(9, b"data"),
        &connection(0, "/a"),
        &info,
        VERSION_LINE,
    ];
    let want = ["record", "stored", "record", "stored", "record", "record", "record", "record", "line"];
    check(&parts, &want);
    check(&[&whole], &["stored"]);
    // The decompressed size in the chunk header does not affect the end of the chunk.
    check(&[&chunk("none", 0, &messages())], &["stored"]);
}

#[test]
fn a_chunk_with_a_wrong_length_ends_after_its_records() {
    let data = messages();
    for len in [data.len() + 5, data.len() - 5, data.len() + 500, 0] {
        let wrong = chunk_claiming("none", 149, &data, len);
        check(&[&wrong, &index(), &wrong, &index()], &["found", "record", "found", "record"]);
    }
    // The length in the chunk header is right, but the record after the chunk is damaged.
    let right = chunk("none", 149, &data);
    check(&[&right, GARBAGE, &index()], &["stored", "lost", "record"]);
    check(&[&right, GARBAGE], &["stored", "lost"]);
}

/// The first byte of the next record is missing. The last byte of the chunk must not be taken for
/// this byte.
#[test]
fn a_record_does_not_start_inside_the_previous_one() {
    let index = index();
    let data = [messages(), message(0, 4, &[b'x', index[0]])].concat();
    let whole = chunk("none", 0, &data);
    check(&[&whole, &index[1..], &index], &["stored", "lost", "record"]);
}

#[test]
fn records_in_payloads_do_not_end_a_chunk() {
    let bag = [index(), index()].concat();
    let data = [messages(), message(0, 4, &bag), message(0, 5, b"last")].concat();
    let wrong = chunk_claiming("none", 0, &data, data.len() + 5);
    check(&[&wrong, &index()], &["found", "record"]);
    // The length of a message is damaged and reaches beyond the chunk.
    let long = claiming(message(0, 4, b"long"), 46, 4 + 50 + 20);
    let data = [messages(), long, message(0, 5, b"last")].concat();
    let wrong = chunk_claiming("none", 0, &data, data.len() + 5);
    check(&[&wrong, &index(), &index()], &["found", "record", "record"]);
}

#[test]
fn a_cut_chunk_ends_at_the_end_of_the_file() {
    let bag = [index(), index()].concat();
    let data = [messages(), message(0, 4, &bag)].concat();
    for cut in [0, 1, 10, 45, data.len() - 60] {
        let cut = &data[..data.len() - cut];
        check(&[&chunk_claiming("none", 0, cut, data.len() + 100)], &["cut_chunk"]);
    }
    let data = [data, b"more".to_vec()].concat();
    let cut = claiming(data.clone(), messages().len() + 46, bag.len() + 50);
    check(&[&chunk_claiming("none", 0, &cut, data.len() + 100)], &["cut_chunk"]);
}

#[test]
fn an_unclosed_chunk_ends_after_its_records() {
    let open = |data: &[u8]| chunk_claiming("none", 0, data, 0);
    let data = messages();
    check(&[&open(&data)], &["unterminated"]);
    check(&[&open(&data[..140])], &["unterminated"]);
    check(&[&open(&data), &index()], &["unterminated", "record"]);
    check(&[&open(&data), VERSION_LINE], &["unterminated", "line"]);
    check(&[&open(&[])], &["unterminated"]);
    check(&[&open(&[]), &index()], &["stored", "record"]);
    check(&[&open(&[]), VERSION_LINE], &["unterminated", "line"]);
}

#[test]
fn data_with_unknown_compression_end_at_the_next_record_between_chunks() {
    let data = [connection(0, "/a"), messages(), GARBAGE.to_vec()].concat();
    let of = |data_len: usize| chunk_claiming("zip", 9, &data, data_len);
    let (known, wrong) = (of(data.len()), of(data.len() + 5));
    check(&[&known, &index()], &["stored", "record"]);
    check(&[&known, GARBAGE, &index()], &["stored", "lost", "record"]);
    check(&[&known, GARBAGE], &["stored", "lost"]);
    check(&[&wrong, &index(), VERSION_LINE], &["found", "record", "line"]);
    check(&[&wrong, VERSION_LINE], &["found", "line"]);
    check(&[&wrong], &["cut_chunk"]);
    check(&[&chunk_claiming("zip", 0, &data, 0)], &["unterminated"]);
    check(&[&chunk_claiming("zip", 0, &data, 0), &index()], &["unterminated", "record"]);
}

#[cfg(feature = "compressed")]
#[test]
fn compressed_data_show_the_end_of_a_chunk() {
    use std::io::Write as _;
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&messages()).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&messages()).unwrap();
    for (name, data) in [("lz4", lz4.finish().unwrap()), ("bz2", bz2.finish().unwrap())] {
        for claimed in [data.len() + 5, data.len() - 5, data.len() + 500] {
            let wrong = chunk_claiming(name, 149, &data, claimed);
            check(&[&wrong, &index(), &index()], &["found", "record", "record"]);
        }
        check(&[&chunk_claiming(name, 0, &data, 0), &index()], &["unterminated", "record"]);
        check(&[&chunk_claiming(name, 0, &data, 0)], &["unterminated"]);
        check(&[&chunk_claiming(name, 0, &[], 0), VERSION_LINE], &["unterminated", "line"]);
        // Damage follows the chunk, so the length in the chunk header is used.
        let wrong = chunk_claiming(name, 149, &data, data.len() + 5);
        check(&[&wrong, &GARBAGE[..5], &GARBAGE[5..], &index()], &["stored", "", "lost", "record"]);
        // The last bytes of the chunk are missing.
        for missing in [9, 20, data.len() / 2] {
            let cut = &data[..data.len() - missing];
            let closed = chunk_claiming(name, 149, cut, data.len());
            check(&[&closed, &index(), &index()], &["found", "record", "record"]);
            check(&[&closed], &["cut_chunk"]);
            check(&[&chunk_claiming(name, 0, cut, 0), VERSION_LINE], &["unterminated", "line"]);
        }
        // The header names a compression, but the data are not compressed.
        let plain = chunk_claiming(name, 149, &connection(0, "/a"), 1000);
        check(&[&plain, &index()], &["found", "record"]);
    }
}

#[test]
fn messages_between_chunks_form_a_headerless_chunk() {
    check(&[&messages(), &index()], &["headless", "record"]);
    check(&[&[message(0, 1, b""), connection(0, "/a")].concat()], &["headless"]);
    let cut = claiming(message(0, 4, b"cut"), 46, 1000);
    check(&[&messages(), &cut], &["headless", "cut"]);
    check(&[&cut], &["cut"]);
}

#[test]
fn records_end_with_their_data() {
    let index = index();
    let head = index.len() - 36;
    // Recorders before version 1.1.15 state 20 bytes for each index entry.
    check(&[&claiming(index.clone(), head, 60), &index], &["record", "record"]);
    check(&[&claiming(index.clone(), head, 60)], &["record"]);
    // The number of entries is damaged. The record has 3 entries, but states 2 or 9.
    for count in [2, 9] {
        let mut wrong = index.clone();
        let at = wrong.windows(6).position(|bytes| bytes == b"count=").unwrap() + 6;
        wrong[at] = count;
        check(&[&wrong, &index], &["record", "record"]);
        check(&[&wrong[..head], &wrong[head..], GARBAGE, &index], &["lost", "", "", "record"]);
    }
    let spaces = |said: usize, data: &[u8]| {
        let header = bag_header_record(1, 2, 3);
        let head = header.iter().rposition(|byte| *byte != b' ').unwrap() + 1;
        claiming([&header[..head], data].concat(), head, said)
    };
    check(&[&spaces(50, &[b' '; 30]), &index], &["record", "record"]);
    check(&[&spaces(30, &[b' '; 30]), GARBAGE, &index], &["record", "lost", "record"]);
    check(&[&spaces(30, &[b'x'; 30]), GARBAGE, &index], &["lost", "", "record"]);
    check(&[&spaces(30, &[b'x'; 30]), &index], &["record", "record"]);
}

/// Damage follows a record. The record is still valid if its data match its length.
#[test]
fn a_record_before_damage_is_kept_if_its_data_match() {
    let info = chunk_info(13, (1, 3), &[(0, 3), (1, 3)]);
    for whole in [&index(), &connection(0, "/a"), &info] {
        check(&[whole, GARBAGE, &index()], &["record", "lost", "record"]);
        let mut broken = whole.clone();
        broken.pop();
        let head = whole.len() - data_len_of(whole);
        let broken = claiming(broken, head, whole.len() - head - 1);
        check(&[&broken, GARBAGE, &index()], &["lost", "", "record"]);
    }
    check(&[&unknown(9, b"data"), GARBAGE, &index()], &["lost", "", "record"]);
}

#[test]
fn cut_records_and_damaged_records_are_distinguished() {
    let whole = connection(0, "/a");
    check(&[&whole, &whole[..whole.len() - 1]], &["record", "cut"]);
    check(&[&whole, &whole[..20]], &["record", "cut"]);
    check(&[&whole, &whole[..3]], &["record", "cut"]);
    check(&[&whole, GARBAGE], &["record", "lost"]);
    // The length of the record is damaged, because complete records are inside its stated length.
    let long = claiming(whole.clone(), whole.len() - data_len_of(&whole), 9999);
    check(&[&long, &whole, &whole], &["lost", "record", "record"]);
}

/// The search for the end of a chunk must not decompress more bytes than reading the chunk, even if
/// the user allows more.
#[cfg(feature = "compressed")]
#[test]
fn the_end_of_compressed_data_is_searched_within_the_limit() {
    use std::io::Write as _;

    use crate::v2::Compression;

    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    packed.write_all(&vec![0; 65 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let bytes = [&packed[..], &index_data(0, &[])].concat();
    let scan = TopScan::new(13, cap());
    let end = |size: u32| scan.compressed_end(Window::whole(&bytes), 0, Compression::Bz2, size).unwrap();
    // The search decompresses at most 64 times the stored size, but up to 64 MiB in any case. The
    // size in the chunk header does not matter.
    assert_eq!((end(1000), end(17 << 20)), (None, None));
}
