//! Output of the commands for ROS bags.

mod common;

use common::{Place, run_in, runs, shown_in, snapshot};

runs! {
    in "rosbag";
    rosbag_info:
        "info recorded+two-topics.bag",
        "info latched+two-publishers.bag",
        "info no-messages.bag",
        "info cut-in-payload.bag",
        "info damaged+index-names-the-lost.bag",
        "info two-sections.bag",
        "info definition-of-same-type.bag",
        "info v1.0.bag",
        "info v1.1+roslog.bag",
        "info compressed-bzip2.bag",
        "info stamps-going-back.bag -f json",
        "info latched+two-publishers.bag -f json";
    rosbag_topics_and_schema:
        "topics types-nested.bag",
        "topics second-type.bag -f json",
        "schema types-nested.bag",
        "schema types-arrays.bag",
        "schema types-nested.bag /t --raw",
        "schema definition-missing.bag",
        "schema types-scalars.bag -f csv";
    rosbag_cat:
        "cat recorded+two-topics.bag",
        "cat types-scalars.bag",
        "cat types-arrays.bag -f ndjson",
        "cat types-arrays.bag -f csv",
        "cat types-nested.bag -f csv",
        "cat types-nested.bag -f csv --fields header.stamp.sec",
        "cat types-nested.bag -f ndjson --fields header.stamp,many",
        "cat types-nested.bag --fields header.stamp.sec,many",
        "cat definition-of-same-type.bag",
        "cat definition-missing.bag -f ndjson",
        "cat payload-short.bag",
        "cat stamps-going-back.bag",
        "cat damaged-header-length.bag -f csv",
        "cat v1.0.bag";
    rosbag_messages:
        "messages console.bag",
        "messages console.bag --level warning -f ndjson",
        "messages recorded.bag";
    rosbag_check:
        "check recorded.bag",
        "check raw-padding.bag two-sections.bag text-mode-copy.bag",
        "check damaged-header-length.bag damaged-op.bag cut-in-header.bag",
        "check definition-hostile+circular.bag definition-hostile+deep.bag definition-broken.bag",
        "check bytes-lost-in-a-message.bag damaged-definition+indexed.bag",
        "check definition-repeated.bag definition-behind-its-messages.bag bag-header-late.bag",
        "check compressed-gzip+cut.bag compressed-gzip+checksum-missing.bag compressed-gzip+followed.bag",
        "check compressed-gzip+checksum-wrong.bag compressed-gzip+zeros-behind.bag compressed-bzip2+cut.bag",
        "check index-names-no-message.bag -f json";
    rosbag_errors:
        "info version-1.3.bag",
        "info version-line-cut.bag",
        "info version-line-broken.bag",
        "bag reindex ../ulog/one-topic.ulg -o none.bag",
        "params recorded.bag",
        "track recorded.bag -o none.kml",
        "cat recorded+two-topics.bag -f csv",
        "cat compressed-gzip+checksum-wrong.bag",
        "cat compressed-gzip+checksum-missing.bag --strict",
        "info compressed-gzip.bag --max-unpacked 0.2kB",
        "info compressed-gzip.bag --max-unpacked lots";
    rosbag_help:
        "bag --help",
        "bag reindex --help";
}

/// Exported files and invalid arguments. The tests of `rovelog-export` and the oracle check the
/// values.
#[test]
fn rosbag_export() {
    let folder = tempfile::tempdir().unwrap();
    let shown = |line: &str| {
        let place = folder.path().display().to_string();
        shown_in("rosbag", &line.replace("OUT", &place), b"").replace(&place, "OUT")
    };
    let runs = [
        "export recorded+two-topics.bag -o OUT/new.bag",
        "export recorded+two-topics.bag -o OUT/part.bag --topics /a -S +50ms --compression bz2 -f json",
        "export recorded+two-topics.bag -o OUT/new.bag",
        "export definition-header-of-roslib.bag -o OUT/modern.bag --modernize -q",
        "export types-nested.bag -o OUT/new.mcap --ros2",
        "export types-scalars.bag -o OUT/scalars.mcap --ros2",
        "export sum-differs.bag -o OUT/sum.bag",
        "export topic-names.bag -o OUT/names.bag",
        "export definition-missing.bag -o OUT/none.bag",
        "export definition-missing.bag -o OUT/bytes.mcap",
        "export recorded.bag -o OUT/none.mcap --ros2 --no-typed",
        "export recorded.bag -o OUT/none.bag --ros2",
        "export recorded.bag -o OUT/none.mcap --compression bz2",
        "export ../rld/v4.rld -o OUT/none.bag",
        "export ../rld/v4.rld -o OUT/none.mcap --ros2",
    ];
    snapshot!("rosbag_export", runs.map(shown).join("\n"));
    let piped = run_in("rosbag", "export recorded+two-topics.bag --to bag2", b"");
    assert!(piped.stdout == std::fs::read(folder.path().join("new.bag")).unwrap());
    let modern = std::fs::read(folder.path().join("modern.bag")).unwrap();
    assert!(modern.windows(20).any(|text| text == b"MSG: std_msgs/Header"));
    let mut names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "bytes.mcap",
            "modern.bag",
            "names.bag",
            "new.bag",
            "new.mcap",
            "part.bag",
            "scalars.mcap",
            "sum.bag"
        ]
    );
}

/// A bag from a pipe, both compressed and not.
#[test]
fn rosbag_from_a_pipe() {
    let read = |name: &str| std::fs::read(rovelog_testing::root().join("corpus/rosbag").join(name)).unwrap();
    let runs = [
        shown_in("rosbag", "info -", &read("recorded.bag")),
        shown_in("rosbag", "cat - -f ndjson", &read("compressed-gzip.bag")),
        shown_in("rosbag", "topics", &read("compressed-bzip2.bag")),
        shown_in("rosbag", "check", &read("damaged-zeros.bag")),
    ]
    .join("\n");
    snapshot!("rosbag_from_a_pipe", runs);
}

/// Bags written by the commands can be opened, are valid, and contain the expected records.
#[test]
fn rosbag_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (fixed, part, whole, again) =
        (path("fixed.bag"), path("part.bag"), path("whole.bag"), path("again.bag"));
    let lines = [
        (format!("recover damaged+index-names-the-lost.bag -o {fixed}"), 3),
        (format!("check {fixed}"), 0),
        (format!("slice recorded+two-topics.bag -o {part} --topics /a"), 0),
        (format!("check {part}"), 0),
        (format!("bag reindex no-bag-header.bag -o {whole}"), 0),
        (format!("check {whole}"), 0),
        (format!("merge {part} {whole} -o {again}"), 0),
        (format!("check {again}"), 0),
        (format!("recover compressed-gzip+checksum-missing.bag -o {}", path("unchecked.bag")), 3),
        (format!("recover compressed-gzip+followed.bag -o {}", path("followed.bag")), 3),
        (format!("slice compressed-gzip+cut-between-records.bag -o {}", path("cut.bag")), 3),
        (format!("export compressed-gzip+cut-between-records.bag -o {}", path("cut.mcap")), 3),
        (format!("recover compressed-gzip+checksum-wrong.bag -o {}", path("wrong.bag")), 1),
        (format!("split recorded+two-topics.bag --by-topic -o {}", path("parts")), 0),
    ];
    for (line, code) in lines {
        let shown = shown_in("rosbag", &line, b"");
        assert!(shown.ends_with(&format!("[exit {code}]\n")), "{shown}");
    }
    let shown = shown_in("rosbag", &format!("info {again} --get records"), b"");
    assert!(shown.contains("\n6\n"), "{shown}");
}

#[test]
fn a_pattern_for_last_records_without_a_match_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("part.bag").display().to_string();
    for command in [
        format!("slice recorded+two-topics.bag -S +0.05s -o {out}"),
        "cat recorded+two-topics.bag -S +0.05s".into(),
    ] {
        let shown = shown_in("rosbag", &format!("{command} -l nosuch"), b"");
        assert!(shown.contains("no topic has a name that matches nosuch as a whole"), "{shown}");
        assert!(shown.ends_with("[exit 2]\n"), "{shown}");
        let shown = shown_in("rosbag", &format!("{command} -l a"), b"");
        assert!(shown.contains("to match a part of a name, use -l '/a'"), "{shown}");
    }
    assert!(!folder.path().join("part.bag").exists());
}

#[test]
fn latched_messages_are_kept_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("part.bag").display().to_string();
    let shown = shown_in("rosbag", &format!("slice latched+two-publishers.bag -S +0.3s -o {out}"), b"");
    assert!(shown.contains("the output also has 2 latched messages from before the start"), "{shown}");
    let shown = shown_in("rosbag", &format!("info {out} --get records"), b"");
    assert!(shown.contains("\n3\n"), "{shown}");
}

/// Readers of V2.0 and MCAP refuse definitions with lines that end in CR LF. Keys of a JSON object
/// must be unique.
#[test]
fn unusual_definitions_are_written_in_a_form_that_other_readers_accept() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["mcap", "bag"] {
        let out = folder.path().join(format!("out.{kind}"));
        let shown = shown_in("rosbag", &format!("export definition-crlf.bag -o {}", out.display()), b"");
        assert!(shown.ends_with("[exit 0]\n"), "{shown}");
        let written = std::fs::read(&out).unwrap();
        let text = b"Inner a\nint8 x\n";
        assert!(kind == "mcap" || written.windows(text.len()).any(|bytes| bytes == text));
        // The magic bytes of MCAP contain CR LF too.
        assert!(!written[8..written.len() - 8].windows(2).any(|bytes| bytes == b"\r\n"));
    }
    let shown = shown_in("rosbag", "cat definition-field-twice.bag -f ndjson", b"");
    assert!(shown.contains(r#""data":{"x":0.0,"x#2":0}"#), "{shown}");
}

/// `cat` and `export` write the same CSV, with ROS times in a single column. The only difference
/// are raw bytes, for which `export` has no column.
#[test]
fn csv_of_cat_and_export_is_the_same() {
    for (name, topic) in [
        ("types-nested.bag", "/t"),
        ("types-constants.bag", "/c"),
        ("definition-header-of-roslib.bag", "/a"),
        ("console.bag", "/rosout"),
        ("recorded+two-topics.bag", "/b"),
    ] {
        let cat = run_in("rosbag", &format!("cat {name} --topics {topic} -f csv"), b"");
        let export = run_in("rosbag", &format!("export {name} --topics {topic} --to csv"), b"");
        let text = |run: &std::process::Output| String::from_utf8(run.stdout.clone()).unwrap();
        assert!(text(&cat).lines().count() > 1, "{name}: {}", String::from_utf8_lossy(&cat.stderr));
        assert_eq!(text(&cat), text(&export), "{name}");
    }
}

#[test]
fn messages_that_cannot_be_decoded_extend_the_time_range() {
    let count = |line: &str, place: &str| {
        let text = String::from_utf8(run_in("rosbag", line, b"").stdout).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        document.pointer(place).unwrap().as_u64().unwrap()
    };
    for bag in ["payload-short.bag", "v2.0+payload-short.bag"] {
        let topics = count(&format!("topics -q -f json {bag}"), "/topics/0/count");
        let health = count(&format!("stats --timing -q -f json {bag}"), "/health/topics/0/count");
        assert_eq!(health, topics, "{bag}");
    }
}

/// Commands that read columns or values report the number of messages that cannot be decoded, and
/// continue.
#[test]
fn messages_that_cannot_be_decoded_are_reported() {
    for (bag, topic, words) in [
        ("payload-short.bag", "/a", "/a: 1 record cannot be decoded"),
        ("v2.0+payload-short.bag", "/chatter", "/chatter: 2 records cannot be decoded"),
    ] {
        for line in [
            format!("export {bag} --to csv"),
            format!("export {bag} --to ndjson"),
            format!("export {bag} --to csv --on {topic}"),
            format!("stats {bag}"),
            format!("diff {bag} {bag} --stats"),
        ] {
            let output = run_in("rosbag", &line, b"");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{line}: {said}");
            assert!(said.contains(words), "{line}: {said}");
        }
    }
}

/// A report mentions messages that cannot be decoded, for the topics that it shows. The bag was
/// changed in its definition, not in its messages.
#[test]
fn a_report_mentions_messages_that_cannot_be_decoded() {
    let place = Place::new("rosbag", &["types-nested.bag"]);
    let mut bag = place.read("types-nested.bag");
    let at = bag.windows(10).position(|bytes| bytes == b"uint32 seq").expect("a field");
    bag[at..at + 10].copy_from_slice(b"int64  seq");
    std::fs::write(place.path("changed.bag"), bag).expect("a writable folder");
    let report = |line: &str| {
        let output = place.run(line);
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    assert_eq!(report("report types-nested.bag -o a.html -q"), (Some(0), String::new()));
    let (code, said) = report("report changed.bag -o b.html");
    assert!(code == Some(3) && said.contains("/t: 3 records cannot be decoded"), "{code:?} {said}");
}
