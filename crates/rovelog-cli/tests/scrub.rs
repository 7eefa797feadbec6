//! Tests of `rovelog scrub`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use rovelog::core::internal::edit::Part;
use rovelog::{AnyLog, ReadOptions, Select, Value};

use common::{Place, run_in};

/// A position in degrees.
type Position = (f64, f64);

/// Returns the logs of the corpus and the real logs of each format.
fn logs() -> impl Iterator<Item = PathBuf> {
    let corpus = rovelog_testing::root().join("corpus");
    let folders = [
        ("ulog", &["ulog"][..]),
        ("rld", &["rld"]),
        ("rosbag", &["rosbag12", "rosbag20"]),
        ("vel", &["vel"]),
    ];
    let real =
        folders.into_iter().flat_map(|(_, real)| real.iter().filter_map(|name| rovelog_testing::real(name)));
    let folders: Vec<_> = folders.iter().map(|(name, _)| corpus.join(name)).chain(real).collect();
    folders
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.unwrap().path())
}

fn open(path: &Path) -> Option<AnyLog> {
    rovelog::from_bytes(fs::read(path).ok()?.into(), &ReadOptions::default()).ok()
}

/// Offsets in the index of a bag that was appended to another count from the start of this bag.
#[test]
fn the_index_of_appended_bags_stays_right() {
    let place = Place::new("rosbag", &["v2.0+bz2.bag", "v2.0+lz4.bag"]);
    let joined = [place.read("v2.0+bz2.bag"), place.read("v2.0+lz4.bag")].concat();
    fs::write(place.path("joined.bag"), joined).unwrap();
    let run = place.run("scrub joined.bag -o out.bag --shift-days 10");
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let index = |name: &str| {
        let log = rovelog::open(place.path(name)).unwrap();
        let AnyLog::Rosbag(bag) = &log else { panic!("{name} is no bag") };
        let codes: Vec<_> = log.diagnostics().list().iter().map(|found| found.rule.code).collect();
        (bag.sections().len(), log.info().records, codes)
    };
    assert_eq!(index("out.bag"), index("joined.bag"));
    assert_ne!(place.read("out.bag").len(), place.read("joined.bag").len(), "no chunk has another size");
}

#[test]
fn a_copy_without_changes_has_the_same_bytes() {
    let mut count = 0;
    for path in logs().filter(|path| path.is_file()) {
        let Some(log) = open(&path) else { continue };
        // A log that is compressed as a whole is copied uncompressed.
        if log.info().size != fs::metadata(&path).unwrap().len() {
            continue;
        }
        let mut out = Vec::new();
        let mut parts = 0;
        log.rewrite(&mut |part, _| parts += u32::from(!matches!(part, Part::Start)), &mut out)
            .expect("memory");
        assert!(out == fs::read(&path).unwrap(), "{}", path.display());
        assert!(parts > 0 || log.info().records == 0, "{}", path.display());
        count += 1;
    }
    assert!(count > 100);
}

/// Adds the positions of a value: pairs of a latitude and a longitude with equal other words.
fn positions(value: &Value, found: &mut Vec<Position>) {
    let names = [
        ("latitude", "longitude"),
        ("lat", "lon"),
        ("ref_lat", "ref_lon"),
        ("latitude_deg", "longitude_deg"),
    ];
    if let Value::Struct(fields) = value {
        for (north, east) in names {
            let number = |name| match value.get(name)? {
                Value::Int(value, _) => Some(*value as f64 / 1e7),
                value => value.as_f64(),
            };
            found.extend(
                number(north).zip(number(east)).filter(|(n, e)| n.abs() + e.abs() > 0.0 && n.is_finite()),
            );
        }
        for (_, value) in fields {
            positions(value, found);
        }
    }
}

fn all_positions(path: &Path) -> Vec<Position> {
    let log = open(path).expect("a log");
    let mut found = Vec::new();
    for record in log.records(&Select::all()) {
        if let Ok(value) = record.expect("an intact log").value() {
            positions(&value, &mut found);
        }
    }
    found
}

/// Returns the distance in kilometers on a sphere, in which the error of the sphere is negligible.
fn distance((north, east): Position, (other_north, other_east): Position) -> f64 {
    let (dn, de) = ((other_north - north).to_radians(), (other_east - east).to_radians());
    let (a, b) = (north.to_radians().cos(), other_north.to_radians().cos());
    2.0 * 6371.0 * ((dn / 2.0).sin().powi(2) + a * b * (de / 2.0).sin().powi(2)).sqrt().min(1.0).asin()
}

#[test]
fn positions_of_real_logs_are_moved_together() {
    let Some(real) = rovelog_testing::real("ulog").and_then(|folder| folder.parent().map(Path::to_owned))
    else {
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    for name in [
        "ulog/robologs__test.ulg",
        "ulog/sample_px4_events.ulg",
        "rosbag20/real_imu_navsat_bz2_2015.bag",
        "vel/good.vel",
    ] {
        let out = place.path().join("out");
        let line = format!(
            "scrub '{}' -o '{}' --secret '{}' --force -q",
            real.join(name).display(),
            out.display(),
            place.path().join(name.replace('/', "_")).display()
        );
        let done = run_in("ulog", &line, b"");
        assert!(
            matches!(done.status.code(), Some(0 | 3)),
            "{name}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        let (before, after) = (all_positions(&real.join(name)), all_positions(&out));
        assert!(!before.is_empty() && before.len() == after.len(), "{name}");
        for (old, new) in before.iter().zip(&after) {
            assert!(distance(*old, *new) > 500.0, "{name}: {old:?} became {new:?}");
        }
        for (old, new) in before.windows(2).zip(after.windows(2)) {
            let (a, b) = (distance(old[0], old[1]), distance(new[0], new[1]));
            // The sphere changes distances by up to 0.2 %, and integers are rounded to 1 cm.
            assert!((a - b).abs() < 3e-3 * a + 4e-5, "{name}: {a} km became {b} km");
        }
        // The same secret gives the same bytes.
        let first = fs::read(&out).unwrap();
        run_in("ulog", &line, b"");
        assert!(fs::read(&out).unwrap() == first, "{name}");
    }
}

/// Returns a ULog with one topic and one row.
fn made(fields: &str, row: &[u8]) -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01".to_vec();
    log.extend(1_000_000_u64.to_le_bytes());
    let mut message = |kind: u8, payload: &[u8]| {
        log.extend(u16::try_from(payload.len()).expect("short").to_le_bytes());
        log.push(kind);
        log.extend(payload);
    };
    message(b'F', format!("gps:uint64_t timestamp;{fields}").as_bytes());
    message(b'I', b"\x10char[8] sys_uuid12345678");
    message(b'A', b"\0\0\0gps");
    for time in 1_000_000..1_000_003_u64 {
        message(b'D', &[&[0, 0], &time.to_le_bytes()[..], row].concat());
    }
    message(b'L', &[&b"6"[..], &1_000_002_u64.to_le_bytes(), b"home 47.41 8.53"].concat());
    log
}

#[test]
fn an_unknown_position_is_refused() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    let numbers = [47.4_f64, 8.5, 465_000.0, 47.41, 8.51].map(f64::to_le_bytes).concat();
    let log = made("double lat;double lon;double utm_x;double a;double b;", &numbers);
    fs::write(place.path("made.ulg"), &log).unwrap();
    let run = |line: &str| {
        let done = place.run(line);
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let (code, said) = run("scrub made.ulg -o out.ulg --to 10,20");
    assert_eq!(code, Some(1));
    assert!(said.contains("gps/0.a, b; gps/0.utm_x"), "{said}");
    assert!(!place.path("out.ulg").exists());
    let (code, said) =
        run("scrub made.ulg -o out.ulg --to 10,20 --keep gps.utm_x --blank gps.a --shift-days 3");
    assert_eq!(code, Some(0), "{said}");
    for expected in ["lat, lon moved", "sys_uuid blanked", "message masked", "utm_x kept"] {
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(expected), "{expected}: {said}");
    }
    let out = place.read("out.ulg");
    assert_eq!(out.len(), log.len());
    assert!(!out.windows(8).any(|bytes| bytes == b"12345678" || bytes == 47.4_f64.to_le_bytes()));
    let (_, rows) = run("cat out.ulg -f csv --fields lat,lon,utm_x,a");
    let row: Vec<f64> =
        rows.lines().nth(1).unwrap().split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
    assert!(
        row.iter().zip([10.0, 20.0, 465_000.0, 0.0]).all(|(cell, value)| (cell - value).abs() < 1e-9),
        "{rows}"
    );
}

/// A longitude without its latitude cannot be moved, so the copy is refused.
#[test]
fn a_longitude_without_latitude_is_refused() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    let numbers = [f64::NAN, 8.5].map(f64::to_le_bytes).concat();
    fs::write(place.path("made.ulg"), made("double lat;double lon;", &numbers)).unwrap();
    let done = place.run("scrub made.ulg -o out.ulg --to 10,20");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(1) && said.contains("gps/0.lon"), "{said}");
}

#[test]
fn the_boot_time_is_shifted_like_all_dates() {
    let place = Place::new("ulog", &["utc-boot-time.ulg"]);
    let start = |log: &str| {
        let run = place.run(&format!("info {log} --get start"));
        String::from_utf8(run.stdout).unwrap()
    };
    assert_eq!(place.run("scrub utc-boot-time.ulg -o out.ulg --shift-days 10").status.code(), Some(0));
    assert_eq!((&start("utc-boot-time.ulg")[..10], &start("out.ulg")[..10]), ("2023-11-14", "2023-11-24"));
}

#[test]
fn a_secret_is_for_one_site() {
    let place = Place::new("vel", &["gps-late-fixes.vel"]);
    assert_eq!(place.run("scrub gps-late-fixes.vel -o a.vel --secret site.json -q").status.code(), Some(0));
    let secret = r#"{"from": {"latitude": 0, "longitude": 0}, "to": {"latitude": 10, "longitude": 0}}"#;
    for (text, why) in [(secret, "km away"), ("{}", "no secret of rovelog scrub")] {
        fs::write(place.path("site.json"), text).unwrap();
        let done = place.run("scrub gps-late-fixes.vel -o b.vel --secret site.json");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.code() == Some(2) && said.contains(why), "{said}");
    }
    assert!(!place.path("b.vel").exists());
}
