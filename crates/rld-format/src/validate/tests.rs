use rovelog_core::internal::wire::{I32Le, U16Le, U32Le, U64Le};
use zerocopy::IntoBytes as _;

use super::*;
use crate::unit::Unit;
use crate::wire::BlockTimes;
use crate::writer::{ChannelSpec, LogSpec, set_counts};

/// Duration of a block of 20 rows at 1 kSPS, in nanoseconds.
const PERIOD: i128 = 20 * 1_003_520;

/// Returns the header of a log with a single analog channel and 20 rows per block.
fn head(version: u16, rows: u64) -> Header {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let mut header = LogSpec { version, block_rows: 20, channels, ..LogSpec::new(1000) }.header().unwrap();
    set_counts(&mut header, rows).unwrap();
    header
}

fn of_header(header: &Header) -> Validated {
    let bytes = header.to_bytes();
    validate(&bytes, Some(bytes.len() as u64)).unwrap().unwrap()
}

fn named(notes: &Notes) -> Vec<(&str, Range<u64>)> {
    notes.iter().map(|(rule, range, _)| (rule.name, range.clone())).collect()
}

fn texts(notes: &Notes) -> Vec<&str> {
    notes.iter().map(|(_, _, text)| &**text).collect()
}

/// Returns `header` followed by `len` bytes of noise. `times` lists offsets within the noise at
/// which block times are stored, each with its time in nanoseconds.
fn log(header: &Header, len: usize, times: &[(usize, i128)]) -> Vec<u8> {
    let mut bytes = header.to_bytes();
    let start = bytes.len();
    bytes.resize(start + len, 0x7F);
    for (at, time) in times {
        let times = BlockTimes::new(1_700_000_000_000_000_000 + time, 1_000 + time).unwrap();
        bytes[start + at..][..32].copy_from_slice(times.as_bytes());
    }
    bytes
}

#[test]
fn a_cut_lead_in_is_not_mistaken_for_another_format() {
    for head in [&b""[..], b"%R", b"%RLD", b"BLR%\x01"] {
        let of_file = validate(head, Some(5));
        assert!(matches!(of_file, Err(RldError::HeaderCut { len: 5, header: LEAD_IN_LEN })), "{head:?}");
        assert!(matches!(validate(head, None), Ok(Err(NeedMore(LEAD_IN_LEN)))), "{head:?}");
    }
    for head in [&b"%RLC"[..], b"RLD%", b"ULog\x01"] {
        assert!(matches!(validate(head, Some(5)), Err(RldError::NotRld)), "{head:?}");
        // A file with a damaged magic number is recognized by the rest of its header.
        assert!(matches!(validate(head, None), Ok(Err(NeedMore(LEAD_IN_LEN)))), "{head:?}");
    }
}

#[test]
fn counts_of_rows_and_blocks_must_agree() {
    for (rows, blocks, size, want) in [
        (0, 0, 0, Some(0)),
        (1, 0, 0, None),
        (0, 1, 0, None),
        (10, 2, 5, Some(10)),
        (11, 2, 5, None),
        (11, 3, 5, Some(11)),
    ] {
        let mut lead_in = head(4, 0).lead_in;
        (lead_in.sample_count, lead_in.data_block_count) = (U64Le::new(rows), U32Le::new(blocks));
        lead_in.data_block_size = U32Le::new(size);
        let mut notes = Notes::new();
        assert_eq!(declared(&lead_in, &mut notes), want, "{rows} in {blocks} of {size}");
        assert_eq!(notes.is_empty(), want.is_some());
    }
}

#[test]
fn rows_need_a_rate_for_their_times() {
    let notes = |rate: u16, rows| {
        let mut header = head(4, rows);
        header.lead_in.sample_rate = U16Le::new(rate);
        texts(&of_header(&header).notes).join("; ")
    };
    assert_eq!(
        (&*notes(0, 20), &*notes(0, 0), &*notes(1000, 20)),
        ("the sample rate in the header is 0, so rows have no times", "", "")
    );
}

#[test]
fn extra_words_are_detected_by_block_times_or_size() {
    let is_extra = |header: &Header, bytes: &[u8], len| {
        let found = validate(bytes, len).unwrap().map(|found| found.notes);
        found.map(|notes| named(&notes).contains(&("extra_word", header.size()..header.size())))
    };
    let in_file = |header: &Header, bytes: &[u8]| is_extra(header, bytes, Some(bytes.len() as u64));
    // If the file has one block, its size decides.
    for rows in [3, 20] {
        for (version, body, extra) in
            [(4, rows * 8, true), (4, rows * 4, false), (4, rows * 8 + 1, false), (3, rows * 8, false)]
        {
            let header = head(version, rows as u64);
            let found = in_file(&header, &log(&header, 32 + body, &[(0, 0)]));
            assert_eq!(found, Ok(extra), "version {version}, {rows} rows in {body} bytes");
        }
    }
    let mut bits = head(4, 3);
    bits.channels.insert(0, bits.channels[0]);
    (bits.channels[0].unit, bits.channels[0].scale) = (U32Le::new(Unit::Binary.code()), I32Le::new(0));
    (bits.lead_in.binary_count, bits.lead_in.header_length) = (U16Le::new(1), U16Le::new(116));
    assert_eq!(in_file(&bits, &log(&bits, 32 + 36, &[(0, 0)])), Ok(false), "it has bits");
    // If the file has two blocks, the times of the second block decide.
    let header = head(4, 40);
    let extra = log(&header, 192 + 32, &[(0, 0), (192, PERIOD)]);
    // A stream requests the bytes up to the times of the second block. If these times
    // contradict the header, it requests the times of more blocks.
    for len in [extra.len() - 1, extra.len()] {
        let need = if len < extra.len() { extra.len() } else { 88 + 8 * 192 + 32 } as u64;
        assert_eq!(is_extra(&header, &extra[..len], None), Err(NeedMore(need)));
    }
    // The times fit rows with an extra word. But if the file has exactly the size for rows
    // without an extra word, its rows have none.
    for (rows, body, found) in [(40, 224, false), (40, 228, true), (41, 224 + 32 + 4, false)] {
        let header = head(4, rows);
        let bytes = log(&header, body, &[(0, 0), (192, PERIOD)]);
        assert_eq!(in_file(&header, &bytes), Ok(found), "{rows} rows in {body} bytes");
    }
    let longer = log(&header, 192 + 40, &[(0, 0), (192, PERIOD)]);
    assert_eq!(in_file(&header, &longer), Ok(true));
    let both = log(&header, 192 + 40, &[(0, 0), (112, PERIOD), (192, PERIOD)]);
    let neither = log(&header, 192 + 40, &[(0, 0)]);
    assert_eq!((in_file(&header, &both), in_file(&header, &neither)), (Ok(false), Ok(false)));
    // If the clock went back at the second block, the layout is used that fits most of the
    // first blocks.
    let plain = |n: u32| (112 * n as usize, i128::from(n) * PERIOD);
    let extra = |n: u32| (192 * n as usize, i128::from(n) * PERIOD);
    let first = [(0, 3 * PERIOD), (192, 4 * PERIOD)];
    for (counted, more, want) in [
        (5, vec![plain(2), plain(3), plain(4)], false),
        (5, vec![plain(3), plain(4)], false),
        (2, vec![plain(3), plain(4)], true),
        (5, vec![(2 * 192, 5 * PERIOD), plain(6), plain(7)], true),
        // The header is right if, with the layout of the header, the second block follows the
        // first.
        (5, vec![(112, 4 * PERIOD), (2 * 192, 5 * PERIOD), (3 * 192, 6 * PERIOD)], false),
    ] {
        let header = head(4, 20 * counted);
        let bytes = log(&header, 1000, &[&first[..], &more].concat());
        assert_eq!(in_file(&header, &bytes), Ok(want), "{counted}: {more:?}");
    }
    let uncounted =
        Header { lead_in: LeadIn { data_block_count: U32Le::new(9), ..header.lead_in }, ..header };
    let of_stream =
        |len: usize| is_extra(&uncounted, &log(&uncounted, 2000, &[extra(0), extra(1)])[..88 + len], None);
    assert_eq!(
        (of_stream(192 * 8 + 31), of_stream(192 * 8 + 32)),
        (Err(NeedMore(88 + 192 * 8 + 32)), Ok(true))
    );
}

#[test]
fn extra_words_are_detected_within_the_stream_buffer() {
    let mut header = head(4, 0);
    let most = (LOOK_AHEAD - header.size() - 2 * BLOCK_TIMES_LEN) / 8;
    for (rows, extra) in [(most, true), (most + 1, false)] {
        header.lead_in.data_block_size = U32Le::new(u32::try_from(rows).unwrap());
        set_counts(&mut header, 2 * rows).unwrap();
        let second = usize::try_from(32 + 8 * rows).unwrap();
        let bytes = log(&header, second + 100, &[(0, 0), (second, PERIOD)]);
        let found = validate(&bytes, Some(bytes.len() as u64)).unwrap().unwrap();
        let of_stream = validate(&bytes[..usize::try_from(LOOK_AHEAD).unwrap()], None).unwrap().unwrap();
        for found in [found, of_stream] {
            assert_eq!(named(&found.notes).iter().any(|(name, _)| *name == "extra_word"), extra, "{rows}");
        }
    }
}

#[test]
fn uncounted_blocks_must_continue_the_counted_ones() {
    let uncounted = |rows, len, times: &[(usize, i128)], last: Option<BlockRun>| {
        let header = head(4, rows);
        let validated = of_header(&header);
        validated
            .count_uncounted_rows(&log(&header, len, times), &last.unwrap_or(BlockRun::from(header.size())))
    };
    let three = [(0, 0), (112, PERIOD), (224, 2 * PERIOD)];
    assert_eq!(uncounted(20, 3 * 112, &three, None), 40);
    assert_eq!(uncounted(20, 2 * 112 + 32 + 11, &three, None), 22);
    assert_eq!(uncounted(20, 2 * 112 + 32, &three, None), 20);
    assert_eq!(uncounted(20, 3 * 112, &three[..2], None), 20, "no times");
    assert_eq!(uncounted(20, 2 * 112, &[(0, PERIOD), (112, 0)], None), 0, "an earlier block");
    assert_eq!(uncounted(20, 3 * 112, &[(0, 0), (112, PERIOD), (224, 0)], None), 20);
    assert_eq!(uncounted(25, 3 * 112, &three, None), 0, "the last block that is counted is not full");
    // The file has no counted block before the uncounted rows.
    assert_eq!(uncounted(0, 112, &three[..1], None), 20);
    let last = BlockRun { at: 88 + 112, before: 20, left_out: 20 };
    assert_eq!(uncounted(20, 2 * 112, &three[1..2], Some(last)), 20);
}

#[test]
fn without_a_layout_no_rows_are_counted() {
    let of = |channels: usize, block_rows: u32, rows: u64| {
        let mut header = head(4, 0);
        header.channels.truncate(channels);
        header.lead_in.analog_count = U16Le::new(u16::try_from(channels).unwrap());
        header.lead_in.header_length = U16Le::new(u16::try_from(header.size()).unwrap());
        header.lead_in.data_block_size = U32Le::new(block_rows);
        header.lead_in.sample_count = U64Le::new(rows);
        let validated = of_header(&header);
        assert!(validated.full_block_layout().is_none());
        let end = header.size();
        let extent = |len| {
            let extent = validated.extent(end + len, &BlockRun::from(end), 0);
            assert_eq!((extent.rows, extent.missing, extent.left_out), (0, 0, 0));
            let notes = extent
                .notes
                .into_iter()
                .map(|(rule, range, text)| (rule.name, range.start - end..range.end - end, text));
            notes.collect::<Vec<_>>()
        };
        assert_eq!(extent(0), []);
        extent(40)
    };
    let trailing = [(
        "trailing_bytes",
        0..40,
        "the header states no blocks, so the bytes after it are not read".to_owned(),
    )];
    assert_eq!((of(0, 5, 0), of(1, 0, 0)), (trailing.to_vec(), trailing.to_vec()));
    assert_eq!(of(1, 0, 3), [("no_layout", 0..40, "the header states blocks of 0 rows".to_owned())]);
}

#[test]
fn diagnostics_cover_the_bytes_that_are_not_read() {
    let extent = |rows, len, uncounted| {
        let header = head(4, rows);
        let end = header.size();
        let extent = of_header(&header).extent(end + len, &BlockRun::from(end), uncounted);
        let notes = extent
            .notes
            .into_iter()
            .map(|(rule, range, text)| (rule.name, range.start - end..range.end - end, text));
        (extent.rows, extent.missing, extent.left_out, notes.collect::<Vec<_>>())
    };
    let cut = "the file ends 3 bytes after the last complete row, so row 2 is lost; the header counts 20 \
               rows, but the file has 2"
        .to_owned();
    assert_eq!(extent(20, 43, 0), (2, 18, 0, vec![("cut", 40..43, cut)]));
    let uncounted =
        "the reader skipped 30 rows that the header does not count; `rovelog recover` keeps them".to_owned();
    let rest = (
        "trailing_bytes",
        296..299,
        "the file ends with 3 bytes of data that is not part of a block and is not read".to_owned(),
    );
    assert_eq!(extent(20, 299, 30), (20, 0, 30, vec![("header_behind", 112..296, uncounted), rest.clone()]));
    assert_eq!(extent(50, 299, 0), (50, 0, 0, vec![rest]));
}

/// Computes the row counts of a file of `len` bytes whose header counts `rows` rows in blocks
/// of 256 032 bytes.
fn limited(version: u16, rows: u64, len: u64) -> Extent {
    let mut header = head(version, 0);
    header.lead_in.data_block_size = U32Le::new(64_000);
    header.lead_in.sample_rate = U16Le::new(64_000);
    set_counts(&mut header, rows).unwrap();
    of_header(&header).extent(len, &BlockRun::from(header.size()), 0)
}

#[test]
fn files_limited_to_2_gib_are_read_to_their_end() {
    let names = |extent: &Extent| extent.notes.iter().map(|note| note.0.name).collect::<Vec<_>>();
    // The header counts 750 000 000 rows, which would take 3 GB.
    let (rows, len) = (750_000_000, (1 << 31) - 1);
    let file = limited(3, rows, len);
    assert_eq!(names(&file), ["cut", "stopped_at_2_gib"]);
    // The file has full blocks and a part of another block.
    let body = len - (56 + 4 + 28);
    assert_eq!(file.rows, body / 256_032 * 64_000 + (body % 256_032 - 32) / 4);
    assert_eq!(file.missing, rows - file.rows);
    // The diagnostic is not reported for other versions, other file sizes, and complete files.
    assert_eq!(names(&limited(4, rows, len)), ["cut"]);
    assert_eq!(names(&limited(3, rows, len - 300_001)), ["cut"]);
    assert_eq!(names(&limited(3, 8387 * 64_000, 88 + 8387 * 256_032)), [""; 0]);
}
