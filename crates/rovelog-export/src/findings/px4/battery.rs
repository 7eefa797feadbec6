//! Finds brown-outs, sags and low batteries.

use rovelog::Topic;
use rovelog::core::internal::topic::instance;
use rovelog::ulog_format::UlogReader;

use super::flight::Flight;
use super::{SECOND, topics};
use crate::ExportError;
use crate::findings::scan::{Scan, WHOLE_LOG, each_row};
use crate::findings::watch::{Holds, Span};
use crate::findings::{Kind, Severity, digits, seconds};

/// Voltage in volts below which a cell fails. Source: `CRITICAL_VOLTAGE_PER_CELL` of
/// flight-review-rs. PX4's former defaults give the same voltage for an empty cell under load:
/// `BAT_V_EMPTY` - `BAT_V_LOAD_DROP` = 3.6 V - 0.3 V.
const CRITICAL_CELL_VOLTS: f64 = 3.3;

/// Voltage of a full cell in volts. If the log does not state the number of cells, the first
/// voltage is divided by this value. Source: `NOMINAL_FULL_VOLTAGE_PER_CELL` of flight-review-rs.
const FULL_CELL_VOLTS: f64 = 4.2;

/// Maximum number of cells if the number is estimated. Source: flight-review-rs.
const MAX_CELLS: f64 = 12.0;

/// Time in nanoseconds from which a low voltage is a brown-out. A shorter drop, such as at the
/// start of a climb, is a sag.
const BROWNOUT_TIME: i64 = SECOND;

/// Names of the warnings. The index of a name is the value of `battery_status.warning`. Source:
/// `BATTERY_WARNING_*` in PX4's `BatteryStatus.msg`. Higher values are not warnings.
const WARNINGS: [&str; 5] = ["none", "low", "critical", "emergency", "failed"];

/// Adds the checks of all batteries.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) -> Result<(), ExportError> {
    for topic in topics(log, "battery_status") {
        let limit = critical_voltage(log, topic, flight)?;
        // A voltage of 0 means that the sensor has not measured yet.
        let is_low = move |time, volts| flight.is_armed(time) && volts > 0.0 && volts < limit;
        let low = move |time, row: &[f64]| (is_low(time, row[0]) && row[1] != 0.0).then_some(row[0]);
        let report = move |topic: &str, span: &Span| {
            let (kind, severity, time) = if span.longest >= BROWNOUT_TIME {
                (Kind::BatteryBrownout, Severity::High, seconds(span.longest))
            } else {
                (Kind::BatterySag, Severity::Medium, "a moment".to_owned())
            };
            let (worst, critical) = (digits(span.worst.value), digits(limit));
            let sentence = format!(
                "The battery voltage fell to {worst} V, below the critical {critical} V, for {time}."
            );
            span.finding(kind, severity, sentence, format!("{topic}.voltage_v"), limit)
        };
        scan.check(topic, ["voltage_v", "connected"], Holds::below(0), low, report);
        let unmeasured = move |time, row: &[f64]| (is_low(time, row[0]) && row[1] == 0.0).then_some(row[0]);
        let report = move |topic: &str, span: &Span| {
            let sentence = format!(
                "The battery voltage was at most {} V while armed (critical: {} V), so no battery was \
                 measured and PX4 could not warn.",
                digits(span.worst.value),
                digits(limit)
            );
            span.finding(
                Kind::BatteryBrownout,
                Severity::Medium,
                sentence,
                format!("{topic}.voltage_v"),
                limit,
            )
        };
        scan.check(topic, ["voltage_v", "connected"], Holds::above(0), unmeasured, report);
        let warned = |level: f64| (1.0..WARNINGS.len() as f64).contains(&level);
        let warning = move |time, row: &[f64]| (flight.is_armed(time) && warned(row[0])).then_some(row[0]);
        scan.check(topic, ["warning"], Holds::above(0), warning, |topic: &str, span: &Span| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small integer")]
            let level = span.worst.value as usize;
            let severity = [Severity::Low, Severity::Medium, Severity::High][level.clamp(1, 3) - 1];
            let name = WARNINGS[level.min(4)];
            let sentence = format!("The autopilot reported the battery level as {name} while armed.");
            span.finding(Kind::BatteryLow, severity, sentence, format!("{topic}.warning"), 1.0)
        });
    }
    Ok(())
}

/// Returns the voltage in volts below which a battery fails, which is the voltage of a failing cell
/// multiplied by the number of cells.
fn critical_voltage(log: &UlogReader, topic: &Topic, flight: &Flight) -> Result<f64, ExportError> {
    let mut first = None;
    each_row(log, &topic.name, &["voltage_v", "cell_count"], WHOLE_LOG, |_, row| {
        if row[0] > 0.0 {
            first.get_or_insert([row[0], row[1]]);
        }
    })?;
    let [volts, count] = first.unwrap_or_default();
    // The parameters of the battery with instance 0 start with `BAT1_`, or with `BAT_` in older
    // versions of PX4.
    let number = instance(&topic.name).map_or(1, |(_, number, _)| u32::from(number) + 1);
    let parameter = |name: &str| flight.parameter(&format!("BAT{number}_{name}"));
    let old = if number == 1 { flight.parameter("BAT_N_CELLS") } else { None };
    let stated = [Some(count), parameter("N_CELLS"), old].into_iter().flatten().find(|cells| *cells > 0.0);
    let cells = stated.unwrap_or_else(|| (volts / FULL_CELL_VOLTS).round().clamp(1.0, MAX_CELLS));
    // Some cells can be discharged further than lithium polymer cells. For these, the parameters of
    // the vehicle have lower voltages.
    let [empty, drop] = ["V_EMPTY", "V_LOAD_DROP"].map(parameter);
    let loaded = empty.map(|empty| empty - drop.unwrap_or(0.0)).filter(|volts| *volts > 0.0);
    Ok(cells * loaded.map_or(CRITICAL_CELL_VOLTS, |volts| volts.min(CRITICAL_CELL_VOLTS)))
}
