//! Logs whose first bytes are damaged or missing must be detected and read. Files that contain only
//! zeros have an error of their own.

use rovelog::core::RecoverOptions;
use rovelog::{Bytes, ErrorKind, ReadOptions, from_bytes, from_bytes_as, open};
use rovelog_testing::corpus;

/// Returns the bytes of a log in the corpus.
fn log(format: &str, extension: &str, name: &str) -> Vec<u8> {
    corpus(format, extension, 1).into_iter().find(|log| log.name == name).unwrap().bytes.to_vec()
}

/// Checks that the format is detected, that all records are read, and that recovery writes a log
/// with a valid start.
fn check(bytes: Vec<u8>, records: u64, what: &str) {
    let bytes: Bytes = bytes.into();
    let options = ReadOptions::default();
    let log = from_bytes(bytes.clone(), &options).unwrap_or_else(|error| panic!("{what}: {error}"));
    let format = log.format().id;
    assert_eq!((log.info().records, log.diagnostics().total()), (records, log.info().problems), "{what}");
    assert!(log.info().problems > 0, "{what}");
    let mut out = Vec::new();
    let recovery = log.recover(&mut out, &RecoverOptions::default()).unwrap();
    assert!(recovery.records == records && !recovery.unchanged, "{what}: {recovery:?}");
    assert_eq!(recovery.kept_bytes + recovery.lost_bytes(), bytes.len() as u64, "{what}");
    assert!(log.format().signatures.iter().any(|signature| out.starts_with(signature.0)), "{what}");
    let recovered = from_bytes_as(format, out.into(), &options).unwrap();
    assert_eq!(recovered.info().records, records, "{what}");
    assert_eq!(
        recovered.diagnostics().list().iter().filter(|note| note.range.start == 0).count(),
        0,
        "{what}"
    );
}

#[cfg(feature = "ulog")]
#[test]
fn a_ulog_with_a_damaged_header_is_read() {
    let intact = log("ulog", "ulg", "appended-three-sections");
    let records = from_bytes(intact.clone().into(), &ReadOptions::default()).unwrap().info().records;
    for len in 1..=16 {
        check([&vec![0; len][..], &intact[len..]].concat(), records, &format!("{len} zero bytes"));
        check([&vec![0xA5; len][..], &intact[len..]].concat(), records, &format!("{len} wrong bytes"));
        check(intact[len..].to_vec(), records, &format!("{len} bytes missing"));
    }
    for text in [b"INFO  [blackbox] starting\n".to_vec(), vec![0; 4], vec![0; 60_000]] {
        check([&text[..], &intact].concat(), records, &format!("{} bytes in front", text.len()));
    }
    // If the log starts far from the start of the file, it is only found if the format is given.
    let far: Bytes = [&vec![0xA5; 100_000][..], &intact].concat().into();
    let options = ReadOptions::default();
    assert_eq!(from_bytes(far.clone(), &options).unwrap_err().kind, ErrorKind::NotThisFormat);
    assert_eq!(from_bytes_as("ulog", far, &options).unwrap().info().records, records);
}

#[cfg(feature = "rosbag")]
#[test]
fn a_bag_with_a_damaged_version_line_is_read() {
    let intact = log("rosbag", "bag", "v2.0+several-chunks");
    let records = from_bytes(intact.clone().into(), &ReadOptions::default()).unwrap().info().records;
    for len in 1..=13 {
        check([&vec![0xA5; len][..], &intact[len..]].concat(), records, &format!("{len} wrong bytes"));
        check(intact[len..].to_vec(), records, &format!("{len} bytes missing"));
    }
    check([&b"starting rosbag record\n"[..], &intact].concat(), records, "text in front");
}

#[cfg(feature = "rld")]
#[test]
fn an_rld_log_with_a_damaged_magic_number_is_read() {
    for name in ["v4", "v3", "v2", "v1"] {
        let intact = log("rld", "rld", name);
        let records = from_bytes(intact.clone().into(), &ReadOptions::default()).unwrap().info().records;
        for len in 1..=4 {
            check(
                [&vec![0xA5; len][..], &intact[len..]].concat(),
                records,
                &format!("{name}: {len} wrong bytes"),
            );
        }
    }
}

#[test]
fn a_file_of_zeros_has_its_own_error() {
    let message = |bytes: Vec<u8>| from_bytes(bytes.into(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(message(vec![0; 200_000]).contains("the file contains only zero bytes"));
    let mut other = vec![0; 200_000];
    other[150_000] = 1;
    assert!(message(other).contains("the first 65536 bytes are zero"));
    let folder = tempfile::tempdir().unwrap();
    for (name, len, what) in [("a", 3_000_000, true), ("b", 10, true), ("c", 3_000_000, false)] {
        let path = folder.path().join(name);
        let mut bytes = vec![0; len];
        if !what {
            bytes[len - 1] = 1;
        }
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(&path).unwrap_err().to_string().contains("only zero bytes"), what, "{name}");
    }
}
