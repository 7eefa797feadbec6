//! Finds a lost GPS position, and interference.

use rovelog::Topic;
use rovelog::ulog_format::UlogReader;

use super::flight::Flight;
use super::{SECOND, topics};
use crate::ExportError;
use crate::findings::scan::{Scan, WHOLE_LOG, each_row};
use crate::findings::watch::{Holds, Span};
use crate::findings::{Kind, Severity, digits, seconds};

/// Number of rows at the start that define the normal values of a receiver. Source:
/// flight-review-rs.
const BASELINE_ROWS: u32 = 10;

/// The horizontal error is checked only if its normal value in meters is below this limit. Source:
/// flight-review-rs.
const GOOD_EPH: f64 = 2.0;

/// Limits of the horizontal and the vertical error in meters. Source: flight-review-rs.
const MAX_ERRORS: [f64; 2] = [5.0, 10.0];

/// Horizontal error in meters above which the severity is high. Source: flight-review-rs.
const CRITICAL_EPH: f64 = 10.0;

/// Number of satellites below which the severity is high, because a 3D position needs four
/// satellites. Source: flight-review-rs.
const MIN_SATELLITES: f64 = 4.0;

/// Fraction of the normal number of satellites below which there are too few. Source:
/// flight-review-rs.
const SATELLITE_RATIO: f64 = 0.5;

/// Lowest value of `fix_type` with a 3D position. Source: PX4's `SensorGps.msg`.
const FIX_3D: f64 = 3.0;

/// Lowest value of `jamming_state` and `spoofing_state` that is a warning. Source: PX4's
/// `SensorGps.msg`.
const INTERFERENCE: f64 = 2.0;

/// Time in nanoseconds from which the loss of the position has the severity high, because the
/// estimator no longer has a valid position. Source: default of PX4's parameter `EKF2_NOAID_TOUT`.
const CRITICAL_TIME: i64 = 5 * SECOND;

/// Time in nanoseconds for which the position must be lost. A shorter loss is normal, because
/// receivers skip single positions.
const MIN_TIME: i64 = SECOND / 2;

/// Normal values of a receiver, which are the means of its first rows.
#[derive(Clone, Copy, Default)]
struct Baseline {
    rows: u32,
    eph: f64,
    satellites: f64,
    /// Time of the last row that defines the normal values.
    end: i64,
    /// True if the receiver had a 3D position at any time.
    had_fix: bool,
}

/// Adds the checks of the GPS receivers.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) -> Result<(), ExportError> {
    // The topic `vehicle_gps_position` has the position that the autopilot used. Only if the log
    // lacks this topic, each receiver is checked separately.
    let mut chosen: Vec<_> = topics(log, "vehicle_gps_position").take(1).collect();
    if chosen.is_empty() {
        chosen.extend(topics(log, "sensor_gps"));
    }
    for topic in chosen {
        let baseline = baseline(log, topic)?;
        accuracy(topic, baseline, flight, scan);
        let mut had_fix = false;
        let lost = move |time, row: &[f64]| {
            had_fix |= row[0] >= FIX_3D;
            (had_fix && flight.is_flying(time) && row[0] < FIX_3D).then_some(row[0])
        };
        scan.check(topic, ["fix_type"], Holds::below(MIN_TIME), lost, |topic: &str, span: &Span| {
            let time = seconds(span.longest);
            let sentence = format!("The GPS receiver lost its 3D position in flight for {time}.");
            span.finding(
                Kind::GpsLoss,
                span.severity(CRITICAL_TIME),
                sentence,
                format!("{topic}.fix_type"),
                FIX_3D,
            )
        });
        for field in ["jamming_state", "spoofing_state"] {
            let test =
                move |time, row: &[f64]| (flight.is_armed(time) && row[0] >= INTERFERENCE).then_some(row[0]);
            scan.check(topic, [field], Holds::above(0), test, move |topic: &str, span: &Span| {
                let what = field.trim_end_matches("_state");
                let sentence = format!("The GPS receiver reported {what} (state {}).", span.worst.value);
                span.finding(
                    Kind::GpsInterference,
                    Severity::Medium,
                    sentence,
                    format!("{topic}.{field}"),
                    INTERFERENCE,
                )
            });
        }
    }
    Ok(())
}

/// Adds the checks of the horizontal error, the vertical error and the number of satellites.
fn accuracy<'a>(topic: &Topic, baseline: Baseline, flight: &'a Flight, scan: &mut Scan<'a>) {
    let Baseline { eph, satellites, end, had_fix, .. } = baseline;
    let max_eph = if eph < GOOD_EPH { MAX_ERRORS[0] } else { f64::INFINITY };
    let limits = [max_eph, MAX_ERRORS[1], satellites * SATELLITE_RATIO];
    let critical = [CRITICAL_EPH, f64::INFINITY, MIN_SATELLITES];
    let names =
        [["horizontal GPS error", " m"], ["vertical GPS error", " m"], ["number of GPS satellites", ""]];
    for (i, field) in ["eph", "epv", "satellites_used"].into_iter().enumerate() {
        let is_low_bad = i == 2;
        let is_worse = move |value: f64, limit: f64| if is_low_bad { value < limit } else { value > limit };
        let test = move |time, row: &[f64]| {
            // The loss of the position is reported by a finding of the kind `gps-loss`.
            let is_lost = had_fix && row[1] < FIX_3D;
            let is_bad = time > end && flight.is_armed(time) && is_worse(row[0], limits[i]);
            (is_bad && !is_lost).then_some(row[0])
        };
        let report = move |topic: &str, span: &Span| {
            let (worst, limit) = (span.worst.value, limits[i]);
            let (severity, more) = match had_fix {
                // A flight without any position is usually indoors, and does not need GPS.
                false => (Severity::Low, "; the receiver had no position in the whole log"),
                true if is_worse(worst, critical[i]) => (Severity::High, ""),
                true => (Severity::Medium, ""),
            };
            let [name, unit] = names[i];
            let (worst, shown) = (digits(worst), digits(limit));
            let sentence = format!("The {name} was {worst}{unit} (limit: {shown}{unit}){more}.");
            span.finding(Kind::GpsInterference, severity, sentence, format!("{topic}.{field}"), limit)
        };
        let holds = if is_low_bad { Holds::below(0) } else { Holds::above(0) };
        scan.check(topic, [field, "fix_type"], holds, test, report);
    }
}

/// Returns the normal values of a receiver.
fn baseline(log: &UlogReader, topic: &Topic) -> Result<Baseline, ExportError> {
    let mut baseline = Baseline::default();
    each_row(log, &topic.name, &["eph", "satellites_used", "fix_type"], WHOLE_LOG, |time, row| {
        baseline.had_fix |= row[2] >= FIX_3D;
        if baseline.rows < BASELINE_ROWS {
            baseline.rows += 1;
            baseline.end = time;
            baseline.eph += if row[0].is_finite() { row[0] } else { 0.0 };
            baseline.satellites += if row[1].is_finite() { row[1] } else { 0.0 };
        }
    })?;
    let rows = f64::from(baseline.rows.max(1));
    Ok(Baseline { eph: baseline.eph / rows, satellites: baseline.satellites / rows, ..baseline })
}
