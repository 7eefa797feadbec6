//! Every corpus case is compared with its expected result, which follows from the recipe of the
//! case and not from a reader.

mod support;

use rovelog_core::ReadOptions;
use rovelog_testing::check_corpus;
use serde_json::Value as Json;
use support::{LOGS, picture};
use vel_format::velodyne::PointOptions;
use vel_format::{Kind, Payload, VelReader};

#[test]
fn every_case_reads_as_expected() {
    check_corpus(&LOGS, |log, expected| {
        let facts = expected["vel"].as_object_mut().map(take_facts).unwrap_or_default();
        let mut options = ReadOptions::default();
        options.declarations = facts["declarations"].as_str().unwrap_or_default().to_owned();
        let reader = VelReader::new(log.bytes.clone(), &options)?;
        points(&log.name, &facts, &reader);
        scan(&log.name, &facts, &reader);
        Ok(picture(&reader))
    });
}

/// Removes the values that are not compared for equality from the expected result, and returns
/// these values.
fn take_facts(own: &mut serde_json::Map<String, Json>) -> Json {
    let keys = ["declarations", "points", "revolutions", "points_refused", "scan"];
    keys.into_iter().filter_map(|key| Some((key.to_owned(), own.remove(key)?))).collect()
}

fn number(json: &Json) -> f64 {
    json.as_str().expect("a number as text").parse().expect("a number")
}

/// Compares the points of a log with the expected points, in the order of their shots. A tenth of a
/// millimeter is the tolerance.
fn points(name: &str, facts: &Json, reader: &VelReader) {
    let revolutions = reader.revolutions(None, None, PointOptions::default(), 0);
    if let Some(words) = facts["points_refused"].as_str() {
        let error = revolutions.err().expect(name).to_string();
        assert!(error.contains(words), "{name}: {error}");
        return;
    }
    let Some(want) = facts["points"].as_array() else { return };
    let mut revolutions = revolutions.expect(name);
    let (mut count, mut points) = (0, Vec::new());
    while let Some(revolution) = revolutions.next() {
        count += 1;
        points.extend_from_slice(revolution.points);
    }
    assert_eq!(count, facts["revolutions"].as_u64().expect("a count"), "{name}");
    assert_eq!(points.len(), want.len(), "{name}");
    for (i, (point, want)) in points.iter().zip(want).enumerate() {
        let got = [point.x, point.y, point.z].map(f64::from);
        let near = (0..3).all(|axis| (got[axis] - number(&want[axis])).abs() < 1e-4);
        assert!(near, "{name} {i}: {point:?} is not at {want}");
    }
}

fn scan(name: &str, facts: &Json, reader: &VelReader) {
    let Some(want) = facts["scan"].as_array() else { return };
    let Some((_, Payload::Laser(laser))) = reader.payloads(Kind::Laser).next() else {
        panic!("{name} has a scan")
    };
    let points: Vec<_> = laser.points().expect("a known scanner").collect();
    for want in want {
        let index = usize::try_from(want["index"].as_u64().expect("an index")).expect("small");
        let got = &points[index];
        assert!((got.angle - number(&want["angle"])).abs() < 1e-6, "{name} {index}");
        match (got.xy(), want["xy"].as_array()) {
            (None, None) => assert_eq!(want["code"].as_u64(), Some(got.raw.into()), "{name} {index}"),
            (Some([x, y]), Some(xy)) => {
                assert!(
                    (x - number(&xy[0])).abs() < 1e-6 && (y - number(&xy[1])).abs() < 1e-6,
                    "{name} {index}"
                );
            }
            _ => panic!("{name} {index}: {got:?}, expected {want}"),
        }
    }
}
