//! Finds rejected measurements, faults and jumps of the position estimator EKF2.

use std::rc::Rc;

use rovelog::core::internal::topic::instance;
use rovelog::ulog_format::UlogReader;

use super::flight::Flight;
use super::{SECOND, recordings, topics};
use crate::ExportError;
use crate::findings::scan::{Scan, WHOLE_LOG, each_row};
use crate::findings::watch::{Holds, Span, States};
use crate::findings::{Kind, Severity, digits, seconds};

/// Test ratio above which EKF2 rejects a measurement. Source: PX4's `EstimatorStatus.msg`, and
/// flight-review-rs.
const MAX_RATIO: f64 = 1.0;

/// Time in nanoseconds for which measurements must be rejected. Source: flight-review-rs.
const WARNING_TIME: i64 = 2 * SECOND;

/// Time in nanoseconds from which rejected measurements have the severity high, because the
/// estimate cannot be trusted. Source: flight-review-rs.
const CRITICAL_TIME: i64 = 5 * SECOND;

/// Fields of `estimator_status` with test ratios, and their names in sentences.
const RATIOS: [[&str; 2]; 3] =
    [["vel_test_ratio", "velocity"], ["pos_test_ratio", "position"], ["hgt_test_ratio", "height"]];

/// Minimum jump of the position in meters. PX4 considers a position estimate with a larger error
/// invalid. Source: default of PX4's parameter `COM_POS_FS_EPH`.
const MIN_POSITION_JUMP: f64 = 5.0;

/// Minimum jump of the velocity in m/s. PX4 considers a velocity estimate with a larger error
/// invalid. Source: default of PX4's parameter `COM_VEL_FS_EVH`.
const MIN_VELOCITY_JUMP: f64 = 1.0;

/// Jumps that are counted in `vehicle_local_position`. Each entry has the name and the unit of the
/// quantity, the field that counts its jumps, and the fields with the components of the last jump.
/// The second of these fields is empty for a vertical quantity.
const JUMPS: [[&str; 5]; 4] = [
    ["horizontal position", "m", "xy_reset_counter", "delta_xy[0]", "delta_xy[1]"],
    ["height", "m", "z_reset_counter", "delta_z", ""],
    ["horizontal velocity", "m/s", "vxy_reset_counter", "delta_vxy[0]", "delta_vxy[1]"],
    ["vertical velocity", "m/s", "vz_reset_counter", "delta_vz", ""],
];

/// Adds the checks of all instances of the estimator.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) -> Result<(), ExportError> {
    for topic in topics(log, "estimator_status") {
        let instance = instance(&topic.name).map_or(0, |(_, number, _)| number);
        let used = Rc::new(times_in_use(log, instance.into())?);
        for [field, name] in RATIOS {
            let used = Rc::clone(&used);
            let test =
                move |time, row: &[f64]| (flight.is_armed(time) && row[0] > MAX_RATIO).then_some(row[0]);
            let report = move |topic: &str, span: &Span| {
                let severity = if used.overlaps(span) { span.severity(CRITICAL_TIME) } else { Severity::Low };
                let sentence = format!(
                    "The estimator rejected the measured {name} for {} (test ratio up to {}, \
                     limit {MAX_RATIO}).",
                    seconds(span.longest),
                    digits(span.worst.value),
                );
                span.finding(Kind::EkfInnovation, severity, sentence, format!("{topic}.{field}"), MAX_RATIO)
            };
            scan.check(topic, [field], Holds::above(WARNING_TIME), test, report);
        }
        let test = move |time, row: &[f64]| (flight.is_armed(time) && row[0] > 0.0).then_some(row[0]);
        scan.check(topic, ["filter_fault_flags"], Holds::above(0), test, move |topic: &str, span: &Span| {
            let severity = if used.overlaps(span) { Severity::Medium } else { Severity::Low };
            let sentence =
                format!("The estimator reported a fault (filter_fault_flags {}).", span.worst.value);
            span.finding(Kind::EkfFault, severity, sentence, format!("{topic}.filter_fault_flags"), 0.0)
        });
    }
    let positions = recordings(log, "vehicle_local_position").into_iter();
    let jumps = positions.flat_map(|topic| JUMPS.map(|jump| (topic, jump)));
    for (topic, [name, unit, counter, first, second]) in jumps {
        let limit = if unit == "m" { MIN_POSITION_JUMP } else { MIN_VELOCITY_JUMP };
        let mut last = f64::NAN;
        let test = move |time, row: &[f64]| {
            let size = row[1].hypot(if row[2].is_nan() { 0.0 } else { row[2] });
            let previous = std::mem::replace(&mut last, row[0]);
            let is_jump = (row[0] - previous).abs() > 0.5 && flight.is_flying(time);
            (is_jump && size >= limit).then_some(size)
        };
        let report = move |topic: &str, span: &Span| {
            let size = digits(span.worst.value);
            let sentence = format!("The estimated {name} jumped by {size} {unit} in flight.");
            span.finding(Kind::EkfReset, Severity::Medium, sentence, format!("{topic}.{first}"), limit)
        };
        scan.check(topic, [counter, first, second], Holds::above(0), test, report);
    }
    Ok(())
}

/// Returns the times at which PX4 used an instance of the estimator. If the vehicle has several
/// inertial sensors, PX4 runs several instances and uses the result of one.
fn times_in_use(log: &UlogReader, instance: f64) -> Result<States, ExportError> {
    let (mut used, mut is_first) = (States::default(), true);
    each_row(log, "estimator_selector_status", &["primary_instance"], WHOLE_LOG, |time, row| {
        // The state before the first row is unknown, so the first row is used for that time, too.
        let time = if std::mem::take(&mut is_first) { i64::MIN } else { time };
        used.push(time, (row[0] - instance).abs() < 0.5);
    })?;
    if is_first {
        used.push(i64::MIN, true);
    }
    Ok(used)
}
