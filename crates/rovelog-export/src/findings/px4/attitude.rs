//! Finds attitude failures of multicopters.

use rovelog::Topic;
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::roll_pitch_yaw;

use super::flight::Flight;
use super::{SECOND, recordings};
use crate::findings::scan::Scan;
use crate::findings::watch::{Holds, Span};
use crate::findings::{Evidence, Finding, Kind, Severity, digits, seconds};

/// Roll or pitch in degrees above which PX4's failure detector reports an attitude failure. Source:
/// default of the parameters `FD_FAIL_R` and `FD_FAIL_P`. The default is also used if a parameter
/// is 0, which turns the failure detector off.
const MAX_ANGLE: f64 = 60.0;

/// Time in seconds for which the angle must exceed the limit. Source: default of PX4's parameters
/// `FD_FAIL_R_TTRI` and `FD_FAIL_P_TTRI`.
const MIN_SECONDS: f64 = 0.3;

/// Roll and pitch: name of the axis, parameter with the maximum angle, and parameter with the time.
const AXES: [[&str; 3]; 2] =
    [["roll", "FD_FAIL_R", "FD_FAIL_R_TTRI"], ["pitch", "FD_FAIL_P", "FD_FAIL_P_TTRI"]];

/// Adds the checks of the attitude.
pub(super) fn add<'a>(log: &UlogReader, flight: &'a Flight, scan: &mut Scan<'a>) {
    // The vehicle is controlled by the attitude in the first instance.
    for topic in recordings(log, "vehicle_attitude") {
        (0..AXES.len()).for_each(|axis| add_axis(topic, axis, flight, scan));
    }
}

/// Adds the check of an axis, which is an index into [`AXES`].
fn add_axis<'a>(topic: &Topic, axis: usize, flight: &'a Flight, scan: &mut Scan<'a>) {
    let [name, angle, time] = AXES[axis];
    let limit = flight.parameter(angle).filter(|limit| *limit > 0.0).unwrap_or(MAX_ANGLE);
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let min = (flight.parameter(time).unwrap_or(MIN_SECONDS) * SECOND as f64) as i64;
    let test = move |time: i64, q: &[f64]| {
        #[expect(clippy::cast_possible_truncation, reason = "PX4 logs 32 bits")]
        let angles = roll_pitch_yaw([q[0] as f32, q[1] as f32, q[2] as f32, q[3] as f32]);
        let angle = f64::from(angles[axis]).to_degrees().abs();
        (angle > limit && flight.is_hovering(time) && !flight.is_acro(time)).then_some(angle)
    };
    let report = move |topic: &str, span: &Span| {
        let sentence = format!(
            "The {name} angle exceeded {}° for {} and reached {}°, so the vehicle was out of control.",
            digits(limit),
            seconds(span.longest),
            digits(span.worst.value),
        );
        // The signal is in radians.
        let value = span.worst.value.to_radians();
        let evidence = Evidence::value(format!("{topic}.q.{name}"), span.worst.time, value)
            .with_limit(limit.to_radians());
        Finding::new(Kind::AttitudeFailure, Severity::High, span.start..span.end, sentence, vec![evidence])
    };
    scan.check(topic, ["q[0]", "q[1]", "q[2]", "q[3]"], Holds::above(min), test, report);
}
