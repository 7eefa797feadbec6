//! Detection of the real files in `ROVELOG_REAL`, or in the folder `../shared/real` next to the
//! workspace.

use std::path::Path;

use rovelog::{Detection, detect};

fn head(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(64);
    bytes
}

/// Returns the name of the detected kind of a file: a format id, or the name of another kind.
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
fn every_real_file_is_detected_as_its_folder_says() {
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
                // Bags before V1.0 have no magic number, because they start with their first topic.
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
fn files_next_to_real_logs_are_named() {
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
