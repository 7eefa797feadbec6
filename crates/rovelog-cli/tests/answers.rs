//! Answers that a command gives before the user has read its help: findings and totals in `info`,
//! short help, folders of mixed logs, arguments in the wrong order, and spectra.

mod common;

use common::Place;
use rovelog::ulog_format::UlogWriter;
use serde_json::Value;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn info_names_findings_and_totals() {
    let output = common::run_in("rld", "info current-wraps.rld", b"");
    let shown = text(&output.stdout);
    assert!(shown.contains("findings:    1 high: current-out-of-range (rovelog findings "), "{shown}");
    assert!(!shown.contains("V1*I1:"), "totals are shown only with -v: {shown}");
    let shown = text(&common::run_in("rld", "info v4.rld -v", b"").stdout);
    assert!(
        shown.contains("V1*I1:") && shown.contains("mean -42.483 pW, peak -40.000 pW, energy "),
        "{shown}"
    );
    let json = text(&common::run_in("rld", "info v4.rld -v -f json", b"").stdout);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["schema"], "rovelog.info/2");
    assert_eq!((&document["records"], &document["size"]), (&Value::from(15), &Value::from(656)));
    assert_eq!(document["totals"][0]["totals"][2]["unit"], "J");
    let short: Value =
        serde_json::from_str(&text(&common::run_in("rld", "info v4.rld -f json", b"").stdout)).unwrap();
    assert_eq!(short["totals"], Value::Null);
    // Findings are not looked for in a pipe, which is read only once.
    let bytes = std::fs::read(common::corpus().join("../rld/v4.rld")).unwrap();
    let piped = text(&common::run_in("rld", "info -", &bytes).stdout);
    assert!(!piped.contains("findings:"), "{piped}");
}

#[test]
fn the_help_of_a_command_names_the_global_options() {
    for command in ["stats", "plot", "rld csv", "info"] {
        let [short, long] =
            ["-h", "--help"].map(|option| text(&common::run(&format!("{command} {option}")).stdout));
        assert!(!short.contains("--max-unpacked") && long.contains("--max-unpacked"), "{command}: {short}");
        assert!(!long.contains("--max-unpacked <SIZE>"), "{command}: {long}");
        assert!(short.contains("Options of all commands: rovelog --help"), "{command}: {short}");
        assert!(short.lines().count() < long.lines().count());
    }
    let [short, long] = ["-h", "--help"].map(|option| text(&common::run(&format!("plot {option}")).stdout));
    assert!(short.contains("Examples:") && !short.contains("Quaternions") && long.contains("Quaternions"));
}

#[test]
fn the_help_of_exports_explains_the_options_of_one_format() {
    let help = |words: &str| text(&common::run(&format!("{words} --help")).stdout);
    assert!(help("").contains("--max-unpacked <SIZE>"));
    let [all, csv, bag2] = ["export", "convert --to csv", "export --to=bag2"].map(help);
    assert!(
        all.contains("csv: --dialect, --delimiter")
            && csv.contains("--names <STYLE>")
            && !all.contains("--dialect <NAME>"),
        "{all}"
    );
    assert!(csv.contains("--dialect <NAME>") && !csv.contains("--ros2"), "{csv}");
    assert!(bag2.contains("--modernize  ") && !bag2.contains("--dialect"), "{bag2}");
}

#[test]
fn a_folder_of_mixed_logs_is_summarized() {
    let place = Place::new("ulog", &["one-topic.ulg", "utc-gps-int32.ulg"]);
    std::fs::copy(common::corpus().join("../rld/v4.rld"), place.path("v4.rld")).unwrap();
    std::fs::copy(common::corpus().join("../rosbag/robot.bag"), place.path("robot.bag")).unwrap();
    let output = place.run("events . 'V1 > 0'");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let skipped = text(&output.stderr).lines().filter(|line| line.contains("skipped")).count();
    assert!(skipped >= 1 && !text(&output.stderr).contains("error"), "{}", text(&output.stderr));
    let output = place.run("events . 'nothing > 0'");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no log has the signals of the conditions"));
    let said = text(&place.run("events .").stderr);
    assert!(said.contains("2 logs skipped, because only ULog files can contain autopilot events"), "{said}");
    let output = place.run("extract . -o out");
    let said = text(&output.stderr);
    assert!(said.contains("wrote 2 images to out/robot"), "{said}");
    assert!(said.contains("3 logs without images and point clouds"), "{said}");
    assert_eq!(place.names("out"), ["robot"]);
}

#[test]
fn an_extraction_that_writes_nothing_fails() {
    let place = Place::new("rosbag", &["v1.1.bag"]);
    let output = place.run("extract v1.1.bag -o out");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing was written"), "{}", text(&output.stderr));
    assert!(!place.path("out").exists());
}

#[test]
fn messages_are_folded() {
    let mut writer = UlogWriter::new(Vec::new(), 0).unwrap();
    for (time, text) in [(1, "low battery"), (2, "landing"), (3, "low battery"), (4, "low battery")] {
        writer.text(4, time * 1_000_000, text).unwrap();
    }
    let log = writer.finish().unwrap();
    let fold = |options: &str| text(&common::run_with(&format!("messages - --fold {options}"), &log).stdout);
    let all = text(&common::run_with("messages - -f ndjson", &log).stdout);
    let parse = |text: &str| {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let (all, folded) = (parse(&all), parse(&fold("-f ndjson")));
    let counts: Vec<_> = folded.iter().map(|line| (line["count"].as_u64(), line["text"].as_str())).collect();
    assert_eq!(counts, [(Some(3), Some("low battery")), (Some(1), Some("landing"))]);
    assert_eq!(folded[0]["last_t_ns"], "4000000000");
    assert!(all.len() == 4 && all.iter().all(|line| line.get("count").is_none()));
    assert!(fold("").contains("low battery  (3 times, last at "), "{}", fold(""));
    assert!(fold("-f csv").starts_with("time,t_ns,level,source,text,count,last_t_ns\n"));
}

#[test]
fn arguments_of_plot_may_be_swapped() {
    let right = common::stdout("plot utc-gps-int32.ulg vehicle_gps_position.alt");
    assert_eq!(common::stdout("plot vehicle_gps_position.alt utc-gps-int32.ulg"), right);
    let said = text(&common::run("plot utc-gps-jumps.ulg altitude").stderr);
    assert!(said.contains("next: "), "{said}");
    let said = text(&common::run_in("rld", "events v4.rld 'V1 > 1mV'", b"").stderr);
    assert!(said.contains("in(SIGNAL, UNIT) converts a signal to another unit"), "{said}");
}
