//! Opens reports in a headless browser without a network. The tests check that plots are drawn,
//! that zooming works, and that no errors occur. If neither `ROVELOG_BROWSER` nor `PATH` names a
//! Chromium browser, the tests are skipped with a message.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use rovelog::{AnyLog, ReadOptions};
use rovelog_export::Provenance;
use rovelog_export::report::{self, ReportOptions};
use serde_json::Value;

/// A log name that tries to inject HTML.
const NAME: &str = "<script>document.title = 'run'</script> & \"more\" <img src=x onerror=alert(1)>";

/// Returns the path of a browser that can be started.
fn browser() -> Option<OsString> {
    let named = env::var_os("ROVELOG_BROWSER");
    let usual = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(OsString::from);
    let starts = |name: &OsString| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = named.into_iter().chain(usual).find(starts);
    if found.is_none() {
        rovelog_testing::skipped("no Chromium to look at reports with (ROVELOG_BROWSER names one)");
    }
    found
}

/// Appends `browser.js` to the report of a log, and opens the report. Returns the result of the
/// script and the error output of the browser.
fn seen(browser: &OsString, folder: &Path, log: &AnyLog) -> (Value, String) {
    let mut page = Vec::new();
    report::write(log, &Provenance::new(NAME), &ReportOptions::default(), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let looking = format!("<head>\n<script>{}</script>", include_str!("browser.js"));
    let file = folder.join("report.html");
    fs::write(&file, page.replacen("<head>", &looking, 1)).unwrap();
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,900"])
        .args(["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let complaints = said.lines().filter(|line| line.contains(":CONSOLE")).collect::<Vec<_>>().join("\n");
    let page = String::from_utf8(output.stdout).unwrap();
    let seen = page.split_once("data-seen=\"").and_then(|(_, rest)| rest.split_once('"'));
    let seen = seen.unwrap_or_else(|| panic!("the page was not looked at: {said}")).0;
    let seen = seen.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen}")), complaints)
}

/// Checks the report of a log, which must contain at least `plots` plots.
fn check_report(name: &str, log: &AnyLog, browser: &OsString, plots: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (seen, complaints) = seen(browser, folder.path(), log);
    assert_eq!(seen["errors"], Value::Array(Vec::new()), "{name}");
    assert_eq!(complaints, "", "{name}");
    // The four scripts are the data, uPlot, the plotting script, and `browser.js`.
    assert_eq!((&seen["title"], &seen["scripts"]), (&NAME.into(), &4.into()), "{name}: names are text");
    assert_eq!(seen["missing"], 0, "{name}: links lead somewhere");
    let lines: Vec<_> = seen["lines"].as_array().unwrap().iter().map(|dots| dots.as_u64().unwrap()).collect();
    assert!(lines.len() >= plots, "{name}: {seen}");
    assert!(lines.iter().all(|dots| *dots > 10), "{name}: lines are drawn: {seen}");
    let all = Value::from(lines.len());
    assert!(seen["values"].as_u64() >= Some(1), "{name}: values appear at the pointer: {seen}");
    assert_eq!((&seen["zoomed"], &seen["back"]), (&all, &all), "{name}: all plots zoom in, and out again");
    assert_eq!((&seen["dragged"], &seen["hidden"]), (&all, &1.into()), "{name}: a drag zooms, a click hides");
    assert_eq!(seen["unnamed"], 0, "{name}: what can be reached has a name");
    let utc = log.info().utc.is_some() || log.info().start.is_some_and(|start| start.clock.name() == "unix");
    assert_eq!(seen["utc"], if utc { all } else { Value::Null }, "{name}: UTC on the axis");
}

#[test]
fn reports_of_the_corpus_open_in_a_browser() {
    let Some(browser) = browser() else { return };
    for (name, plots) in
        [("ulog/utc-gps-int32.ulg", 1), ("rld/v4.rld", 2), ("rosbag/robot.bag", 1), ("vel/all-kinds.vel", 1)]
    {
        let bytes = fs::read(rovelog_testing::root().join("corpus").join(name)).unwrap();
        let log = rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap();
        check_report(name, &log, &browser, plots);
    }
}

#[test]
fn reports_of_real_logs_open_in_a_browser() {
    let Some(browser) = browser() else { return };
    for (format, name, plots) in [
        ("ulog", "sample_log_small.ulg", 5),
        ("rld", "test_full.rld", 3),
        ("rosbag12", "indexed.bag", 4),
        ("vel", "gps_nmea_units.vel", 5),
    ] {
        let Some(folder) = rovelog_testing::real(format) else { continue };
        check_report(name, &rovelog::open(folder.join(name)).unwrap(), &browser, plots);
    }
}
