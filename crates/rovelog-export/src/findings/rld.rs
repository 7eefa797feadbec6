//! Finds problems in logs of `RocketLogger` devices.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rovelog::core::internal::text::count;
use rovelog::rld_format::RldReader;
use rovelog::rld_format::analysis::currents;
use rovelog::{AnyLog, Diagnostic};

use super::scan::Scan;
use super::timing::{MAX_EVIDENCE, time_of};
use super::watch::{Holds, Span};
use super::{Evidence, Finding, Kind, Severity, digits, seconds};
use crate::ExportError;

/// High measuring range of a current in amperes, which is ±500 mA. Source: specification of the
/// RocketLogger.
const HIGH_RANGE: f64 = 0.5;

/// Low measuring range of a current in amperes, which is ±2 mA. Source: specification of the
/// RocketLogger.
const LOW_RANGE: f64 = 0.002;

/// Time in nanoseconds for which a current must be outside of its range. Switching between the
/// ranges causes spikes of single samples, which are not findings.
const MIN_TIME: i64 = 10_000_000;

/// Time in nanoseconds from which a current outside of its range has the severity high.
const LONG_TIME: i64 = 1_000_000_000;

/// Returns the kind and the severity of the finding for a diagnostic of the reader. `diagnostic` is
/// the name of its rule. Returns `None` if the diagnostic is not a finding.
fn kind_of(diagnostic: &str) -> Option<(Kind, Severity)> {
    match diagnostic {
        "gap" => Some((Kind::MissingBlocks, Severity::Medium)),
        "clock_backwards" | "clock_step" => Some((Kind::ClockStep, Severity::Medium)),
        "stamps_implausible" => Some((Kind::ClockStep, Severity::Low)),
        "current_wraps" => Some((Kind::CurrentOutOfRange, Severity::High)),
        "validity_untrusted" => Some((Kind::StuckRangeBit, Severity::Medium)),
        _ => None,
    }
}

/// Adds the findings of an RLD log.
pub(super) fn findings(
    log: &AnyLog,
    reader: &RldReader,
    found: &mut Vec<Finding>,
) -> Result<(), ExportError> {
    diagnostics(log, found)?;
    out_of_range(reader, found)
}

/// Adds a finding for each rule of the reader's diagnostics.
fn diagnostics(log: &AnyLog, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let start = log.info().span().map_or(0, |span| span.0.nanos);
    let mut by_rule: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for diagnostic in log.diagnostics().list() {
        by_rule.entry(diagnostic.rule.name).or_default().push(diagnostic);
    }
    for (rule, diagnostics) in by_rule {
        let Some((kind, severity)) = kind_of(rule) else { continue };
        let evidence = diagnostics.iter().take(MAX_EVIDENCE).map(|diagnostic| {
            let time = time_of(log, &diagnostic.range)?;
            Ok(Evidence::bytes("file", time, diagnostic.range.clone()))
        });
        let evidence = evidence.collect::<Result<Vec<_>, ExportError>>()?;
        let last = diagnostics.last().map(|last| time_of(log, &last.range)).transpose()?.flatten();
        let times = || evidence.iter().filter_map(|evidence| evidence.time).chain(last);
        let (first, last) = (times().min().unwrap_or(start), times().max().unwrap_or(start));
        let mut sentence = diagnostics[0].message.clone();
        if let Some(first) = sentence.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        // Not all diagnostics are stored, but all are counted.
        let places = log.diagnostics().counts().get(diagnostics[0].rule.code).copied().unwrap_or(1);
        if places > 1 {
            let _ = write!(sentence, "; the same in {}", count(places - 1, "other place"));
        }
        sentence.push('.');
        found.push(Finding::new(kind, severity, first..last, sentence, evidence));
    }
    Ok(())
}

/// Adds the findings about currents that are outside of their measuring range.
fn out_of_range(reader: &RldReader, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    let channels = reader.channels();
    let mut scan = Scan::default();
    for current in currents(channels) {
        let name =
            |channel: Option<usize>| channel.map_or_else(String::new, |i| channels[i].name.to_string());
        let [low, valid, high] = [current.low, current.valid, current.high].map(name);
        let over = |kind: Kind, name: &str, limit: f64, what: &'static str| {
            let name = name.to_owned();
            move |topic: &str, span: &Span| {
                let sentence = format!(
                    "The current {name} was {} mA for {}, beyond its range of ±{} mA{what}.",
                    digits(span.worst.value * 1e3),
                    seconds(span.longest),
                    digits(limit * 1e3)
                );
                let limit = limit.copysign(span.worst.value);
                span.finding(kind, span.severity(LONG_TIME), sentence, format!("{topic}.{name}"), limit)
            }
        };
        let what = ", but its range bit says that it is valid";
        let report = over(Kind::StuckRangeBit, &low, LOW_RANGE, what);
        let test = |_, row: &[f64]| {
            // If the log has no high channel, only the low channel is checked.
            let is_over = row[0].abs() > LOW_RANGE && (row[2].is_nan() || row[2].abs() > LOW_RANGE);
            (row[1] > 0.0 && is_over).then_some(row[0])
        };
        scan.check(reader.rows_topic(), [low, valid, high.clone()], Holds::above(MIN_TIME), test, report);
        let report = over(Kind::CurrentOutOfRange, &high, HIGH_RANGE, "");
        let test = |_, row: &[f64]| Some(row[0]).filter(|current| current.abs() > HIGH_RANGE);
        scan.check(reader.rows_topic(), [high], Holds::above(MIN_TIME), test, report);
    }
    scan.run(reader, found)
}
