//! Findings of a report: sentences about problems, unusual values and events in a log.

use rovelog::AnyLog;
use rovelog::core::internal::text::count;

use crate::findings::{Finding, Kind, Severity};
use crate::plot::Plot;

/// Panels whose lines are events that the estimator reported.
const ESTIMATOR: [&str; 2] =
    ["Estimator: rejected innovations", "Estimator: faults and rejected measurements"];

/// A sentence about a problem, an unusual value or an event.
pub(super) struct Remark {
    pub(super) is_severe: bool,
    pub(super) text: String,
    /// Title of the panel that shows the values, or id of a section of the page.
    pub(super) place: &'static str,
}

impl Remark {
    fn new(is_severe: bool, text: String, place: &'static str) -> Self {
        Self { is_severe, text, place }
    }
}

/// Returns the remarks of the report. `zero` is the time that the plots show as second 0, in
/// nanoseconds of the log's clock.
pub(super) fn of(log: &AnyLog, findings: Vec<Finding>, plot: &Plot, zero: i64) -> Vec<Remark> {
    // The report lists lost bytes below the findings.
    let causes = findings.into_iter().filter(|finding| finding.kind != Kind::LostBytes);
    let remark = |finding: Finding| {
        let seconds = finding.start.saturating_sub(zero) as f64 / 1e9;
        let text = format!("{seconds:.1} s: {}", finding.sentence);
        Remark::new(finding.severity == Severity::High, text, place(finding.kind))
    };
    let mut found: Vec<_> = causes.map(remark).collect();
    for title in ESTIMATOR {
        let lines = plot.panels.iter().filter(|panel| panel.title == title).flat_map(|panel| &panel.series);
        let names: Vec<_> = lines.map(|line| line.name.as_str()).collect();
        if !names.is_empty() {
            found.push(Remark::new(false, format!("{title}: {}.", names.join(", ")), title));
        }
    }
    // The levels of text lines are those of syslog: 3 is an error, 4 is a warning.
    let lines = log.texts().into_iter().flatten().filter(|line| line.level <= 4);
    let (errors, warnings) = lines.fold((0_usize, 0_usize), |(errors, warnings), line| {
        if line.level <= 3 { (errors + 1, warnings) } else { (errors, warnings + 1) }
    });
    if errors > 0 {
        found.push(Remark::new(true, format!("The console has {}.", count(errors, "error")), "console"));
    }
    if warnings > 0 {
        found.push(Remark::new(false, format!("The console has {}.", count(warnings, "warning")), "console"));
    }
    for outside in log.info().outside() {
        let name = log.topics().get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
        found.push(Remark::new(false, outside.sentence(name), "topics"));
    }
    found
}

/// Returns the title of the panel that shows the values of a finding, or the id of a section.
fn place(kind: Kind) -> &'static str {
    match kind {
        Kind::AttitudeFailure => "Roll angle",
        Kind::Failsafe | Kind::Kill | Kind::Termination | Kind::RcLoss => "Failsafe",
        Kind::MotorFailure | Kind::MotorSaturation => "Motor outputs",
        Kind::BatteryBrownout | Kind::BatterySag | Kind::BatteryLow => "Battery voltage",
        Kind::GpsLoss => "GPS uncertainty",
        Kind::GpsInterference => "GPS noise and jamming",
        Kind::EkfInnovation => ESTIMATOR[0],
        Kind::EkfFault => ESTIMATOR[1],
        Kind::EkfReset => "Local position X",
        Kind::Vibration => "Vibration metrics",
        Kind::CpuLoad => "CPU and RAM",
        Kind::TopicStall | Kind::ClockJump | Kind::LateMessages => "topics",
        _ => "overview",
    }
}
