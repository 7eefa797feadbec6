//! Findings of a report: sentences about unusual values and events in a log.

use rovelog::AnyLog;
use rovelog::core::internal::text::count;
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{Entry, status_changes};

use crate::plot::Plot;

/// Vibration metrics in m/s² above which Flight Review, PX4's web service for logs, marks a log
/// yellow and red.
const VIBRATION_LIMITS: (f64, f64) = (4.905, 9.81);

/// CPU load, as a fraction, above which PX4's documentation expects problems.
const HIGH_CPU_LOAD: f64 = 0.9;

/// Number of satellites below which a GPS position is considered unreliable.
const FEW_SATELLITES: f64 = 6.0;

/// A sentence about unusual values or events. The boolean is true if the finding is severe. The last
/// text is the title of the panel that shows the values, or the id of a section of the page.
pub(super) type Finding = (bool, String, &'static str);

/// Returns the findings.
pub(super) fn of(log: &AnyLog, plot: &Plot) -> Vec<Finding> {
    let mut found = Vec::new();
    if let AnyLog::Ulog(reader) = log {
        flight(reader, plot, &mut found);
    }
    // The levels of text lines are those of syslog: 3 is an error, 4 is a warning.
    let lines = log.texts().into_iter().flatten().filter(|line| line.level <= 4);
    let (errors, warnings) = lines.fold((0_usize, 0_usize), |(errors, warnings), line| {
        if line.level <= 3 { (errors + 1, warnings) } else { (errors, warnings + 1) }
    });
    if errors > 0 {
        found.push((true, format!("The console has {}.", count(errors, "error")), "console"));
    }
    if warnings > 0 {
        found.push((false, format!("The console has {}.", count(warnings, "warning")), "console"));
    }
    for outside in log.info().outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        found.push((false, outside.sentence(name), "topics"));
    }
    found
}

/// Adds the findings about a PX4 log. Most of them come from the values that were read for the
/// plots.
fn flight(reader: &UlogReader, plot: &Plot, found: &mut Vec<Finding>) {
    let changes = status_changes(reader);
    let failsafes = changes.iter().filter(|change| change.value == Entry::Failsafe(true)).count();
    if failsafes > 0 {
        let text = format!("A failsafe was active ({}).", count(failsafes, "time"));
        found.push((true, text, "Failsafe"));
    }
    let dropouts = reader.dropouts();
    if !dropouts.is_empty() {
        let total: u64 = dropouts.iter().map(|dropout| u64::from(dropout.millis)).sum();
        let longest = dropouts.iter().map(|dropout| dropout.millis).max().unwrap_or(0);
        let dropouts = count(dropouts.len(), "dropout");
        let text =
            format!("The logger missed data: {dropouts}, {total} ms in all, the longest {longest} ms.");
        found.push((total > 1000, text, "overview"));
    }
    let range = |panel: &str, line: &str| {
        let panel = plot.panels.iter().find(|found| found.title == panel)?;
        let line = panel.series.iter().find(|series| series.name == line)?;
        line.range()
    };
    for imu in ["IMU 0", "IMU 1", "IMU 2", "IMU 3"] {
        if let Some((_, most)) = range("Vibration metrics", imu).filter(|range| range.1 > VIBRATION_LIMITS.0)
        {
            let text = format!(
                "Vibration of {imu} reaches {most:.1} m/s² (Flight Review's limit: {} m/s²).",
                VIBRATION_LIMITS.0
            );
            found.push((most > VIBRATION_LIMITS.1, text, "Vibration metrics"));
        }
    }
    if let Some((_, most)) = range("CPU and RAM", "CPU load").filter(|range| range.1 > HIGH_CPU_LOAD) {
        let text = format!("The CPU load reaches {:.0} %.", most * 100.0);
        found.push((false, text, "CPU and RAM"));
    }
    // A log without any 3D fix was probably recorded indoors, where a missing fix is not a finding.
    // A low number of satellites is not a finding in such a log either.
    if let Some((lowest, _)) =
        range("GPS uncertainty", "fix type").filter(|range| range.0 < 3.0 && range.1 >= 3.0)
    {
        let kind = if lowest < 2.0 { "no fix" } else { "a 2D fix" };
        found.push((false, format!("The GPS had {kind} for a time."), "GPS uncertainty"));
    }
    let satellites = range("GPS uncertainty", "satellites");
    if let Some((lowest, _)) =
        satellites.filter(|range| range.0 < FEW_SATELLITES && range.1 >= FEW_SATELLITES)
    {
        let text = format!("The GPS used only {lowest:.0} satellites at some time.");
        found.push((false, text, "GPS uncertainty"));
    }
    for title in ["Estimator: rejected innovations", "Estimator: faults and rejected measurements"] {
        let panel = plot.panels.iter().find(|panel| panel.title == title);
        let names: Vec<_> =
            panel.iter().flat_map(|panel| &panel.series).map(|line| line.name.as_str()).collect();
        if !names.is_empty() {
            found.push((false, format!("{title}: {}.", names.join(", ")), title));
        }
    }
}
