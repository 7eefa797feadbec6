//! Tests of logs in zip archives, tar archives, and tar archives that are compressed as a whole.
#![cfg(all(feature = "compressed", feature = "ulog", feature = "rld"))]

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use rovelog::{Bytes, ErrorKind, ReadOptions, Select, from_bytes, logs_in_archive};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Returns the bytes of a log in the corpus.
fn log(name: &str) -> Vec<u8> {
    std::fs::read(rovelog_testing::root().join("corpus").join(name)).unwrap()
}

fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (number, (name, bytes)) in members.iter().enumerate() {
        let method = if number % 2 == 0 { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        archive.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Returns a tar archive in the format that POSIX specifies.
fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, bytes) in members {
        let (mut name, mut kind) = ((*name).to_owned(), b'0');
        if name.len() > 100 {
            // GNU tar stores a long file name as the content of an extra entry before the file.
            let long = format!("{name}\0");
            entry("././@LongLink", b'L', long.as_bytes(), &mut archive);
            name.truncate(100);
        }
        if name.ends_with('/') {
            kind = b'5';
        }
        entry(&name, kind, bytes, &mut archive);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}

fn entry(name: &str, kind: u8, bytes: &[u8], archive: &mut Vec<u8>) {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    archive.extend(header);
    archive.extend_from_slice(bytes);
    archive.resize(archive.len().next_multiple_of(512), 0);
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(data).unwrap();
    packer.finish().unwrap()
}

fn records(path: &Path) -> u64 {
    let log = rovelog::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    log.records(&Select::all()).map(|record| u64::from(record.is_ok())).sum()
}

/// Returns archives of each kind with the same members. Each archive has the file name extension of
/// its kind.
fn archives(members: &[(&str, &[u8])]) -> [(&'static str, Vec<u8>); 4] {
    let tar = tar(members);
    [("zip", zip(members)), ("tar.gz", gzip(&tar)), ("tgz", gzip(&tar)), ("tar", tar)]
}

#[test]
fn an_archive_with_one_log_opens_as_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let flight = log("ulog/one-topic.ulg");
    std::fs::write(folder.path().join("flight.ulg"), &flight).unwrap();
    let expected = records(&folder.path().join("flight.ulg"));
    assert!(expected > 0);
    let deep = format!("{}/flight.ulg", "a".repeat(120));
    for name in ["flight.ulg", "logs/2026/flight.ulg", "flight.ulg.gz", &deep, "log without extension"] {
        let packed = if name == "flight.ulg.gz" { gzip(&flight) } else { flight.clone() };
        let mut members = vec![(name, &packed[..])];
        if name.ends_with("ulg") {
            members.extend([("README.txt", &b"a text"[..]), ("__MACOSX/._flight.ulg", b"\0\x05\x16\x07")]);
        }
        for (ending, archive) in archives(&members) {
            let path = folder.path().join(format!("flight.ulg.{ending}"));
            std::fs::write(&path, &archive).unwrap();
            assert_eq!(records(&path), expected, "{name} in {ending}");
            assert_eq!(logs_in_archive(&path).unwrap(), Vec::<PathBuf>::new());
            if matches!(ending, "zip" | "tar") {
                let log = from_bytes(archive.into(), &ReadOptions::default()).unwrap();
                assert_eq!(log.info().records, expected, "{name} in {ending}, in memory");
            }
        }
    }
}

#[test]
fn one_of_several_logs_is_opened_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let (flight, power) = (log("ulog/one-topic.ulg"), log("rld/v4.rld"));
    let members = [("logs/", &b""[..]), ("logs/b.rld", &power), ("a.ulg", &flight), ("notes.txt", b"text")];
    for (ending, archive) in archives(&members) {
        let path = folder.path().join(format!("both.{ending}"));
        std::fs::write(&path, &archive).unwrap();
        let inside = [path.join("a.ulg"), path.join("logs/b.rld")];
        assert_eq!(logs_in_archive(&path).unwrap(), inside);
        assert!(records(&inside[0]) > 0 && records(&inside[1]) > 0);
        assert_eq!(rovelog::open(&inside[1]).unwrap().format().id, "rld");
        let error = rovelog::open(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArgument);
        assert_eq!(error.to_string(), "the file is an archive with 2 logs: logs/b.rld, a.ulg");
        assert_eq!(error.next.unwrap(), format!("name one of them, such as {}/logs/b.rld", path.display()));
        let missing = rovelog::open(path.join("c.ulg")).unwrap_err();
        assert_eq!(missing.to_string(), "the archive has no file c.ulg");
        let mut bytes = Vec::new();
        rovelog::source(&inside[0]).unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, flight);
    }
    let file = folder.path().join("a.ulg");
    std::fs::write(&file, &flight).unwrap();
    let error = rovelog::open(file.join("b.ulg")).unwrap_err();
    assert_eq!(error.to_string(), "a.ulg is neither a folder nor an archive");
}

/// Files of a recording may be compressed within an archive. They are read together with the first
/// file, and are not logs of their own.
#[test]
fn compressed_files_of_a_recording_in_an_archive_are_one_log() {
    let folder = tempfile::tempdir().unwrap();
    let (flight, power) = (log("ulog/one-topic.ulg"), log("rld/v4.rld"));
    let part = gzip(&power);
    let single = folder.path().join("single.rld");
    std::fs::write(&single, &power).unwrap();
    let members = [("a.ulg", &flight[..]), ("logs/b_p1.rld.gz", &part), ("logs/b.rld.gz", &part)];
    for (ending, archive) in archives(&members) {
        let path = folder.path().join(format!("all.{ending}"));
        std::fs::write(&path, &archive).unwrap();
        let inside = [path.join("a.ulg"), path.join("logs/b.rld.gz")];
        assert_eq!(logs_in_archive(&path).unwrap(), inside);
        let files = rovelog::sources(&inside[1]).unwrap();
        let bytes = files.into_iter().map(|mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            bytes
        });
        assert_eq!(bytes.collect::<Vec<_>>(), [&part[..], &part]);
        assert_eq!(records(&inside[1]), 2 * records(&single), "{ending}");
    }
}

#[test]
fn a_damaged_archive_never_panics() {
    let flight = log("ulog/one-topic.ulg");
    for archive in [zip(&[("a.ulg", &flight)]), tar(&[("a.ulg", &flight)])] {
        for at in (0..archive.len()).step_by(1 + archive.len() / 400) {
            for bytes in [archive[..at].to_vec(), {
                let mut bytes = archive.clone();
                bytes[at] ^= 0x55;
                bytes
            }] {
                // Any result is acceptable, but a panic is not.
                let _ = from_bytes(Bytes::from(bytes), &ReadOptions::default());
            }
        }
    }
    let empty = from_bytes(zip(&[]).into(), &ReadOptions::default()).unwrap_err();
    assert_eq!(empty.to_string(), "the file is an archive with 0 logs");
}

#[test]
fn a_damaged_tar_archive_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs.tar");
    let flight = log("ulog/one-topic.ulg");
    let archive = tar(&[("a.ulg", &flight), ("b.ulg", &flight)]);
    let second = 512 + flight.len().next_multiple_of(512);
    let mut bad_sum = archive.clone();
    bad_sum[second] ^= 0x55;
    for (damaged, why) in [
        (bad_sum, "archive header checksum mismatch"),
        (archive[..second + 600].to_vec(), "it ends within b.ulg"),
    ] {
        std::fs::write(&path, damaged).unwrap();
        let error = rovelog::open(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Malformed);
        let what = format!("the archive is damaged ({why}), with 1 log before the damage: a.ulg");
        assert_eq!(error.to_string(), what);
        assert_eq!(error.next.unwrap(), format!("name one of them, such as {}/a.ulg", path.display()));
        assert_eq!(logs_in_archive(&path).unwrap(), Vec::<PathBuf>::new());
        assert!(records(&path.join("a.ulg")) > 0);
    }
}

#[test]
fn unpacking_an_archive_stops_at_the_limit() {
    let bomb = [&log("ulog/one-topic.ulg")[..], &vec![0; 20 << 20]].concat();
    let archive = zip(&[("a.ulg", &bomb)]);
    let mut options = ReadOptions::default();
    options.limits = options.limits.with_unpacked(8 << 20);
    let error = from_bytes(archive.clone().into(), &options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitExceeded);
    assert_eq!(
        error.to_string(),
        "the file a.ulg in the archive decompresses to more than the limit of 8388608 bytes"
    );
    options.limits = options.limits.with_unpacked(30 << 20);
    assert!(from_bytes(archive.into(), &options).is_ok());
}
