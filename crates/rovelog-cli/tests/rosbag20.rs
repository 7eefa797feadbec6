//! Output of the commands for ROS bags V2.0.

mod common;

use common::{runs, shown_in};

runs! {
    in "rosbag";
    rosbag20_info:
        "info v2.0+mixed-compression.bag",
        "info v2.0+unindexed.bag",
        "info v2.0+open-chunk.bag",
        "info v2.0+lz4-damaged.bag",
        "info v2.0+encrypted.bag",
        "topics v2.0+two-publishers.bag -f json",
        "du v2.0+lz4.bag";
    rosbag20_cat:
        "cat v2.0+chunks-overlap.bag",
        "cat v2.0+bz2.bag -f ndjson -S +100ms -E +300ms",
        "cat v2.0+payload-short.bag",
        "diff v2.0+lz4.bag v2.0+bz2.bag";
    rosbag20_check:
        "check v2.0.bag v2.0+lz4.bag v2.0+bz2.bag",
        "check v2.0+bz2-damaged.bag v2.0+cut-in-lz4.bag v2.0+compression-unknown.bag",
        "check v2.0+counts-wrong.bag v2.0+index-offsets-wrong.bag v2.0+two-bags.bag -f json";
    rosbag20_errors:
        "info version-2.1.bag",
        "export v2.0.bag --to bag12",
        "merge recorded.bag v2.0.bag -o none.bag",
        "slice recorded.bag --compression lz4 -o none.bag",
        "cat definition-missing.bag --msgs nowhere";
}

/// Every command that writes a bag keeps the bag version and the messages, for each compression.
#[test]
fn written_bags_are_v2_0_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let get = |file: &str, what: &str| {
        let shown = shown_in("rosbag", &format!("info {file} --get {what}"), b"");
        shown.lines().nth(1).unwrap_or_default().to_owned()
    };
    for compression in ["none", "lz4", "bz2"] {
        let with = format!("--compression {compression}");
        let out = |what: &str| path(&format!("{what}-{compression}.bag"));
        let parts = path(&format!("parts-{compression}"));
        let lines = [
            (format!("recover v2.0+cut-in-a-chunk.bag -o {} {with}", out("recovered")), 3),
            (format!("recover v2.0+several-chunks.bag -o {} {with}", out("intact")), 0),
            (format!("bag reindex v2.0+unindexed.bag -o {} {with}", out("indexed")), 0),
            (format!("slice v2.0+several-chunks.bag -S +200ms -o {} {with}", out("sliced")), 0),
            (format!("merge {} {} -o {} {with}", out("indexed"), out("sliced"), out("merged")), 0),
            (format!("split v2.0+several-chunks.bag --every 200ms -o {parts} {with}"), 0),
        ];
        for (line, code) in lines {
            let shown = shown_in("rosbag", &line, b"");
            assert!(shown.ends_with(&format!("[exit {code}]\n")), "{shown}");
        }
        let files = std::fs::read_dir(&parts).unwrap().map(|part| part.unwrap().path().display().to_string());
        let files: Vec<_> = files.collect();
        assert!(files.len() > 1, "{files:?}");
        let written = ["recovered", "intact", "indexed", "sliced", "merged"].map(out);
        for file in written.iter().chain(&files) {
            let shown = shown_in("rosbag", &format!("check {file}"), b"");
            assert!(shown.ends_with("[exit 0]\n"), "{shown}");
            let info = shown_in("rosbag", &format!("info {file}"), b"");
            let name = if compression == "none" { "uncompressed" } else { compression };
            assert!(info.contains("ROS bag 2.0") && info.contains(name), "{info}");
        }
        let count = |file: &str| get(file, "records").parse::<u64>().unwrap();
        assert_eq!(count(&out("merged")), count(&out("indexed")) + count(&out("sliced")));
        let split: u64 = files.iter().map(|file| count(file)).sum();
        assert_eq!(split, count("v2.0+several-chunks.bag"));
    }
}

/// Message definitions are read from a single file, and from a folder of packages.
#[test]
fn definitions_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("std_msgs/msg");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("String.msg"), "string text_of_mine\n").unwrap();
    let bag = "definition-missing.bag";
    let without = shown_in("rosbag", &format!("cat {bag}"), b"");
    assert!(without.contains("raw=<2 bytes>"), "{without}");
    let ty = shown_in("rosbag", &format!("info {bag}"), b"");
    let ty = ty.split_whitespace().skip_while(|word| *word != "/a").nth(1).unwrap().to_owned();
    let (package, name) = ty.split_once('/').unwrap();
    let place = folder.path().join(package).join("msg");
    std::fs::create_dir_all(&place).unwrap();
    let file = place.join(format!("{name}.msg"));
    std::fs::write(&file, "uint8 first\nuint8 second\n").unwrap();
    for path in [folder.path(), &file] {
        let with = shown_in("rosbag", &format!("cat {bag} --msgs {}", path.display()), b"");
        let decoded = with.contains("first=") && with.contains("second=");
        // A file outside of a package has no package name.
        assert!(decoded && with.ends_with("[exit 0]\n"), "{with}");
    }
}
