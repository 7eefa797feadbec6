//! Finds motors that failed, and motors at full power.

use std::cell::Cell;
use std::rc::Rc;

use rovelog::Topic;
use rovelog::ulog_format::UlogReader;

use super::flight::Flight;
use super::{SECOND, topics};
use crate::findings::scan::Scan;
use crate::findings::watch::{Holds, Span, Watch};
use crate::findings::{Evidence, Finding, Kind, Severity, seconds};

/// Maximum number of outputs of a topic. Source: PX4's `ActuatorOutputs.msg`.
const MAX_OUTPUTS: usize = 16;

/// Pulse width in microseconds from which a motor is at full power. Source: flight-review-rs.
const FULL_PULSE: f64 = 1900.0;

/// Longest pulse width in microseconds. A higher value is not a pulse width, because outputs of
/// other protocols have other scales. Source: PX4's `PWM_MAX` parameters, which are at most 2200.
const MAX_PULSE: f64 = 2200.0;

/// Value of `actuator_motors.control` from which a motor is at full power. The highest value is 1.
const FULL_CONTROL: f64 = 0.99;

/// Time in nanoseconds for which a motor must be at full power. Source: flight-review-rs, which
/// requires 50 rows. PX4 logs 50 rows in 5 s.
const SATURATION_TIME: i64 = 5 * SECOND;

/// Time in nanoseconds for which a motor must stand still. Source: PX4's failure detector, which
/// waits 300 ms for a speed controller.
const STOP_TIME: i64 = 3 * SECOND / 10;

/// Fraction of its highest value above which a motor counts as running. A stopped motor is a
/// failure only if all others run, because all motors are slow after a crash.
const RUNNING_RATIO: f64 = 0.2;

/// Topic with the values that are sent to speed controllers and servos. It has an instance for each
/// output device.
const OUTPUTS: &str = "actuator_outputs";

/// Adds the watches of motors and outputs.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) {
    for topic in topics(log, "failure_detector_status") {
        let test = move |time, row: &[f64]| (flight.is_armed(time) && row[0] > 0.0).then_some(row[0]);
        scan.check(topic, ["fd_motor"], Holds::above(0), test, |topic: &str, span: &Span| {
            let sentence = "PX4's failure detector reported a failed motor.".to_owned();
            span.finding(Kind::MotorFailure, Severity::High, sentence, format!("{topic}.fd_motor"), 0.0)
        });
    }
    let names = |part: &str| (0..MAX_OUTPUTS).map(|i| part.replace('#', &i.to_string())).collect::<Vec<_>>();
    let any_output = Rc::new(Cell::new(false));
    let mut add = |topic: &Topic, fields: Vec<String>, full: [f64; 2]| {
        let channels = fields.iter().map(|_| Output::new()).collect();
        let any_output = Rc::clone(&any_output);
        let silent = Silent { any_output, ran: false, count: 0.0, span: None };
        let silent = Some(silent).filter(|_| topic.type_name == OUTPUTS);
        let all = fields.iter().cloned().chain(["noutputs".to_owned()]).collect::<Vec<_>>();
        scan.add(topic, all, Outputs { flight, full, fields, channels, silent });
    };
    for topic in topics(log, "esc_status") {
        add(topic, names("esc[#].esc_rpm").into_iter().take(8).collect(), [f64::INFINITY; 2]);
    }
    let motors: Vec<_> = topics(log, "actuator_motors").collect();
    for topic in &motors {
        add(topic, names("control[#]").into_iter().take(12).collect(), [FULL_CONTROL, f64::INFINITY]);
    }
    for topic in topics(log, OUTPUTS) {
        // If the log has the topic `actuator_motors`, saturation is detected there, because its
        // values do not depend on the protocol of the outputs.
        let full = if motors.is_empty() { [FULL_PULSE, MAX_PULSE] } else { [f64::INFINITY; 2] };
        add(topic, names("output[#]"), full);
    }
}

/// Watch of one output, or of the speed of one motor.
struct Output {
    /// Highest value in flight.
    highest: f64,
    /// Lowest value in flight.
    lowest: f64,
    stopped: Holds,
    full: Holds,
}

impl Output {
    const fn new() -> Self {
        Self {
            highest: 0.0,
            lowest: f64::INFINITY,
            stopped: Holds::below(STOP_TIME),
            full: Holds::above(SATURATION_TIME),
        }
    }
}

/// Detects a device whose outputs are 0 in all rows while armed.
struct Silent {
    /// True if any device has had an output other than 0 while armed. All devices share this value.
    any_output: Rc<Cell<bool>>,
    /// True if this device has had an output other than 0 while armed.
    ran: bool,
    /// Number of outputs of the device.
    count: f64,
    /// Times of the first and the last row while armed.
    span: Option<[i64; 2]>,
}

impl Silent {
    fn row(&mut self, time: i64, row: &[f64]) {
        let (outputs, count) = row.split_at(row.len() - 1);
        self.count = count[0];
        self.ran |= outputs.iter().any(|value| *value != 0.0);
        self.any_output.set(self.any_output.get() || self.ran);
        self.span.get_or_insert([time, time])[1] = time;
    }

    /// Adds the finding. Its severity is low, because no motors are connected to most such devices.
    /// But the device may also have failed before the vehicle was armed.
    fn finish(&self, topic: &str, found: &mut Vec<Finding>) {
        let is_silent = self.any_output.get() && !self.ran && self.count > 0.0;
        let Some([start, end]) = self.span.filter(|_| is_silent) else { return };
        let (count, time) = (self.count, seconds(end - start));
        let sentence = format!(
            "All {count} outputs of {topic} were 0 for {time} while armed; other outputs ran, so this device \
             is unused, or its motors stood still."
        );
        let evidence = Evidence::value(format!("{topic}.output[0]"), start, 0.0);
        found.push(Finding::new(Kind::MotorFailure, Severity::Low, start..end, sentence, vec![evidence]));
    }
}

/// Watch of all outputs in a topic.
struct Outputs<'a> {
    flight: &'a Flight,
    /// Lowest and highest value at which a motor is at full power. Both are infinite if saturation
    /// is not checked.
    full: [f64; 2],
    fields: Vec<String>,
    channels: Vec<Output>,
    /// `None` if the topic is not [`OUTPUTS`].
    silent: Option<Silent>,
}

impl Watch for Outputs<'_> {
    fn row(&mut self, time: i64, row: &[f64]) {
        if let Some(silent) = self.silent.as_mut().filter(|_| self.flight.is_armed(time)) {
            silent.row(time, row);
        }
        let is_active = self.flight.is_hovering(time) && self.flight.is_flying(time);
        if is_active {
            for (output, value) in self.channels.iter_mut().zip(row) {
                output.highest = output.highest.max(*value);
                output.lowest = output.lowest.min(*value);
            }
        }
        // An output that was never above 0 has no motor.
        let used = || self.channels.iter().zip(row).filter(|(output, _)| output.highest > 0.0);
        let running = used().filter(|(output, value)| **value > output.highest * RUNNING_RATIO).count();
        let is_only_one = running > 0 && running + 1 == used().count();
        for (output, value) in self.channels.iter_mut().zip(row) {
            let is_stopped = is_active && is_only_one && output.highest > 0.0 && *value == 0.0;
            output.stopped.push(time, Some(*value).filter(|_| is_stopped));
            let is_full = is_active && (self.full[0]..=self.full[1]).contains(value);
            output.full.push(time, Some(*value).filter(|_| is_full));
        }
    }

    fn finish(&mut self, topic: &str, found: &mut Vec<Finding>) {
        if let Some(silent) = &self.silent {
            silent.finish(topic, found);
        }
        for (number, (field, output)) in self.fields.iter().zip(&mut self.channels).enumerate() {
            let signal = format!("{topic}.{field}");
            found.extend(output.stopped.finish().iter().map(|span| {
                let what = if field.ends_with("rpm") { "speed" } else { "output" };
                let time = seconds(span.longest);
                let sentence =
                    format!("The {what} of motor {number} was 0 for {time} in flight, while the others ran.");
                span.finding(Kind::MotorFailure, Severity::High, sentence, signal.clone(), 0.0)
            }));
            // An output that is always at full power is not a motor.
            let full = output.full.finish().into_iter().filter(|_| output.lowest < self.full[0]);
            found.extend(full.map(|span| {
                let sentence = format!("Motor {number} was at full power for {}.", seconds(span.longest));
                span.finding(Kind::MotorSaturation, Severity::Medium, sentence, signal.clone(), self.full[0])
            }));
        }
    }
}
