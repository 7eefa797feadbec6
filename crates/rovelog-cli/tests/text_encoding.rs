//! Texts that are not UTF-8 (docs/reference/columns.md). All outputs escape the same bytes, and one
//! warning for each field states the number of such texts.

mod common;

use common::Place;

/// Output of a command.
struct Printed {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn run(place: &Place, line: &str) -> Printed {
    let output = place.run(line);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Printed { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

/// Checks that a command prints a single warning with this number of texts, and loses nothing.
fn warns_once(printed: &Printed, texts: &str, line: &str) {
    let warnings: Vec<_> = printed.stderr.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(warnings.len(), 1, "{line}: {}", printed.stderr);
    assert!(
        warnings[0].contains(texts) && warnings[0].contains("--text-encoding"),
        "{line}: {}",
        warnings[0]
    );
    assert_eq!(printed.code, Some(0), "{line}: {}", printed.stderr);
}

const ESCAPED: &str = r"\xcf\xf0\xe8\xe2\xe5\xf2";
const PATH: &str = r"C:\\\xf1\xf2\xee\xef";
const OF_BAG: &str = "2 texts of std_msgs/String.data are not UTF-8";

#[test]
fn every_output_of_a_bag_escapes_the_same_bytes() {
    let place = Place::new("rosbag", &["texts-cp1251.bag"]);
    for (line, file) in [
        ("cat texts-cp1251.bag", None),
        ("cat texts-cp1251.bag -f csv", None),
        ("export texts-cp1251.bag --to csv -o csv", Some("csv/texts-cp1251_a.csv")),
    ] {
        let printed = run(&place, line);
        warns_once(&printed, OF_BAG, line);
        let text =
            file.map_or(printed.stdout, |file| String::from_utf8(place.read(file)).expect("CSV is UTF-8"));
        assert!(text.contains(ESCAPED) && text.contains(PATH) && text.contains(r"C:\xcf"), "{line}: {text}");
    }
    for (line, file) in [
        ("cat texts-cp1251.bag -f ndjson", None),
        ("cat texts-cp1251.bag -f json", None),
        ("export texts-cp1251.bag --to ndjson -o texts.ndjson", Some("texts.ndjson")),
    ] {
        let printed = run(&place, line);
        warns_once(&printed, OF_BAG, line);
        let text = file.map_or(printed.stdout, |file| String::from_utf8(place.read(file)).unwrap());
        let json = |text: &str| serde_json::to_string(text).unwrap();
        for text_of_bag in [ESCAPED, PATH, r"C:\xcf"] {
            assert!(text.contains(&json(text_of_bag)), "{line}: {text}");
        }
    }
    for (kind, file) in
        [("parquet", "parquet/texts-cp1251_a.parquet"), ("arrow", "arrow/texts-cp1251_a.arrow")]
    {
        let line = format!("export texts-cp1251.bag --to {kind} -o {kind}");
        warns_once(&run(&place, &line), OF_BAG, &line);
        assert!(!place.read(file).is_empty());
    }
    // These formats keep the bytes unchanged.
    for line in ["export texts-cp1251.bag --to mcap -o texts.mcap", "slice texts-cp1251.bag -o part.bag"] {
        let printed = run(&place, line);
        assert!(printed.code == Some(0) && !printed.stderr.contains("UTF-8"), "{line}: {}", printed.stderr);
    }
    assert!(place.read("part.bag").windows(6).any(|bytes| bytes == b"\xcf\xf0\xe8\xe2\xe5\xf2"));
}

#[test]
fn an_encoding_decodes_the_texts_instead() {
    let place = Place::new("rosbag", &["texts-cp1251.bag"]);
    for line in ["cat texts-cp1251.bag", "cat texts-cp1251.bag -f csv", "cat texts-cp1251.bag -f ndjson"] {
        let printed = run(&place, &format!("{line} --text-encoding cp1251"));
        assert!(printed.stdout.contains("Привет") && printed.stdout.contains("стоп"), "{}", printed.stdout);
        assert_eq!((printed.stderr.as_str(), printed.code), ("", Some(0)), "{line}");
    }
    let refused = run(&place, "cat texts-cp1251.bag --text-encoding utf-16");
    assert!(
        refused.code == Some(2) && refused.stderr.contains("the encoding is not supported"),
        "{}",
        refused.stderr
    );
}

#[test]
fn texts_of_ulogs_are_escaped_too() {
    let place = Place::new("ulog", &["char-arrays.ulg", "texts-latin-1.ulg"]);
    for line in [
        "cat char-arrays.ulg",
        "cat char-arrays.ulg -f csv",
        "cat char-arrays.ulg -f ndjson",
        "export char-arrays.ulg --to csv -o csv",
        "export char-arrays.ulg --to mcap -o texts.mcap",
    ] {
        let printed = run(&place, line);
        warns_once(&printed, "3 texts of t.s are not UTF-8", line);
    }
    let latin1 = run(&place, "cat char-arrays.ulg --text-encoding latin-1");
    assert!(latin1.stdout.contains("café olé") && latin1.stderr.is_empty(), "{}", latin1.stdout);
    for line in ["messages texts-latin-1.ulg", "messages texts-latin-1.ulg -f ndjson"] {
        let printed = run(&place, line);
        warns_once(&printed, "2 texts of logged messages are not UTF-8", line);
        assert!(printed.stdout.contains("xe9"), "{}", printed.stdout);
    }
}
