//! Messages, output files and invalid arguments of `rovelog plot` and `rovelog report`.

mod common;

use std::fs;

use common::{Place, corpus, run_with, runs};

runs! {
    in "ulog";
    plot:
        "plot utc-gps-int32.ulg vehicle_gps_position.lat --height 6 --width 60",
        "plot timestamps-zero+equal+falling.ulg --all --height 4 --width 50",
        "plot cut-in-payload.ulg --all --height 4 --width 50",
        "plot one-topic.ulg t.x --to svg --width 300 --height 150 -S +10ms -E +40ms";
    plot_errors:
        "plot one-topic.ulg",
        "plot one-topic.ulg u.x",
        "plot one-topic.ulg t.nothing",
        "plot one-topic.ulg t -o plot.jpg",
        "plot one-topic.ulg t --to jpg",
        "plot one-topic.ulg t -f json",
        "plot one-topic.ulg t -S 5h",
        "plot header-only.ulg --all",
        "report one-topic.ulg -o report.pdf",
        "report one-topic.ulg -f json",
        "report none.ulg -o report.html";
}

#[test]
fn pictures_are_written_completely_and_never_over_the_log() {
    let place = Place::new("ulog", &["utc-gps-int32.ulg"]);
    fs::rename(place.path("utc-gps-int32.ulg"), place.path("flight.ulg")).unwrap();
    let run = |line: &str| {
        let output = place.run(line);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for (line, magic) in [
        ("plot flight.ulg --all -o plot.png", &b"\x89PNG"[..]),
        ("plot flight.ulg --all -o plot.svg", b"<svg "),
        ("plot flight.ulg --all -o plot.pdf", b"%PDF-"),
        ("plot flight.ulg --all -o dark.png --theme dark --dpi 192", b"\x89PNG"),
        ("plot flight.ulg --all -o plot.html", b"<!doctype html>"),
        ("report flight.ulg -o report.html", b"<!doctype html>"),
        ("report flight.ulg -o public.html --redact", b"<!doctype html>"),
    ] {
        let (code, said) = run(line);
        assert_eq!(code, 0, "{line}: {said}");
        assert!(said.starts_with("wrote "), "{line}: {said}");
        let name = line.split(' ').skip_while(|word| *word != "-o").nth(1).unwrap();
        let bytes = place.read(name);
        assert!(bytes.starts_with(magic), "{line}");
        let (code, said) = run(line);
        assert!(code == 2 && said.contains("already exists"), "{line}: {said}");
        let (code, said) = run(&format!("{line} --force -q"));
        assert!((code, said.as_str()) == (0, ""), "{line}: {said}");
        assert!(place.read(name) == bytes, "{line}: other bytes the second time");
    }
    let (code, said) = run("plot flight.ulg --all -o flight.ulg --to svg --force");
    assert!(code == 2 && said.contains("the output file is also the input file"), "{said}");
}

/// The page of a plot contains the plot, but no other positions or parameters of the log.
#[test]
fn the_page_of_a_plot_contains_nothing_else_from_the_log() {
    let Some(folder) = rovelog_testing::real("ulog") else { return };
    let place = Place::new("ulog", &[]);
    let log = folder.join("sample_log_small.ulg");
    let run = |what: &str| {
        let output = place.run(&format!("{what} -q"));
        assert_eq!(output.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&format!("plot {} battery_status.voltage_v -o plot.html", log.display()));
    run(&format!("report {} -o report.html", log.display()));
    let text = |name: &str| String::from_utf8(place.read(name)).unwrap();
    let (plot, report) = (text("plot.html"), text("report.html"));
    assert_eq!(plot.matches("<figure").count(), 1);
    for part in ["id=\"parameters\"", "id=\"track\"", "id=\"console\"", "SYS_AUTOSTART", "SHA-256"] {
        assert!(report.contains(part) && !plot.contains(part), "{part}");
    }
}

/// The undamaged part of a damaged log is drawn, and the damage is reported by exit code 3.
#[test]
fn reports_of_damaged_logs_end_with_3() {
    let log = fs::read(corpus().join("damaged+three-places+sync+cut.ulg")).unwrap();
    let output = run_with("report -", &log);
    assert_eq!(output.status.code(), Some(3));
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("could not be read") && page.contains("E-ULOG-"), "{page}");
}
