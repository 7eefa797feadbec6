//! Finds excessive vibration, a lost remote control, and an overloaded processor.

use rovelog::ulog_format::UlogReader;

use super::flight::Flight;
use super::{SECOND, topics};
use crate::findings::scan::Scan;
use crate::findings::watch::{Holds, Sample, Span, Watch};
use crate::findings::{Evidence, Finding, Kind, Severity, digits, seconds};

/// Mean vibration metric in m/s² from which the severity is medium. Source: Flight Review and
/// flight-review-rs.
pub(crate) const MEAN_LIMIT: f64 = 4.905;

/// Mean vibration metric in m/s² from which the sensors cannot be trusted, so the severity is high.
/// If at least [`MIN_ROWS`] rows exceed this limit, the severity is at least medium. Source: Flight
/// Review and flight-review-rs.
const HIGH_LIMIT: f64 = 9.81;

/// Minimum number of rows in flight, and of rows above [`HIGH_LIMIT`]. PX4 logs one row per second.
/// With fewer rows, a hard landing would count as vibration.
const MIN_ROWS: u32 = 5;

/// Time in nanoseconds for which the signal of the remote control must be lost. Source:
/// flight-review-rs. It is also the default of PX4's parameter `COM_RC_LOSS_T`.
const RC_TIME: i64 = SECOND / 2;

/// Time in nanoseconds from which the loss of the signal has the severity high. Source:
/// flight-review-rs.
const CRITICAL_RC_TIME: i64 = 5 * SECOND;

/// Processor load, as a fraction, above which PX4 refuses to arm. It is used if the log has no
/// parameter `COM_CPU_MAX`, or if this parameter is not positive. Source: former default of
/// `COM_CPU_MAX`.
const MAX_LOAD: f64 = 0.9;

/// Time in nanoseconds for which the load must be too high. Source: description of `COM_CPU_MAX`.
const LOAD_TIME: i64 = 2 * SECOND;

/// Adds the checks of vibration, the remote control and the processor load.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) {
    for topic in topics(log, "vehicle_imu_status") {
        let watch = Vibration { flight, rows: 0, sum: 0.0, high_rows: 0, highest: None, span: None };
        scan.add(topic, ["accel_vibration_metric"], watch);
    }
    for topic in topics(log, "input_rc") {
        // A vehicle that never had a signal is flown without a remote control.
        let mut had_signal = false;
        let test = move |time, row: &[f64]| {
            had_signal |= row[0] == 0.0;
            (row[0] > 0.0 && had_signal && flight.is_armed(time)).then_some(row[0])
        };
        scan.check(topic, ["rc_lost"], Holds::above(RC_TIME), test, |topic: &str, span: &Span| {
            let time = seconds(span.longest);
            let sentence = format!("The signal of the remote control was lost for {time} while armed.");
            span.finding(
                Kind::RcLoss,
                span.severity(CRITICAL_RC_TIME),
                sentence,
                format!("{topic}.rc_lost"),
                0.0,
            )
        });
    }
    let parameter = flight.parameter("COM_CPU_MAX").filter(|percent| *percent > 0.0);
    let limit = parameter.map_or(MAX_LOAD, |percent| percent / 100.0);
    for topic in topics(log, "cpuload") {
        let test = move |time, row: &[f64]| (flight.is_armed(time) && row[0] > limit).then_some(row[0]);
        scan.check(topic, ["load"], Holds::above(LOAD_TIME), test, move |topic: &str, span: &Span| {
            let sentence = format!(
                "The processor load was above {} % for {} and reached {} %.",
                digits(limit * 100.0),
                seconds(span.longest),
                digits(span.worst.value * 100.0)
            );
            span.finding(Kind::CpuLoad, Severity::Medium, sentence, format!("{topic}.load"), limit)
        });
    }
}

/// Watch of the vibration of an inertial sensor.
struct Vibration<'a> {
    flight: &'a Flight,
    /// Number of rows in flight.
    rows: u32,
    /// Sum of the metric in all rows in flight.
    sum: f64,
    /// Number of rows above [`HIGH_LIMIT`].
    high_rows: u32,
    highest: Option<Sample>,
    /// Times of the first and the last row above [`MEAN_LIMIT`].
    span: Option<[i64; 2]>,
}

impl Watch for Vibration<'_> {
    fn row(&mut self, time: i64, row: &[f64]) {
        let value = row[0];
        if !value.is_finite() || !self.flight.is_flying(time) {
            return;
        }
        self.rows += 1;
        self.sum += value;
        self.high_rows += u32::from(value > HIGH_LIMIT);
        if self.highest.is_none_or(|highest| value > highest.value) {
            self.highest = Some(Sample { time, value });
        }
        if value > MEAN_LIMIT {
            self.span.get_or_insert([time, time])[1] = time;
        }
    }

    fn finish(&mut self, topic: &str, found: &mut Vec<Finding>) {
        let (Some(highest), Some([start, end])) = (self.highest, self.span) else { return };
        let mean = self.sum / f64::from(self.rows);
        let severity = match mean {
            _ if self.rows < MIN_ROWS => return,
            HIGH_LIMIT.. => Severity::High,
            MEAN_LIMIT.. => Severity::Medium,
            _ if self.high_rows >= MIN_ROWS => Severity::Medium,
            _ => return,
        };
        let sentence = format!(
            "The vibration of {topic} was {} m/s² on average in flight, and up to {} m/s² (limits: \
             {MEAN_LIMIT} and {HIGH_LIMIT} m/s²).",
            digits(mean),
            digits(highest.value)
        );
        let signal = format!("{topic}.accel_vibration_metric");
        let evidence = Evidence::value(signal, highest.time, highest.value).with_limit(HIGH_LIMIT);
        found.push(Finding::new(Kind::Vibration, severity, start..end, sentence, vec![evidence]));
    }
}
