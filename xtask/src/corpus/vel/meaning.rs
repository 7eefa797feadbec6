//! What numbers mean, as far as the file tells: positions, UTC, orientation.

use super::kinds::{Position, position};
use super::log::{Index, Log};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel(
        "gps-degrees",
        "a drive in degrees: the way between fixes is that of the speed",
        &["D16"],
        || drive("degrees", |degrees| degrees),
    ),
    Case::vel("gps-ddmm", "degrees and minutes in one number", &["D16"], || {
        drive("ddmm.mmmm", |degrees| 100.0 * degrees.trunc() + 60.0 * degrees.fract())
    }),
    Case::vel("gps-radians", "radians", &["D16"], || drive("radians", f64::to_radians)),
    Case::vel(
        "gps-quality",
        "only fixes of a quality other than 0 count; a warning does not matter",
        &["D18", "D19"],
        quality,
    ),
    Case::vel("gps-two-digit-years", "years of two digits", &["D17"], two_digits),
    Case::vel("gps-late-fixes", "whole seconds, late: the median is the offset", &["D34"], late),
    Case::vel("gps-date-lags", "a date that changes a second after midnight", &["D34"], date_lags),
    Case::vel("gps-times-of-noise", "times so far apart that their distance passes 64 bits", &["D34"], noise),
    Case::vel("gps-no-date", "the time of day alone places nothing", &["D34"], no_date),
    Case::vel("pose-wxyz", "w, x, y, z, body to world", &["D20"], || poses("wxyz body_to_world", |q| q)),
    Case::vel("pose-xyzw", "x, y, z, w", &["D20"], || {
        poses("xyzw body_to_world", |[w, x, y, z]| [x, y, z, w])
    }),
    Case::vel("pose-world-to-body", "the other direction", &["D20"], || {
        poses("wxyz world_to_body", |[w, x, y, z]| [w, -x, -y, -z])
    }),
    Case::vel("pose-at-rest", "nothing tells the order: the default", &["D20"], at_rest),
    Case::vel("acceleration-in-g", "accelerations of about 1", &["D33"], in_g),
    Case::vel("acceleration-without-gravity", "accelerations of about 0", &["D33"], no_gravity),
];

/// 2010-06-14T12:34:00Z.
const NOON: i64 = 1_276_518_840_000_000_000;

/// 30 m/s to the north for eight seconds, near 1 degree north and 0.5 east.
fn drive(unit: &str, store: fn(f64) -> f64) -> Made {
    let mut log = Log::new();
    for second in 0..8 {
        let degrees = 1.0 + f64::from(second) * (30.0_f64 / 6_371_000.0).to_degrees();
        let place =
            Position { latitude: store(degrees), longitude: store(0.5), speed: 108.0, ..position(second) };
        log.gps(1000.0 * f64::from(second), &place);
    }
    log.choice("position_unit", unit, false);
    log.choice("utc", "gps", false);
    log.utc(NOON);
    log.finish()
}

fn quality() -> Made {
    let mut log = Log::new();
    log.gps(0.0, &Position { quality: 0, warning: 1, latitude: 9000.0, ..position(50) });
    for (i, quality) in [1, 2, 6, 4, 99].into_iter().enumerate() {
        let second = i32::try_from(i).expect("small");
        let place = Position { quality, warning: second % 2, ..position(second) };
        log.gps(1000.0 * f64::from(second), &place);
    }
    log.gps(9000.0, &Position { latitude: f64::NAN, ..position(30) }.finite());
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    log.utc(NOON);
    log.finish()
}

impl Position {
    /// JSON has no NaN for 64 bits either: such a fix is marked by its quality.
    fn finite(mut self) -> Self {
        (self.latitude, self.quality) = (0.0, 0);
        self
    }
}

fn two_digits() -> Made {
    let mut log = Log::new();
    for second in 0..3 {
        log.gps(1000.0 * f64::from(second), &Position { date: (14, 6, 10), ..position(second) });
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    log.utc(NOON);
    log.finish()
}

fn late() -> Made {
    let mut log = Log::new();
    for (second, late) in [(0, 20.0), (1, 30.0), (2, 20.0), (3, 90.0), (4, 25.0)] {
        log.gps(1000.0 * f64::from(second) + late, &position(second));
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    // Offsets of -20, -30, -20, -90 and -25 ms: the middle one is -25.
    log.utc(NOON - 25_000_000);
    log.finish()
}

fn date_lags() -> Made {
    let mut log = Log::new();
    for second in 0..6 {
        let (hour, minute, shown) = if second < 2 { (23, 59, 58 + second) } else { (0, 0, second - 2) };
        let day = if second < 3 { 14 } else { 15 };
        let place = Position { time: (hour, minute, shown), date: (day, 6, 2010), ..position(0) };
        if second == 2 {
            log.note("date_unwrapped", log.at());
        }
        log.gps(1000.0 * f64::from(second), &place);
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    // 2010-06-14T23:59:58Z.
    log.utc(1_276_559_998_000_000_000);
    log.finish()
}

fn noise() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    // 222 years before the program started, twice; and as long behind it.
    for (second, millis) in [(0, -7e12), (0, -7e12), (2, 7e12)] {
        log.gps(millis, &position(second));
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "gps", false);
    log.utc(NOON + 7_000_000_000_000_000_000);
    log.finish()
}

fn no_date() -> Made {
    let mut log = Log::new();
    for second in 0..3 {
        log.gps(1000.0 * f64::from(second), &Position { date: (0, 0, 0), ..position(second) });
    }
    log.choice("position_unit", "degrees", true);
    log.choice("utc", "none", true);
    log.finish()
}

/// A vehicle that rolls and pitches, each pose with the gravity it feels.
fn poses(reading: &str, store: fn([f32; 4]) -> [f32; 4]) -> Made {
    let mut log = Log::new();
    for i in 0..40_u8 {
        let roll = 0.4 * (f64::from(i) * 0.3).sin();
        let pitch = 0.3 * (f64::from(i) * 0.17).cos();
        let ((sin_r, cos_r), (sin_p, cos_p)) = ((roll / 2.0).sin_cos(), (pitch / 2.0).sin_cos());
        // Roll about x after pitch about y, body to world: q = q_pitch * q_roll.
        let q = [cos_p * cos_r, cos_p * sin_r, sin_p * cos_r, -sin_p * sin_r];
        // What points up in the world, in the body: the third row of the rotation.
        let up = [
            2.0 * (q[1] * q[3] - q[0] * q[2]),
            2.0 * (q[2] * q[3] + q[0] * q[1]),
            1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2]),
        ];
        #[expect(clippy::cast_possible_truncation, reason = "stored in 32 bits")]
        let narrow = |x: f64| x as f32;
        log.pose(20.0 * f64::from(i), store(q.map(narrow)), up.map(|x| narrow(9.81 * x)));
    }
    log.choice("quaternion", reading, false);
    log.choice("acceleration_unit", "m/s2", false);
    log.finish()
}

fn still(a: [f32; 3], unit: &str) -> Made {
    let mut log = Log::new();
    for i in 0..5 {
        log.pose(20.0 * f64::from(i), [1.0, 0.0, 0.0, 0.0], a);
    }
    log.choice("quaternion", "wxyz body_to_world", true);
    log.choice("acceleration_unit", unit, false);
    log.finish()
}

fn at_rest() -> Made {
    still([0.0, 0.0, 9.81], "m/s2")
}

fn in_g() -> Made {
    still([0.0, 0.02, 1.0], "g")
}

fn no_gravity() -> Made {
    still([0.0, 0.01, 0.02], "m/s2 without gravity")
}
