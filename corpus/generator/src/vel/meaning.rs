//! Cases about inferred conventions: positions, UTC, and orientation.

use super::prelude::*;

cases! {
    "gps-degrees" [D16] "a drive in degrees: the way between fixes is that of the speed" =>
        drive("degrees", |degrees| degrees);
    "gps-ddmm" [D16] "degrees and minutes in one number" =>
        drive("ddmm.mmmm", |degrees| 100.0 * degrees.trunc() + 60.0 * degrees.fract());
    "gps-radians" [D16] "radians" => drive("radians", f64::to_radians);
    "gps-quality" [D18 D19] "only fixes of a quality other than 0 count; a warning does not matter" =>
        Log::new().gps(0.0, Position { quality: 0, warning: 1, latitude: 9000.0, ..position(50) })
            .each((0..).zip([1, 2, 6, 4, 99]), |log, (second, quality)| {
                let place = Position { quality, warning: second % 2, ..position(second) };
                log.gps(1000.0 * f64::from(second), place)
            })
            .gps(9000.0, Position { latitude: 0.0, quality: 0, ..position(30) })
            .assumed("position_unit", "degrees").utc(NOON);
    "gps-two-digit-years" [D17] "years of two digits" =>
        each_second(0..3, |second| Position { date: (14, 6, 10), ..position(second) }).utc(NOON);
    "gps-late-fixes" [D34] "whole seconds, late: the median is the offset" =>
        Log::new().assumed("position_unit", "degrees")
            .each((0..).zip([20.0, 30.0, 20.0, 90.0, 25.0]), |log, (second, late)| {
                log.gps(1000.0 * f64::from(second) + late, position(second))
            })
            // The offsets are -20, -30, -20, -90 and -25 ms, so the median is -25 ms.
            .utc(NOON - 25_000_000);
    "gps-date-lags" [D34] "a date that changes a second after midnight" => {
        let place = |second: i32| {
            let (hour, minute, shown) = if second < 2 { (23, 59, 58 + second) } else { (0, 0, second - 2) };
            let day = if second < 3 { 14 } else { 15 };
            Position { time: (hour, minute, shown), date: (day, 6, 2010), ..position(0) }
        };
        each_second(0..2, place).note("date_unwrapped")
            .each(2..6, |log, second| log.gps(1000.0 * f64::from(second), place(second)))
            // 2010-06-14T23:59:58Z.
            .utc(1_276_559_998_000_000_000)
    };
    "gps-times-of-noise" [D34] "times so far apart that their distance passes 64 bits" =>
        // Two messages are 222 years before the start of the program, and the others as long after
        // it.
        Log::new().no_index().assumed("position_unit", "degrees")
            .each([(0, -7e12), (0, -7e12)], |log, (second, millis)| log.gps(millis, position(second)))
            .note("stale_times").gps(7e12, position(2))
            .data_between(-7_000_000_000_000_000_000, -7_000_000_000_000_000_000)
            .utc(NOON + 7_000_000_000_000_000_000);
    "gps-no-date" [D34] "the time of day alone places nothing" =>
        each_second(0..3, |second| Position { date: (0, 0, 0), ..position(second) }).assumed("utc", "none");
    "pose-wxyz" [D20] "w, x, y, z, body to world" => poses("wxyz body_to_world", |q| q);
    "pose-xyzw" [D20] "x, y, z, w" => poses("xyzw body_to_world", |[w, x, y, z]| [x, y, z, w]);
    "pose-world-to-body" [D20] "the other direction" => poses("wxyz world_to_body", |[w, x, y, z]| [w, -x, -y, -z]);
    "pose-at-rest" [D20] "nothing tells the order: the default" => still([0.0, 0.0, 9.81], "m/s2");
    "acceleration-in-g" [D33] "accelerations of about 1" => still([0.0, 0.02, 1.0], "g");
    "acceleration-without-gravity" [D33] "accelerations of about 0" =>
        still([0.0, 0.01, 0.02], "m/s2 without gravity");
}

/// Unix time in nanoseconds of 2010-06-14T12:34:00Z.
const NOON: i64 = 1_276_518_840_000_000_000;

/// Returns a log with a position per second. Readers assume degrees, because the positions do not
/// determine the unit.
fn each_second(seconds: std::ops::Range<i32>, place: impl Fn(i32) -> Position) -> Log {
    let log = Log::new().assumed("position_unit", "degrees");
    log.each(seconds, |log, second| log.gps(1000.0 * f64::from(second), place(second)))
}

/// Returns a drive to the north at 30 m/s for eight seconds. It starts at 1° north and 0.5° east.
fn drive(unit: &str, store: fn(f64) -> f64) -> Log {
    let place = |second: i32| {
        let degrees = 1.0 + f64::from(second) * (30.0_f64 / 6_371_000.0).to_degrees();
        Position { latitude: store(degrees), longitude: store(0.5), speed: 108.0, ..position(second) }
    };
    each_second(0..8, place).choice("position_unit", unit).utc(NOON)
}

/// Returns a log of a vehicle that rolls and pitches. Each pose has the acceleration that gravity
/// causes.
fn poses(reading: &str, store: fn([f32; 4]) -> [f32; 4]) -> Log {
    let log = Log::new().choice("quaternion", reading).choice("acceleration_unit", "m/s2");
    log.each(0..40_u8, |log, i| {
        let roll = 0.4 * (f64::from(i) * 0.3).sin();
        let pitch = 0.3 * (f64::from(i) * 0.17).cos();
        let ((sin_r, cos_r), (sin_p, cos_p)) = ((roll / 2.0).sin_cos(), (pitch / 2.0).sin_cos());
        // The rotation from the body to the world is a pitch about y, followed by a roll about x: q
        // = q_pitch * q_roll.
        let q = [cos_p * cos_r, cos_p * sin_r, sin_p * cos_r, -sin_p * sin_r];
        // The direction up in the axes of the body is the third row of the rotation matrix.
        let up = [
            2.0 * (q[1] * q[3] - q[0] * q[2]),
            2.0 * (q[2] * q[3] + q[0] * q[1]),
            1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2]),
        ];
        #[expect(clippy::cast_possible_truncation, reason = "stored in 32 bits")]
        let narrow = |x: f64| x as f32;
        log.pose(20.0 * f64::from(i), store(q.map(narrow)), up.map(|x| narrow(9.81 * x)))
    })
}

fn still(a: [f32; 3], unit: &str) -> Log {
    let log = Log::new().assumed("quaternion", "wxyz body_to_world").choice("acceleration_unit", unit);
    log.each(0..5, |log, i| log.pose(20.0 * f64::from(i), [1.0, 0.0, 0.0, 0.0], a))
}
