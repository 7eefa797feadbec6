//! Tests of detection with real files. These are in the folder `ROVELOG_REAL`, or in
//! `../shared/real` relative to the workspace.

use std::path::Path;

use rovelog::{Detection, detect};

fn head(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(64);
    bytes
}

/// Returns the format id of a file, or the name of the detected kind if the file is not a log.
fn name(path: &Path) -> &'static str {
    match detect(&head(path)) {
        Detection::Format(format) => format.id,
        Detection::NotBuiltIn(sign) => sign.format.unwrap(),
        Detection::Foreign(sign) => sign.what,
        Detection::Cut(..) => "cut",
        Detection::Empty => "empty",
        _ => "unknown",
    }
}

#[test]
fn every_real_file_has_the_format_of_its_folder() {
    let Some(real) = rovelog_testing::real("") else { return };
    let mut seen = 0;
    for (folder, extension, id) in [
        ("ulog", "ulg", "ulog"),
        ("ulog/quirks", "ulg", "ulog"),
        ("rld", "rld", "rld"),
        ("rosbag12", "bag", "rosbag"),
        ("rosbag20", "bag", "rosbag"),
        ("vel", "vel", "vel"),
    ] {
        for entry in std::fs::read_dir(real.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|found| found != extension) {
                continue;
            }
            seen += 1;
            let expected = match path.file_name().unwrap().to_str().unwrap() {
                "bad_empty.vel" => "empty",
                // Bags before V1.0 start with their first topic instead of a magic number.
                "bad_magic.vel" | "v0_one_topic.bag" => "unknown",
                name if name.contains("encrypted") && name.contains("key") => {
                    "the key file of an encrypted ULog"
                }
                name if name.contains("encrypted") && id == "ulog" => "an encrypted ULog",
                _ => id,
            };
            assert_eq!(name(&path), expected, "{}", path.display());
        }
    }
    assert!(seen > 100, "{seen} files");
}

#[test]
fn other_files_next_to_real_logs_are_detected() {
    let Some(real) = rovelog_testing::real("") else { return };
    for (path, what) in [
        ("rosbag12/whole_file.bag.gz", "gzip"),
        ("rosbag12/whole_file.bag.bz2", "bzip2"),
        ("rosbag12/manifest.json", "text"),
        ("rld/v4_full_dt.csv", "text"),
        ("vel/expected/hdl64_first12.pcap", "a packet capture (pcap)"),
        ("vel/expected/hdl64_db.xml", "XML"),
    ] {
        assert_eq!(name(&real.join(path)), what, "{path}");
    }
}
