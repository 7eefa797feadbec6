//! Findings of logs: problems that each rule must find, and logs in which it must not.

#[path = "common/flight.rs"]
mod flight;

use std::collections::BTreeMap;

use rovelog::ReadOptions;
use rovelog_export::findings::{Finding, Kind, Severity, findings};
use rovelog_testing::{RLD, ULOG, VEL, skipped};

use flight::{Flight, short};

/// Returns `low` from `from` to `to`, and `normal` at other times.
fn pulse(normal: f64, low: f64, from: f64, to: f64) -> impl Fn(f64) -> f64 {
    move |time| if (from..to).contains(&time) { low } else { normal }
}

#[test]
fn a_low_voltage_is_a_brownout_and_a_short_drop_is_a_sag() {
    let battery = |volts: fn(f64) -> f64| {
        Flight::new().every("battery_status", 0..90, move |time| [("voltage_v", volts(time))]).findings()
    };
    // The first voltage is that of four cells, so the limit is 13.2 V.
    assert_eq!(battery(|time| pulse(16.0, 12.5, 40.0, 43.05)(time)), ["high battery-brownout 40 43"]);
    assert_eq!(battery(|time| pulse(16.0, 12.5, 40.0, 40.35)(time)), ["medium battery-sag 40 40.3"]);
    assert_eq!(battery(|time| pulse(16.0, 13.3, 40.0, 43.0)(time)), [""; 0]);
    // The vehicle is not yet armed.
    assert_eq!(battery(|time| pulse(16.0, 12.5, 0.1, 0.9)(time)), [""; 0]);
    let unconnected =
        Flight::new().every("battery_status", 0..90, |_| [("voltage_v", 0.05), ("connected", 0.0)]);
    assert_eq!(unconnected.findings(), ["medium battery-brownout 1 89.9"]);
}

#[test]
fn warnings_of_the_battery_have_the_severity_of_their_level() {
    let flight = Flight::new().every("battery_status", 0..90, |time| {
        [("voltage_v", 16.0), ("warning", pulse(0.0, 2.0, 50.0, 60.05)(time))]
    });
    assert_eq!(flight.findings(), ["medium battery-low 50 60"]);
}

/// The parameters `BAT1_*` are those of the battery with instance 0.
#[test]
fn each_battery_has_its_own_number_of_cells() {
    let battery = |topic, parameters: &[(&'static str, f32)]| {
        let volts = |_| [("voltage_v", 11.0)];
        let mut flight = Flight::new().every(topic, 0..90, volts);
        flight.parameters = parameters.to_vec();
        flight.findings().len()
    };
    assert_eq!(battery("battery_status", &[("BAT1_N_CELLS", 6.0)]), 1);
    assert_eq!(battery("battery_status/1", &[("BAT1_N_CELLS", 6.0), ("BAT2_N_CELLS", 3.0)]), 0);
    assert_eq!(battery("battery_status/1", &[("BAT1_N_CELLS", 3.0), ("BAT2_N_CELLS", 6.0)]), 1);
}

/// The instance of a topic is in its name. Instance 1 may be the only one in the log.
#[test]
fn measurements_of_the_used_estimator_are_severe() {
    let estimator = |used: f64| {
        let ratio = pulse(0.3, 2.0, 10.0, 16.05);
        let mut flight =
            Flight::new().every("estimator_status/1", 0..90, move |time| [("vel_test_ratio", ratio(time))]);
        flight.row(0.0, "estimator_selector_status", &[("primary_instance", used)]);
        flight.findings()
    };
    assert_eq!(estimator(1.0), ["high ekf-innovation 10 16"]);
    assert_eq!(estimator(0.0), ["low ekf-innovation 10 16"]);
    // PX4 switches to the instance while it rejects measurements.
    let ratio = pulse(0.3, 2.0, 10.0, 16.05);
    let mut flight =
        Flight::new().every("estimator_status/1", 0..90, move |time| [("vel_test_ratio", ratio(time))]);
    flight.row(0.0, "estimator_selector_status", &[("primary_instance", 0.0)]);
    flight.row(11.0, "estimator_selector_status", &[("primary_instance", 1.0)]);
    assert_eq!(flight.findings(), ["high ekf-innovation 10 16"]);
}

/// A log from which nothing could be read has a finding, although it has no times.
#[test]
fn a_log_of_which_everything_is_lost_has_a_finding() {
    for name in ["rosbag/v2.0+encrypted.bag", "rld/cut-to-header.rld", "vel/cut-in-only-message.vel"] {
        let path = rovelog_testing::root().join("corpus").join(name);
        let log = rovelog::open(path).unwrap();
        let found = findings(&log).unwrap();
        assert!(found.iter().any(|finding| finding.kind == Kind::LostBytes), "{name}: {found:?}");
    }
}

#[test]
fn rejected_measurements_become_severe_after_five_seconds() {
    let estimator = |from: f64, to: f64, ratio: f64| {
        let ratio = pulse(0.3, ratio, from, to);
        let flight =
            Flight::new().every("estimator_status", 0..90, move |time| [("vel_test_ratio", ratio(time))]);
        flight.findings()
    };
    assert_eq!(estimator(10.0, 13.05, 1.5), ["medium ekf-innovation 10 13"]);
    assert_eq!(estimator(10.0, 16.05, 2.0), ["high ekf-innovation 10 16"]);
    assert_eq!(estimator(10.0, 11.55, 1.5), [""; 0]);
}

#[test]
fn jumps_of_the_estimate_count_in_flight() {
    let flight = Flight::new().every("vehicle_local_position", 0..90, |time| {
        let counter = if time < 20.0 {
            1.0
        } else if time < 40.0 {
            2.0
        } else {
            3.0
        };
        let size = if time < 40.0 { 0.4 } else { 8.0 };
        [("xy_reset_counter", counter), ("delta_xy[0]", size), ("delta_xy[1]", 0.0)]
    });
    assert_eq!(flight.findings(), ["medium ekf-reset 40 40"]);
}

#[test]
fn gps_problems_are_severe_only_if_there_was_a_position() {
    let gps = |fix: f64, eph: fn(f64) -> f64, satellites: fn(f64) -> f64| {
        let flight = Flight::new().every("vehicle_gps_position", 0..90, move |time| {
            [("eph", eph(time)), ("epv", 1.0), ("satellites_used", satellites(time)), ("fix_type", fix)]
        });
        flight.findings()
    };
    let spike = |time| pulse(1.0, 8.0, 30.0, 31.05)(time);
    assert_eq!(gps(3.0, spike, |_| 12.0), ["medium gps-interference 30 31"]);
    assert_eq!(
        gps(3.0, |time| pulse(1.0, 15.0, 30.0, 31.05)(time), |_| 12.0),
        ["high gps-interference 30 31"]
    );
    assert_eq!(
        gps(3.0, |_| 1.5, |time| pulse(12.0, 3.0, 30.0, 31.05)(time)),
        ["high gps-interference 30 31"]
    );
    assert_eq!(gps(0.0, spike, |_| 12.0), ["low gps-interference 30 31"]);
    let lost = |until: f64| {
        let fix = pulse(3.0, 0.0, 30.0, until);
        let flight = Flight::new().every("vehicle_gps_position", 0..90, move |time| {
            [("eph", if fix(time) == 0.0 { 99.0 } else { 1.0 }), ("fix_type", fix(time))]
        });
        flight.findings()
    };
    // The large error is a consequence of the loss, so it is not a finding of its own.
    assert_eq!(lost(32.05), ["medium gps-loss 30 32"]);
    assert_eq!(lost(40.05), ["high gps-loss 30 40"]);
    let jammed = Flight::new().every("sensor_gps", 0..90, |time| {
        [("eph", 1.0), ("fix_type", 3.0), ("jamming_state", pulse(1.0, 3.0, 50.0, 51.05)(time))]
    });
    assert_eq!(jammed.findings(), ["medium gps-interference 50 51"]);
}

/// Returns the roll angle `degrees` as a quaternion.
fn roll(degrees: f64) -> [(&'static str, f64); 4] {
    let (sin, cos) = (degrees.to_radians() / 2.0).sin_cos();
    [("q[0]", cos), ("q[1]", sin), ("q[2]", 0.0), ("q[3]", 0.0)]
}

#[test]
fn a_large_angle_is_an_attitude_failure_except_in_acro() {
    let attitude = |flight: Flight, length: f64| {
        let angle = pulse(5.0, 95.0, 30.0, 30.0 + length);
        flight.every("vehicle_attitude", 0..90, |time| roll(angle(time))).findings()
    };
    assert_eq!(attitude(Flight::new(), 0.95), ["high attitude-failure 30 30.9"]);
    assert_eq!(attitude(Flight::new(), 0.25), [""; 0]);
    let mut acro = Flight::new();
    acro.row(20.0, "vehicle_status", &[("arming_state", 2.0), ("nav_state", 10.0), ("vehicle_type", 1.0)]);
    assert_eq!(attitude(acro, 0.95), [""; 0]);
    let mut fixed_wing = Flight::new();
    fixed_wing.row(
        20.0,
        "vehicle_status",
        &[("arming_state", 2.0), ("nav_state", 2.0), ("vehicle_type", 2.0)],
    );
    assert_eq!(attitude(fixed_wing, 0.95), [""; 0]);
}

#[test]
fn a_motor_that_stops_alone_has_failed() {
    let outputs = |first: fn(f64) -> f64, second: fn(f64) -> f64| {
        let flight = Flight::new().every("actuator_outputs", 0..90, move |time| {
            [
                ("noutputs", 4.0),
                ("output[0]", first(time)),
                ("output[1]", second(time)),
                ("output[2]", 1500.0),
                ("output[3]", 0.0),
            ]
        });
        flight.findings()
    };
    assert_eq!(
        outputs(|_| 1500.0, |time| pulse(1500.0, 0.0, 30.0, 31.05)(time)),
        ["high motor-failure 30 31"]
    );
    let off = |time| pulse(1500.0, 0.0, 30.0, 31.05)(time);
    assert_eq!(outputs(off, off), [""; 0]);
    assert_eq!(
        outputs(|_| 1500.0, |time| pulse(1500.0, 1950.0, 30.0, 36.05)(time)),
        ["medium motor-saturation 30 36"]
    );
    assert_eq!(outputs(|_| 1950.0, |_| 1500.0), [""; 0]);
}

/// The pusher of a VTOL runs in a transition, and stands still while the vehicle hovers.
#[test]
fn the_pusher_of_a_vtol_has_not_failed() {
    let outputs = |transition: f64| {
        let mut flight = Flight::default();
        for (time, armed, change) in
            [(0.0, 1.0, 0.0), (1.0, 2.0, 0.0), (20.0, 2.0, transition), (30.0, 2.0, 0.0)]
        {
            let fields = [
                ("arming_state", armed),
                ("nav_state", 2.0),
                ("vehicle_type", 1.0),
                ("in_transition_mode", change),
            ];
            flight.row(time, "vehicle_status", &fields);
        }
        flight.row(1.0, "vehicle_land_detected", &[("landed", 0.0)]);
        let pusher = pulse(0.0, 1500.0, 20.05, 29.95);
        let flight = flight.every("actuator_outputs", 2..60, move |time| {
            [("noutputs", 3.0), ("output[0]", 1500.0), ("output[1]", 1500.0), ("output[2]", pusher(time))]
        });
        flight.findings()
    };
    assert_eq!(outputs(1.0), [""; 0]);
    // Without a transition, the same outputs are those of a motor that stopped.
    assert_eq!(outputs(0.0), ["high motor-failure 30 59.9"]);
}

/// The second of two recordings in a file has findings too. If its times overlap with those of the
/// first, the state of the flight at a time is unknown.
#[test]
fn the_second_recording_has_findings() {
    let roll = |shift: f64| {
        let mut flight = Flight::new();
        for row in &mut flight.rows {
            row.time += shift;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
        let start = shift as u32;
        flight.every("vehicle_attitude", start..start + 90, move |time| {
            roll(pulse(0.0, 70.0, shift + 30.0, shift + 31.05)(time))
        })
    };
    let both = |shift: f64| {
        let bytes = [roll(0.0).bytes(), roll(shift).bytes()].concat();
        let log = rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap();
        findings(&log).unwrap().iter().map(short).collect::<Vec<_>>()
    };
    let first = "high attitude-failure 30 31".to_owned();
    assert_eq!(both(200.0), [first.clone(), "high attitude-failure 230 231".to_owned()]);
    assert_eq!(both(50.0), [first]);
}

#[test]
fn a_lost_remote_control_counts_if_it_was_there() {
    let radio = |from: f64, to: f64| {
        let lost = pulse(0.0, 1.0, from, to);
        Flight::new().every("input_rc", 0..90, |time| [("rc_lost", lost(time))]).findings()
    };
    assert_eq!(radio(30.0, 32.05), ["medium rc-loss 30 32"]);
    assert_eq!(radio(30.0, 36.05), ["high rc-loss 30 36"]);
    assert_eq!(radio(30.0, 30.25), [""; 0]);
    assert_eq!(radio(0.0, 90.0), [""; 0]);
}

#[test]
fn a_kill_counts_in_flight_only() {
    let kill = |landed: f64| {
        let mut flight = Flight::new();
        flight.row(30.0, "vehicle_land_detected", &[("landed", landed)]);
        let kill = pulse(0.0, 1.0, 40.0, 90.0);
        flight.every("actuator_armed", 0..90, |time| [("manual_lockdown", kill(time))]).findings()
    };
    assert_eq!(kill(0.0), ["high kill 40 40"]);
    assert_eq!(kill(1.0), [""; 0]);
}

#[test]
fn a_failsafe_names_its_cause() {
    let mut flight = Flight::default();
    let status = [(0.0, 1.0, 2.0, 0.0), (1.0, 2.0, 2.0, 0.0), (40.0, 2.0, 5.0, 1.0), (50.0, 2.0, 2.0, 0.0)];
    for (time, armed, mode, failsafe) in status {
        let values = [("arming_state", armed), ("nav_state", mode), ("failsafe", failsafe)];
        flight.row(time, "vehicle_status", &values);
    }
    let flight = flight.every("failsafe_flags", 0..90, |time| {
        [("manual_control_signal_lost", pulse(0.0, 1.0, 39.5, 50.0)(time)), ("auto_mission_missing", 1.0)]
    });
    let found = findings(&flight.log()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(short(&found[0]), "medium failsafe 40 50");
    assert_eq!(
        found[0].sentence,
        "A failsafe was active for 10 s and changed the mode from Position (2) to Return (5); cause: manual \
         control signal lost."
    );
}

#[test]
fn vibration_and_processor_load_are_judged_in_flight() {
    let vibration = |level: f64| {
        let flight =
            Flight::new().every("vehicle_imu_status", 0..90, move |_| [("accel_vibration_metric", level)]);
        flight.findings()
    };
    assert_eq!(vibration(6.0), ["medium vibration 1 89.9"]);
    assert_eq!(vibration(12.0), ["high vibration 1 89.9"]);
    assert_eq!(vibration(4.0), [""; 0]);
    let load = Flight::new().every("cpuload", 0..90, |time| [("load", pulse(0.5, 0.97, 10.0, 13.05)(time))]);
    assert_eq!(load.findings(), ["medium cpu-load 10 13"]);
}

#[test]
fn a_dropout_at_a_failure_is_a_finding_of_its_own() {
    let mut flight = Flight::new();
    flight.dropouts = vec![(30.5, 200), (70.0, 30)];
    let angle = pulse(5.0, 95.0, 30.0, 31.05);
    let log = flight.every("vehicle_attitude", 0..90, |time| roll(angle(time))).log();
    let found = findings(&log).unwrap();
    let kinds: Vec<_> = found.iter().map(|finding| (finding.kind, finding.severity)).collect();
    assert_eq!(
        kinds,
        [
            (Kind::AttitudeFailure, Severity::High),
            (Kind::Dropout, Severity::Medium),
            (Kind::Dropout, Severity::Low),
        ]
    );
    let bytes = found[1].evidence[0].bytes.clone().unwrap();
    assert_eq!(bytes.end - bytes.start, 5);
}

#[test]
fn a_log_without_an_armed_vehicle_has_no_findings() {
    let mut flight = Flight::default();
    flight.row(0.0, "vehicle_status", &[("arming_state", 1.0), ("nav_state", 2.0)]);
    let flight = flight
        .every("battery_status", 0..90, |_| [("voltage_v", 3.0)])
        .every("vehicle_attitude", 0..90, |_| roll(120.0))
        .every("cpuload", 0..90, |_| [("load", 1.0)]);
    assert_eq!(flight.findings(), [""; 0]);
}

/// A diagnostic of an RLD is also a finding, if it concerns the measurement.
#[test]
fn diagnostics_of_a_measurement_are_findings() {
    let kinds = [
        ("gap", Kind::MissingBlocks),
        ("clock_step", Kind::ClockStep),
        ("clock_backwards", Kind::ClockStep),
        ("current_wraps", Kind::CurrentOutOfRange),
        ("validity_untrusted", Kind::StuckRangeBit),
    ];
    let mut seen = BTreeMap::new();
    for file in RLD.all() {
        let Ok(log) = rovelog::from_bytes(file.bytes.clone(), &ReadOptions::default()) else { continue };
        let found = findings(&log).unwrap();
        let has_rule = |name: &str| log.diagnostics().list().iter().any(|problem| problem.rule.name == name);
        for (name, kind) in kinds.iter().filter(|(name, _)| has_rule(name)) {
            assert!(found.iter().any(|finding| finding.kind == *kind), "{} {name}: {found:#?}", file.name);
            *seen.entry(*name).or_insert(0) += 1;
        }
    }
    assert_eq!(seen.len(), kinds.len(), "{seen:?}");
}

/// In these logs, all sensors pause for two seconds.
#[test]
fn a_pause_of_all_topics_is_a_stall() {
    let Some(file) = VEL.real_log("gap_index_next") else { return };
    let log = rovelog::from_bytes(file.bytes, &ReadOptions::default()).unwrap();
    let found = findings(&log).unwrap();
    let kinds: Vec<_> = found.iter().map(|finding| (finding.kind, finding.severity)).collect();
    assert_eq!(kinds, [(Kind::TopicStall, Severity::Medium)], "{found:#?}");
    assert_eq!(found[0].evidence.len(), 5);
}

/// Every kind has an id of its own, which `docs/reference/findings.md` describes.
#[test]
fn the_documentation_describes_every_kind() {
    let page = rovelog_testing::root().join("docs/reference/findings.md");
    let page = std::fs::read_to_string(page).unwrap();
    for kind in Kind::ALL {
        assert_eq!(page.matches(&format!("\n### `{}`\n", kind.id())).count(), 1, "{}", kind.id());
    }
}

/// A cause that PX4's flight-review-rs reports in one of its fixtures.
struct Cause {
    fixture: &'static str,
    kind: Kind,
    /// Time in seconds.
    time: f64,
}

const CAUSES: &[Cause] = &[
    Cause { fixture: "battery_brownout", kind: Kind::BatteryBrownout, time: 158.987 },
    Cause { fixture: "ekf_failure", kind: Kind::EkfInnovation, time: 117.350 },
    Cause { fixture: "ekf_failure", kind: Kind::EkfInnovation, time: 117.939 },
    Cause { fixture: "gps_interference", kind: Kind::GpsInterference, time: 276.595 },
    Cause { fixture: "motor_failure", kind: Kind::MotorFailure, time: 5081.818 },
];

#[test]
fn the_fixtures_of_flight_review_have_the_same_causes() {
    let Some(folder) = ULOG.folder().map(|folder| folder.join("flight-review-rs")) else { return };
    if !folder.is_dir() {
        return skipped(&format!("no fixtures in {}", folder.display()));
    }
    for Cause { fixture, kind, time } in CAUSES {
        let log = rovelog::open(folder.join(format!("{fixture}.ulg"))).unwrap();
        let found = findings(&log).unwrap();
        let is_near = |finding: &Finding| (finding.start as f64 / 1e9 - time).abs() < 1.0;
        let is_found = found.iter().any(|finding| finding.kind == *kind && is_near(finding));
        assert!(is_found, "{fixture} {kind:?} {time}: {found:#?}");
    }
}

/// Findings of high severity in the real logs. All of them are visible in plots of the log.
const SEVERE: &[(&str, &str)] = &[
    // The autopilot itself reported the level "emergency", and "Dangerous battery level!".
    ("robologs__test", "battery-low"),
];

#[test]
fn ordinary_logs_have_no_severe_findings() {
    for file in ULOG.real() {
        let Ok(log) = rovelog::from_bytes(file.bytes.clone(), &ReadOptions::default()) else { continue };
        let found = findings(&log).unwrap();
        let severe = found.iter().filter(|finding| finding.severity == Severity::High);
        for finding in severe {
            let name = file.name.rsplit('/').next().unwrap();
            assert!(SEVERE.contains(&(name, finding.kind.id())), "{name}: {finding:#?}");
        }
    }
}
