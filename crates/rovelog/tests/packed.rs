//! Tests of logs in all formats that are compressed as a whole. They are intact, truncated,
//! damaged, or larger than the limit.
#![cfg(feature = "compressed")]

// This module converts a bag to JSON.
#[path = "../../rosbag12/tests/support/mod.rs"]
mod support;

use std::io::{Cursor, Read, Write as _};

use rovelog::core::internal::packed;
use rovelog::{Bytes, ErrorKind, ReadOptions, RecoverOptions, State, from_bytes, open_stream};
use rovelog_testing::Log;

type Packer = fn(&[u8]) -> Vec<u8>;

/// Names of the compressions, each with a function that compresses data.
const PACKERS: [(&str, Packer); 5] =
    [("gzip", gzip), ("bzip2", bzip2), ("xz", xz), ("zstd", zstd), ("lz4", lz4)];

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    bzip2::read::BzEncoder::new(data, bzip2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

fn xz(data: &[u8]) -> Vec<u8> {
    let mut packer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

/// Compresses data with a checksum at the end of the frame, as the tool `zstd` does by default.
fn zstd(data: &[u8]) -> Vec<u8> {
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packer.include_checksum(true).unwrap();
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

fn lz4(data: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
    let mut packer = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

/// Returns one intact log of each format.
fn logs() -> Vec<Log> {
    let one =
        [("ulog", "ulg", "arrays-of-all-basic-types"), ("rld", "rld", "jitter"), ("vel", "vel", "all-kinds")];
    let mut logs = Vec::new();
    for (folder, extension, name) in one {
        let found = rovelog_testing::corpus(folder, extension, 1).into_iter().find(|log| log.name == name);
        logs.push(found.unwrap_or_else(|| panic!("{folder}/{name} is in the corpus")));
    }
    logs.extend(rovelog_testing::corpus("rosbag", "bag", 40).into_iter().filter(|log| log.name == "v2.0"));
    assert_eq!(logs.len(), 4);
    logs
}

type Read_ = (u64, State, Vec<(&'static str, u64)>);

/// Reads a log from memory and as a stream, and checks that both give the same result. Returns the
/// number of records, the state of the log, and the counts of diagnostics about the compressed
/// file.
fn read(bytes: &[u8], what: &str) -> Result<Read_, rovelog::Error> {
    let options = ReadOptions::default();
    let counts = |found: &rovelog::Diagnostics| {
        let of_files = found.counts().iter().filter(|(code, _)| code.contains("FILE"));
        of_files.map(|(code, count)| (*code, *count)).collect::<Vec<_>>()
    };
    let file = from_bytes(Bytes::copy_from_slice(bytes), &options);
    let file = file.map(|log| {
        (log.records(&rovelog::Select::all()).count() as u64, log.info().state, counts(log.diagnostics()))
    });
    let pipe = open_stream(Box::new(Cursor::new(bytes.to_vec())), &options).and_then(|mut log| {
        let mut records = 0;
        while log.next_record()?.is_some() {
            records += 1;
        }
        Ok((records, log.info().state, counts(log.diagnostics())))
    });
    match (&file, &pipe) {
        (Ok(file), Ok(pipe)) => assert_eq!(file, pipe, "{what}"),
        // A stream may detect damage of the log before the checksum of the compressed data, so the
        // errors can differ.
        (Err(_), Err(_)) => {}
        _ => panic!("{what}: {file:?}, from a pipe {pipe:?}"),
    }
    file
}

#[test]
fn every_format_is_read_from_every_compression() {
    for log in logs() {
        let (records, state, _) = read(&log.bytes, &log.name).unwrap();
        assert!(records > 0 && state == State::Complete, "{}: {records} {state:?}", log.name);
        for (name, pack) in PACKERS {
            let what = format!("{} as {name}", log.name);
            let packed = pack(&log.bytes);
            assert_eq!(read(&packed, &what).unwrap(), (records, state, vec![("W-FILE-101", 1)]), "{what}");
            // If a file has two members or frames, its content is their joined content, as with the
            // command-line tools.
            let (front, back) = log.bytes.split_at(log.bytes.len() / 3);
            let joined = [pack(front), pack(back)].concat();
            assert_eq!(read(&joined, &what).unwrap(), (records, state, vec![("W-FILE-101", 1)]), "{what}");
            let followed = [&packed[..], b"no such data"].concat();
            let (found, state, codes) = read(&followed, &what).unwrap();
            assert_eq!((found, state), (records, State::Damaged), "{what}");
            assert_eq!(codes, [("E-FILE-003", 1), ("W-FILE-101", 1)], "{what}");
            let padded = [&packed[..], &[0; 100]].concat();
            let (found, state, codes) = read(&padded, &what).unwrap();
            assert_eq!((found, state), (records, State::Complete), "{what}");
            assert_eq!(codes, [("W-FILE-101", 1), ("W-FILE-102", 1)], "{what}");
            let packed_log = from_bytes(packed.into(), &ReadOptions::default()).unwrap();
            let mut out = Vec::new();
            let recovery = packed_log.recover(&mut out, &RecoverOptions::default()).unwrap();
            assert!(recovery.unchanged && out == *log.bytes, "{what}");
        }
    }
}

#[test]
fn a_cut_compressed_file_is_never_complete() {
    let (mut opened, mut refused) = (0, 0);
    for log in logs() {
        let (all, ..) = read(&log.bytes, &log.name).unwrap();
        for (name, pack) in PACKERS {
            let packed = pack(&log.bytes);
            for len in (8..packed.len()).step_by(1 + packed.len() / 300) {
                let what = format!("{} as {name} cut at {len} of {}", log.name, packed.len());
                match read(&packed[..len], &what) {
                    Ok((records, state, codes)) => {
                        assert!(state != State::Complete && records <= all, "{what}: {state:?}");
                        assert!(
                            codes.iter().any(|(code, _)| ["E-FILE-001", "E-FILE-002"].contains(code)),
                            "{what}"
                        );
                        let cut = from_bytes(Bytes::copy_from_slice(&packed[..len]), &ReadOptions::default());
                        let recovery =
                            cut.unwrap().recover(&mut Vec::new(), &RecoverOptions::default()).unwrap();
                        assert!(!recovery.is_complete() && !recovery.unchanged, "{what}");
                        opened += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("truncated at"), "{what}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(opened > 300 && refused > 300, "{opened} were opened, {refused} refused");
}

#[test]
fn wrong_bytes_of_compressed_files_are_detected() {
    let (mut free, mut found) = (0, 0);
    for log in logs() {
        let before = read(&log.bytes, &log.name).unwrap();
        for (name, pack) in PACKERS {
            let packed = pack(&log.bytes);
            for at in (6..packed.len()).step_by(1 + packed.len() / 200) {
                let mut bytes = packed.clone();
                bytes[at] ^= 0x21;
                let what = format!("{} as {name} byte {at}", log.name);
                // Some bytes do not affect the content, such as the time in the header of a gzip
                // file.
                match read(&bytes, &what) {
                    Ok((records, State::Complete, _)) => {
                        assert_eq!(records, before.0, "{what}");
                        free += 1;
                    }
                    _ => found += 1,
                }
            }
        }
    }
    assert!(free < 60 && found > 1000, "{free} bytes do not matter, {found} do");
}

/// Decompression must stop at the limit, so that a small file cannot fill the memory. Content up to
/// the limit is read.
#[test]
fn decompression_stops_at_the_limit() {
    for log in logs() {
        for (name, pack) in PACKERS {
            let what = format!("{} as {name}", log.name);
            let bomb = pack(&[&log.bytes[..], &vec![0; 20 << 20]].concat());
            let mut options = ReadOptions::default();
            options.limits = options.limits.with_unpacked(8 << 20);
            let error = from_bytes(bomb.clone().into(), &options).map(drop).expect_err(&what);
            assert_eq!(error.kind, ErrorKind::LimitExceeded, "{what}: {error}");
            assert!(error.to_string().contains("8388608 bytes"), "{what}: {error}");
            options.limits = options.limits.with_unpacked(21 << 20);
            assert!(from_bytes(bomb.into(), &options).is_ok(), "{what}");
        }
    }
}

/// If a compressed file does not contain a log, the error states what it contains.
#[test]
fn compressed_files_of_other_kinds_are_named() {
    for (name, pack) in PACKERS {
        let error =
            from_bytes(pack(&b"PK\x03\x04".repeat(1000)).into(), &ReadOptions::default()).err().unwrap();
        assert!(error.to_string().contains("a zip archive"), "{name}: {error}");
        let empty = from_bytes(pack(b"").into(), &ReadOptions::default()).err().unwrap();
        assert!(empty.to_string().contains("empty"), "{name}: {empty}");
    }
    assert_eq!(packed::ALL.len(), 5);
}

/// The corpus has compressed bags that no common tool writes. They have optional header fields of
/// gzip, several members, or a wrong checksum.
#[test]
fn every_case_of_the_corpus_reads_as_expected() {
    let logs = rovelog_testing::ROSBAG;
    assert!(logs.compressed().len() >= 15);
    rovelog_testing::check_cases(&logs, logs.compressed(), |log, _| {
        match from_bytes(log.bytes.clone(), &ReadOptions::default())? {
            rovelog::AnyLog::Rosbag(bag) => Ok(support::picture(&bag)),
            _ => unreachable!("the case is a bag"),
        }
    });
}

/// Returns the three files of an RLD recording. They have 2, 2 and 1 blocks of 10 rows at 1 kSPS.
fn parts_of_a_recording() -> Vec<Vec<u8>> {
    use rovelog::rld_format::wire::BlockTimes;
    use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, encode_row, unit::Unit};

    const BLOCK: i128 = 10_035_200;
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -8)];
    let spec = LogSpec { channels, block_rows: 10, ..LogSpec::new(1000) };
    let part = |blocks: std::ops::Range<i128>| {
        let mut log = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
        for block in blocks {
            let mut rows = Vec::new();
            for row in 0..10 {
                encode_row(log.layout(), &[], &[i64::try_from(10 * block).unwrap() + row], &mut rows)
                    .unwrap();
            }
            let times = BlockTimes::new(1_700_000_000_000_000_000 + block * BLOCK, 5_000 + block * BLOCK);
            log.block(&times.unwrap(), &rows).unwrap();
        }
        log.finish_in_place().unwrap().0.into_inner()
    };
    vec![part(0..2), part(2..4), part(4..5)]
}

#[test]
fn separately_compressed_parts_are_joined() {
    let parts = parts_of_a_recording();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let records = |name: &str| {
        let log = rovelog::open(folder.path().join(name)).unwrap();
        assert_eq!(log.info().state, State::Complete);
        log.info().records
    };
    let suffixes = [".gz", ".bz2", ".xz", ".zst", ".lz4"];
    for ((_, pack), suffix) in PACKERS.into_iter().zip(suffixes) {
        for (number, bytes) in ["", "_p1", "_p2"].into_iter().zip(&parts) {
            write(&format!("x{}{number}.rld{suffix}", &suffix[1..]), &pack(bytes));
        }
        let first = format!("x{}.rld{suffix}", &suffix[1..]);
        assert_eq!(records(&first), 50, "{suffix}");
        let others = rovelog::companions(folder.path().join(&first), None);
        assert_eq!(others.len(), 2, "{suffix}: {others:?}");
        let alone = {
            let mut options = ReadOptions::default();
            options.alone = true;
            options
        };
        let log = rovelog::open_with(folder.path().join(&first), &alone).unwrap();
        assert_eq!(log.info().records, 20, "{suffix}, only the named file");
    }
    // Only some files of the recording are compressed.
    write("mixed.rld", &parts[0]);
    write("mixed_p1.rld.gz", &gzip(&parts[1]));
    write("mixed_p2.rld.zst", &zstd(&parts[2]));
    assert_eq!(records("mixed.rld"), 50);
    write("other.rld.xz", &xz(&parts[0]));
    write("other_p1.rld", &parts[1]);
    assert_eq!(records("other.rld.xz"), 40);
    // If a companion file cannot be decompressed, the error states its name.
    write("bad.rld", &parts[0]);
    let mut bad = gzip(&parts[1]);
    bad[12..].fill(0xff);
    write("bad_p1.rld.gz", &bad);
    let error = rovelog::open(folder.path().join("bad.rld")).unwrap_err().to_string();
    assert!(error.contains("bad_p1.rld.gz"), "{error}");
}

#[test]
fn files_in_memory_are_joined_in_any_order() {
    let parts = parts_of_a_recording();
    let file = |name: &str, bytes: &[u8]| (name.to_owned(), Bytes::copy_from_slice(bytes));
    let files = vec![
        file("x.rld.gz", &gzip(&parts[0])),
        file("x_p2.rld.zst", &zstd(&parts[2])),
        file("x_p1.rld", &parts[1]),
    ];
    let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    assert_eq!(rovelog::group_by_log(&names), [[0, 2, 1]]);
    let log = rovelog::from_files(files.clone(), &ReadOptions::default()).unwrap();
    assert_eq!((log.info().state, log.info().records), (State::Complete, 50));
    // A file of another recording, and a file that cannot be decompressed, are named.
    let refused = |other: (String, Bytes)| {
        let files = vec![files[0].clone(), other];
        rovelog::from_files(files, &ReadOptions::default()).err().map(|error| error.to_string())
    };
    let error = refused(file("y_p1.rld", &parts[1])).unwrap();
    assert!(error.contains("y_p1.rld does not belong to the log x.rld.gz"), "{error}");
    let mut bad = gzip(&parts[1]);
    bad[12..].fill(0xff);
    let error = refused(file("x_p1.rld.gz", &bad)).unwrap();
    assert!(error.contains("x_p1.rld.gz"), "{error}");
}
