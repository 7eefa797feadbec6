//! A mapped log that is shortened while it is open is an error, and the program goes on.
#![cfg(all(unix, feature = "mmap", feature = "ulog"))]

use std::fs::{self, OpenOptions};

use rovelog::{ErrorKind, ReadOptions};

/// Returns a log with one topic and more than 1 MiB of rows, so that it is mapped.
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
        // Under another name the new length is not seen: only the fault shows it.
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
        assert!(error.to_string().contains("shortened by another program"), "{error}");
    }
}

#[test]
fn what_grows_or_is_replaced_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.ulg"), folder.path().join("b.ulg"));
    fs::write(&path, large_log()).unwrap();
    let (log, watch) = rovelog::open_watched(&path, Some("ulog"), &ReadOptions::default()).unwrap();
    fs::write(&other, b"short").unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(log.records(&rovelog::Select::all()).count(), 60_000);
    watch.check().unwrap();
}
