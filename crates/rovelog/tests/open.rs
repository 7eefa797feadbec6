//! Tests of opening logs from a path, from bytes and from a stream, and of the errors for files
//! that are not logs.
#![cfg(feature = "ulog")]

use rovelog::{AnyLog, Bytes, Error, ErrorKind, ReadOptions, Select};
use rovelog_testing::Dribble;

/// Returns a ULog file with one topic that has `rows` records.
fn ulog(rows: u64) -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01".to_vec();
    log.extend(1_000_000_u64.to_le_bytes());
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).unwrap().to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    message(b'B', &[0; 40]);
    message(b'F', b"beat:uint64_t timestamp;uint32_t n;");
    message(b'A', b"\0\0\0beat");
    for row in 0..rows {
        let mut data = vec![0, 0];
        data.extend((1_000_000 + row * 1000).to_le_bytes());
        data.extend(u32::try_from(row).unwrap().to_le_bytes());
        message(b'D', &data);
    }
    log
}

fn open_error(bytes: &[u8]) -> Error {
    rovelog::from_bytes(Bytes::copy_from_slice(bytes), &ReadOptions::default()).unwrap_err()
}

fn error_text(error: &Error) -> String {
    format!("{error}\n  next: {}", error.next.as_deref().unwrap_or("-"))
}

#[test]
fn mapped_and_read_logs_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    // The two sizes are below and above the minimum size of memory-mapped files.
    for rows in [3, 80_000] {
        let bytes = ulog(rows);
        assert_eq!(bytes.len() > 1 << 20, rows > 3);
        let path = folder.path().join(format!("{rows}.ulg"));
        std::fs::write(&path, &bytes).unwrap();
        let options = ReadOptions::default();
        let given = rovelog::from_bytes(bytes.into(), &options).unwrap();
        for log in [rovelog::open(&path).unwrap(), rovelog::open_as("ulog", &path, &options).unwrap()] {
            assert!(matches!(log, AnyLog::Ulog(_)));
            assert_eq!(log.info().records, rows);
            let rows = |log: &AnyLog| -> Vec<_> {
                log.records(&Select::all())
                    .map(|r| r.map(|r| (r.offset, r.payload.to_vec())).unwrap())
                    .collect()
            };
            assert_eq!(rows(&log), rows(&given));
        }
    }
}

#[test]
fn slow_pipes_return_every_record() {
    // A slow pipe may return one byte at a time.
    let slow = Dribble::new(ulog(5).leak(), [1]);
    let mut stream = rovelog::open_stream(Box::new(slow), &ReadOptions::default()).unwrap();
    let mut seen = 0;
    while let Some(record) = stream.next_record().unwrap() {
        assert_eq!(record.seq, seen);
        seen += 1;
    }
    assert_eq!(seen, 5);
    assert_eq!(stream.info().records, 5);
}

#[test]
fn errors_for_other_kinds_of_files_state_the_next_step() {
    insta::assert_snapshot!(error_text(&open_error(b"PK\x03\x04rest of it")), @"
    the file is not a supported log, but a zip archive (first bytes 50 4b 03 04)
      next: unpack the archive first
    ");
    insta::assert_snapshot!(error_text(&open_error(b"")), @"
    the file is empty
      next: copy the log again from where it was recorded
    ");
    insta::assert_snapshot!(error_text(&open_error(b"ULo")), @"
    the file ends after 3 bytes, inside the signature of ULog, so it contains no data
      next: copy the log again from where it was recorded
    ");
    insta::assert_snapshot!(error_text(&open_error(b"%RLD\x04\x00")), @"
    the file is truncated at byte 6, inside its header of 56 bytes
      next: copy the log again from the logger
    ");
    insta::assert_snapshot!(error_text(&open_error(b"\x01\x02\x03\xff")), @"
    the log format is unknown (first bytes 01 02 03 ff)
      next: use a log in one of the formats ULog, RLD, VEL, ROS bag; if only its first bytes are damaged, use --input-format
    ");
    assert_eq!(open_error(b"PK\x03\x04").kind, ErrorKind::NotThisFormat);
    assert_eq!(open_error(b"ULo").kind, ErrorKind::Truncated);
    assert_eq!(open_error(b"%RLD\x04\x00").kind, ErrorKind::Truncated);
    let empty = rovelog::open_stream(Box::new(std::io::empty()), &ReadOptions::default());
    assert_eq!(empty.err().unwrap().kind, ErrorKind::Truncated);
}

#[test]
fn errors_for_missing_files_state_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &std::path::Path| error_text(&rovelog::open(path).unwrap_err());
    insta::assert_snapshot!(error(folder.path()), @"
    the path is a directory, not a log
      next: name a log file in the directory
    ");
    insta::assert_snapshot!(error(&folder.path().join("none.ulg")), @"
    no such file
      next: check the name and the current folder
    ");
    insta::assert_snapshot!(error(&folder.path().join("none/flight.ulg")), @"
    no such file
      next: check the path, because its folder does not exist
    ");
}

#[test]
fn formats_by_id_must_be_built_in() {
    let options = ReadOptions::default();
    let error = rovelog::from_bytes_as("sonar", ulog(1).into(), &options).unwrap_err();
    insta::assert_snapshot!(error_text(&error), @r#"
    the format "sonar" is unknown or not in this build
      next: use one of the formats ulog, rld, vel, rosbag
    "#);
    assert_eq!(error.kind, ErrorKind::InvalidArgument);
}

#[cfg(target_os = "linux")]
#[test]
fn an_endless_device_is_rejected_by_its_first_bytes() {
    assert_eq!(rovelog::open("/dev/zero").unwrap_err().kind, ErrorKind::NotThisFormat);
}

/// A device may never end. Without a check, it would be read until memory runs out if the format is
/// given.
#[cfg(unix)]
#[test]
fn a_device_is_rejected() {
    for format in ["ulog", "rld", "rosbag", "vel"] {
        let error = rovelog::open_as(format, "/dev/zero", &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains("is a device"), "{format}: {error}");
        assert!(error.next.is_some());
    }
    // A device without bytes is treated as an empty file.
    let error = rovelog::open("/dev/null").unwrap_err();
    assert!(!error.to_string().contains("device"), "{error}");
}
