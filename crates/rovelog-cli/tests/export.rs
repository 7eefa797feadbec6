//! Messages, output files and invalid arguments of `rovelog export`.

mod common;

use std::fs;

use common::{Place, corpus, run_with, snapshot, stdout};

const RICH: &str = "one-topic+multi-id+sync+dropout+texts+appended.ulg";

#[test]
fn export_tables() {
    let place = Place::new("ulog", &[RICH, "nested-types.ulg", "utc-gps-double.ulg", "cut-in-payload.ulg"]);
    fs::rename(place.path(RICH), place.path("rich.ulg")).unwrap();
    let runs = [
        "export rich.ulg -o csv --to csv",
        "export rich.ulg -o parquet/ --to parquet",
        "convert rich.ulg -o arrow --to arrow -q -f json",
        "export nested-types.ulg --to csv --topics tree",
        "export nested-types.ulg --to csv --topics tree --names dot --delimiter ;",
        "export nested-types.ulg --to csv --topics tree --dialect pyulog",
        "export utc-gps-double.ulg --to csv --topics sensor_gps/1 -S +0.2s --fields lat*,fix_type",
        "export rich.ulg -o t.parquet --topics t/1",
        "export cut-in-payload.ulg -o cut.csv",
        "export cut-in-payload.ulg -o cut.json --to csv -f json",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("export_tables", runs);
    assert_eq!(place.names("csv").len(), place.names("parquet").len());
    assert!(place.read("t.parquet").starts_with(b"PAR1"));
    assert!(place.names(".").iter().all(|name| !name.ends_with(".partial")));
}

/// `ulog2csv` removes only the extension `.ulg` from file names.
#[test]
fn the_pyulog_dialect_keeps_other_extensions_in_file_names() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    fs::copy(place.path("one-topic.ulg"), place.path("b.ulog")).unwrap();
    fs::copy(place.path("one-topic.ulg"), place.path("C.ULG")).unwrap();
    for log in ["one-topic.ulg", "b.ulog", "C.ULG"] {
        place.shown(&format!("export {log} -o csv --to csv --dialect pyulog"));
        place.shown(&format!("export {log} -o plain --to csv"));
    }
    assert_eq!(place.names("csv"), ["C_t_0.csv", "b.ulog_t_0.csv", "one-topic_t_0.csv"]);
    assert_eq!(place.names("plain"), ["C_t_0.csv", "b_t_0.csv", "one-topic_t_0.csv"]);
}

#[test]
fn export_errors() {
    let place = Place::new("ulog", &[RICH, "one-topic.ulg", "header-only.ulg"]);
    fs::rename(place.path(RICH), place.path("rich.ulg")).unwrap();
    fs::write(place.path("there.csv"), "old").unwrap();
    let runs = [
        "export rich.ulg",
        "export rich.ulg -o rich.xlsx",
        "export rich.ulg -o rich.csv",
        "export rich.ulg --to xlsx",
        "export rich.ulg -o there.csv --topics t/1",
        "export rich.ulg -o rich.ulg --to csv --topics t/1 --force",
        "export rich.ulg -o there.csv/ --to csv",
        "export rich.ulg -o no.csv --topics tt",
        "export rich.ulg -o no.csv --topics t/1 --fields nothing",
        "export rich.ulg -o no.csv --topics t/1 -S 5h",
        "export rich.ulg -o no.parquet --topics t/1 --dialect pyulog",
        "export rich.ulg -o no.ndjson --flatten",
        "export rich.ulg -o no.csv --topics t/1 --keep-ned",
        "export rich.ulg -o no.csv --topics t/1 -f csv",
        "export rich.ulg -o no.parquet --topics t/1 -f parquet",
        "export rich.ulg -o plot -f svg",
        "export rich.ulg -o no.csv --topics t/1 --delimiter ab",
        "export rich.ulg -o no.csv --topics t/1 --delimiter :",
        "export header-only.ulg -o empty.mcap",
        "export header-only.ulg -o no.csv",
        "export none.ulg -o no.csv",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("export_errors", runs);
    assert_eq!(place.read("there.csv"), b"old");
    assert_eq!(place.names("."), ["empty.mcap", "header-only.ulg", "one-topic.ulg", "rich.ulg", "there.csv"]);
}

/// The NDJSON export equals the output of `cat` for every log of the corpus.
#[test]
fn exported_ndjson_equals_the_output_of_cat() {
    for entry in fs::read_dir(corpus()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let cat = common::run(&format!("cat -f ndjson {name}"));
        if cat.status.code() == Some(1) || cat.stdout.is_empty() {
            continue;
        }
        let export = common::run(&format!("export --to ndjson {name}"));
        assert_eq!(export.status.code(), cat.status.code(), "{name}");
        assert!(export.stdout == cat.stdout, "{name}");
    }
}

#[test]
fn logs_are_read_from_a_pipe_and_tables_are_written_to_a_pipe() {
    let log = fs::read(corpus().join("one-topic.ulg")).unwrap();
    let piped = run_with("export - --to csv", &log);
    assert_eq!(piped.status.code(), Some(0));
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), stdout("export one-topic.ulg --to csv"));
    for (kind, magic) in [("parquet", &b"PAR1"[..]), ("arrow", b"ARROW1"), ("mcap", b"\x89MCAP0\r\n")] {
        let piped = run_with(&format!("export - --to {kind}"), &log);
        assert_eq!(piped.status.code(), Some(0), "{kind}");
        assert!(piped.stdout.starts_with(magic), "{kind}");
    }
}

#[test]
fn existing_files_are_kept_without_force() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    assert_eq!(place.run("export one-topic.ulg -o out --to csv").status.code(), Some(0));
    let names = place.names("out");
    let before = place.read(&format!("out/{}", names[0]));
    assert_eq!(place.run("export one-topic.ulg -o out --to csv").status.code(), Some(2));
    assert_eq!(place.run("export one-topic.ulg -o out --to csv --force -q").status.code(), Some(0));
    assert_eq!(place.read(&format!("out/{}", names[0])), before);
}
