//! If a memory-mapped log is shortened while it is open, reading must return an error, and the
//! program must continue.
#![cfg(all(unix, feature = "mmap", feature = "ulog"))]

use std::fs::{self, OpenOptions};

use rovelog::{ErrorKind, ReadOptions};

/// Returns a log that is larger than 1 MiB, so that it is memory-mapped.
fn large_log() -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01\0\0\0\0\0\0\0\0".to_vec();
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    message(b'F', b"t:uint64_t timestamp;uint64_t x;");
    message(b'A', b"\0\x01\0t");
    for time in 0..60_000_u64 {
        message(b'D', &[&[1, 0][..], &time.to_le_bytes(), &time.to_le_bytes()].concat());
    }
    log
}

#[test]
fn a_shortened_log_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ulg");
    for hidden in [false, true] {
        fs::write(&path, large_log()).unwrap();
        let (log, watch) = rovelog::open_watched(&path, None, &ReadOptions::default()).unwrap();
        assert_eq!(log.topics()[0].count, 60_000);
        watch.check().unwrap();
        // If the file was renamed, its new length cannot be queried by its path. Then only the
        // fault shows that the file was shortened.
        let now = folder.path().join("b.ulg");
        let file = if hidden {
            fs::rename(&path, &now).unwrap();
            now
        } else {
            path.clone()
        };
        OpenOptions::new().write(true).open(file).unwrap().set_len(5000).unwrap();
        assert!(log.records(&rovelog::Select::all()).count() < 60_000);
        let error = watch.check().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io);
        assert!(error.to_string().contains("another program shortened"), "{error}");
    }
}

/// Positions of records are collected in batches. So a log can be shortened after the position of a
/// record was found, and before the record is read.
#[test]
#[cfg(feature = "rosbag")]
fn shortening_a_log_between_two_records_does_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    let bag = fs::read(rovelog_testing::root().join("corpus/rosbag/robot.bag")).unwrap();
    let bag = bag.repeat((2 << 20) / bag.len() + 1);
    for (name, bytes) in [("a.ulg", large_log()), ("b.bag", bag)] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (log, watch) = rovelog::open_watched(&path, None, &ReadOptions::default()).unwrap();
        let select = rovelog::Select::all();
        let mut records = log.records(&select);
        assert!(records.by_ref().take(10).all(|record| record.is_ok()), "{name}");
        OpenOptions::new().write(true).open(&path).unwrap().set_len(5000).unwrap();
        // A record of zeros without data may be valid. All other records of zeros must cause an
        // error.
        for error in records.filter_map(Result::err) {
            assert!(error.to_string().contains("was changed by another program"), "{name}: {error}");
        }
        assert!(watch.check().is_err(), "{name}");
    }
}

#[test]
fn logs_that_grow_or_are_replaced_are_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.ulg"), folder.path().join("b.ulg"));
    fs::write(&path, large_log()).unwrap();
    let (log, watch) = rovelog::open_watched(&path, Some("ulog"), &ReadOptions::default()).unwrap();
    fs::write(&other, b"short").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(log.records(&rovelog::Select::all()).count(), 60_000);
    watch.check().unwrap();
}
