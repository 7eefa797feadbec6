//! Totals and spectra of logs that the tests write. The expected values follow from what is written.

#[path = "common/flight.rs"]
mod flight;

use std::io::Cursor;

use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, encode_row};
use rovelog::{AnyLog, ReadOptions};
use rovelog_export::plot::{self, Picture, Theme, Wanted};
use rovelog_export::report;
use rovelog_export::signal::Signals;
use rovelog_export::totals::{Group, totals};
use rovelog_testing::root;

use flight::Flight;

fn open(bytes: Vec<u8>) -> AnyLog {
    rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap()
}

/// Returns the value of a total, in its unit.
fn value(groups: &[Group], group: &str, name: &str) -> Option<(f64, &'static str)> {
    let group = groups.iter().find(|known| known.name == group)?;
    let total = group.totals.iter().find(|total| total.name == name)?;
    Some((total.value, total.unit))
}

#[test]
fn totals_of_a_flight() {
    let mut flight = Flight::default();
    // Armed from 10 s to 50 s, and in the air from 20 s to 40 s.
    for (second, armed) in [(0.0, 1.0), (10.0, 2.0), (50.0, 1.0)] {
        flight.row(second, "vehicle_status", &[("arming_state", armed)]);
    }
    for (second, landed) in [(0.0, 1.0), (20.0, 0.0), (40.0, 1.0), (60.0, 1.0)] {
        flight.row(second, "vehicle_land_detected", &[("landed", landed)]);
    }
    // 3 m north and 4 m east, then 12 m up. A position that is not valid interrupts the path.
    let positions =
        [([0.0, 0.0, 0.0], 1.0), ([3.0, 4.0, 0.0], 1.0), ([3.0, 4.0, -12.0], 1.0), ([900.0, 0.0, 0.0], 0.0)];
    for (number, ([x, y, z], valid)) in positions.into_iter().enumerate() {
        let mut values = vec![("x", x), ("y", y), ("z", z), ("vx", 3.0), ("vy", 4.0), ("vz", -12.0)];
        values.extend(["xy_valid", "z_valid", "v_xy_valid", "v_z_valid"].map(|name| (name, valid)));
        flight.row(20.0 + number as f64, "vehicle_local_position", &values);
    }
    // A roll of 60°.
    let half = 30f64.to_radians();
    let q = [("q[0]", half.cos()), ("q[1]", half.sin()), ("q[2]", 0.0), ("q[3]", 0.0)];
    flight.row(20.0, "vehicle_attitude", &q);
    for second in 20..=30 {
        flight.row(f64::from(second), "battery_status", &[("voltage_v", 10.0), ("current_a", 36.0)]);
    }
    let groups = totals(&flight.log()).unwrap();
    let close = |found: Option<(f64, &str)>, expected: f64, unit: &str| {
        let (value, found) = found.unwrap();
        assert!(
            (value - expected).abs() < 1e-4 && found == unit,
            "{value} {found}, expected {expected} {unit}"
        );
    };
    close(value(&groups, "flight", "time"), 20.0, "s");
    close(value(&groups, "flight", "distance"), 17.0, "m");
    close(value(&groups, "flight", "altitude difference"), 12.0, "m");
    close(value(&groups, "flight", "max speed"), 13.0, "m/s");
    close(value(&groups, "flight", "max tilt"), 60.0, "°");
    // 36 A for 10 s are 0.1 Ah, and with 10 V 1 Wh.
    close(value(&groups, "battery_status/0", "mean current"), 36.0, "A");
    close(value(&groups, "battery_status/0", "charge"), 0.1, "Ah");
    close(value(&groups, "battery_status/0", "energy"), 1.0, "Wh");
    let flight = groups.iter().find(|group| group.name == "flight").unwrap();
    assert!(flight.text().starts_with("time 20.0s, distance 17.0 m, "), "{}", flight.text());
}

/// Without a voltage, the energy of an interval is unknown, but its charge is known.
#[test]
fn a_missing_voltage_does_not_change_the_charge() {
    let mut flight = Flight::default();
    for (second, volts) in [(20.0, 10.0), (21.0, f64::NAN), (22.0, 10.0), (23.0, 10.0)] {
        flight.row(second, "battery_status", &[("voltage_v", volts), ("current_a", 36.0)]);
    }
    let groups = totals(&flight.log()).unwrap();
    let found = ["charge", "energy"].map(|name| value(&groups, "battery_status/0", name).unwrap().0);
    assert!((found[0] - 0.03).abs() < 1e-9 && (found[1] - 0.1).abs() < 1e-9, "{found:?}");
}

#[test]
fn totals_of_sensors() {
    let of = |name: &str| totals(&rovelog::open(root().join("corpus").join(name)).unwrap()).unwrap();
    let fix = of("rosbag/robot.bag");
    assert_eq!(fix.iter().map(|group| &*group.name).collect::<Vec<_>>(), ["/fix"]);
    assert!(value(&fix, "/fix", "distance").unwrap().0 > 0.0);
    let power = of("rld/v4.rld");
    assert_eq!(value(&power, "I1", "charge").unwrap().1, "C");
    assert_eq!(value(&power, "V1*I1", "energy").unwrap().1, "J");
    assert_eq!(of("ulog/one-topic.ulg"), []);
}

/// Writes a power log of 8 s at 1 kHz with a sine of 125 Hz.
fn sine() -> AnyLog {
    let channels = vec![ChannelSpec::analog("V1", Unit::Volt, -6)];
    let spec = LogSpec { channels, ..LogSpec::new(1000) };
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    let layout = writer.layout().clone();
    for block in 0..8_u32 {
        let mut rows = Vec::new();
        for row in 0..1000 {
            let angle = std::f64::consts::TAU * 125.0 * f64::from(1000 * block + row) / 1000.0;
            #[expect(clippy::cast_possible_truncation, reason = "at most a million")]
            encode_row(&layout, &[], &[(angle.sin() * 1e6) as i64], &mut rows).unwrap();
        }
        let nanos = 1_500_000_000_000_000_000 + i128::from(block) * 1_000_000_000;
        writer.block(&BlockTimes::new(nanos, nanos).unwrap(), &rows).unwrap();
    }
    open(writer.finish_in_place().unwrap().0.into_inner())
}

#[test]
fn the_spectrum_of_a_sine_has_one_peak() {
    let log = sine();
    let span = report::span(&log).unwrap();
    let draw = |arguments: &[&str]| {
        let signals = Signals::new(&*log);
        let wanted: Vec<Wanted> =
            arguments.iter().map(|argument| Wanted::new(&signals, argument).unwrap()).collect();
        plot::draw(&*log, &wanted, span, 1000)
    };
    let density = draw(&["psd(V1)"]).unwrap();
    assert!(density.shows_frequencies() && density.panels.len() == 1);
    let points = &density.panels[0].series[0].points;
    let peak = points.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    assert!(
        (peak.0 - 125.0).abs() < 1.0 && (density.span.1 - 500.0).abs() < 1.0,
        "{peak:?} {:?}",
        density.span
    );
    let far = points.iter().filter(|point| (point.0 - 125.0).abs() > 20.0).map(|point| point.1);
    assert!(far.fold(f64::NEG_INFINITY, f64::max) < peak.1 - 60.0);
    // A spectrogram has the same time axis as the signal, so they can be in one plot.
    let both = draw(&["spectrogram(V1)", "V1"]).unwrap();
    assert!(!both.shows_frequencies() && both.panels.len() == 2);
    let svg = plot::svg(&both, &Picture { width: 800, height: None, dpi: 96, theme: Theme::Light });
    assert!(
        svg.contains("spectrogram(samples.V1)") && svg.contains("fill=\"#fde725\""),
        "no cell of the highest density"
    );
    assert!(plot::terminal(&both, 80, 12, None).contains('█'));
    let error = draw(&["psd(V1)", "V1"]).unwrap_err().to_string();
    assert!(error.contains("V1 cannot be in the same plot as psd(V1)"), "{error}");
}
