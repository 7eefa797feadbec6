//! Writes the tracks of the corpus, of real logs and of a synthetic log, and reads the files with
//! independent parsers.

use std::path::{Path, PathBuf};

use rovelog::{Clock, Timestamp, UtcOffset};
use rovelog_export::track::{
    self, Altitude, Fix, Format, Line, LineBuilder, Mark, MarkKind, Phase, Tally, Track, TrackOptions,
    TrackPoint, WriteError,
};
use rovelog_testing::root;
use roxmltree::{Document, Node};
use serde_json::Value as Json;

fn real() -> Option<PathBuf> {
    rovelog_testing::real("ulog")
}

fn open(path: &Path, options: &TrackOptions) -> (Track, Tally) {
    let log = rovelog::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    track::of(&log, options).unwrap()
}

fn case(name: &str) -> (Track, Tally) {
    open(&root().join("corpus/ulog").join(name), &TrackOptions::default())
}

fn text_with(track: &Track, format: Format, altitude: Altitude) -> String {
    let mut bytes = Vec::new();
    track::write(track, format, altitude, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn text(track: &Track, format: Format) -> String {
    text_with(track, format, Altitude::Absolute)
}

/// Returns the texts of all XML elements with this name.
fn all<'a>(document: &'a Document<'a>, name: &str) -> Vec<&'a str> {
    let named = document.descendants().filter(|node| node.tag_name().name() == name);
    named.map(|node| node.text().unwrap_or_default().trim()).collect()
}

fn nodes<'a>(document: &'a Document<'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(move |node| node.tag_name().name() == name)
}

const START: i64 = 1_700_000_000_000_000_000;

fn point(seconds: f64, latitude: f64, longitude: f64, altitude: f64) -> TrackPoint {
    #[expect(clippy::cast_possible_truncation, reason = "a few seconds")]
    let nanos = (seconds * 1e9) as i64;
    let mut point = TrackPoint::new(Timestamp::new(nanos, Clock::Boot), latitude, longitude);
    (point.altitude_msl, point.altitude_ellipsoid) = (Some(altitude), Some(altitude + 47.25));
    (point.fix, point.satellites, point.hdop) = (Some(Fix::ThreeD), Some(12), Some(0.75));
    point
}

fn line(points: &[TrackPoint]) -> Line {
    let mut builder = LineBuilder::new("gps/0", false);
    for point in points {
        builder.push(*point);
    }
    builder.finish().0
}

/// Returns a track with two flight modes, a gap, a line across the antimeridian, an event, and a
/// name that must be escaped.
fn made() -> Track {
    let points: Vec<_> = (0..6)
        .map(|i| point(f64::from(i), 10.0, 179.9 + f64::from(i) * 0.01, 100.0 + f64::from(i)))
        .collect();
    let mut points = points;
    points.extend([point(30.0, 10.0, 179.99, 120.0), point(31.0, 10.0, 179.995, 121.0)]);
    points.extend([point(32.0, 10.0, -179.995, 122.0), point(33.0, 10.0, -179.99, 123.0)]);
    let mut track = Track::default();
    track.name.push_str("a <&> \"b\"\u{1b}[31m\u{0} é");
    track.lines = vec![line(&points)];
    let phase = |seconds: i64, name: &str, kind| Phase {
        time: Timestamp::new(seconds * 1_000_000_000, Clock::Boot),
        name: name.to_owned(),
        kind,
    };
    track.phases = vec![phase(0, "Takeoff (17)", 17), phase(3, "Mission (3)", 3), phase(33, "Hold (4)", 4)];
    let time = Timestamp::new(3_500_000_000, Clock::Boot);
    let mark = |place| Mark { time, kind: MarkKind::Armed, name: "Armed <now>".to_owned(), place };
    track.marks = vec![mark(Some(points[3])), mark(None)];
    track.utc = Some(UtcOffset::new(START, "gps", ""));
    track
}

#[test]
fn kml_has_a_line_for_each_mode_and_a_track_with_times() {
    let track = made();
    let kml = text(&track, Format::Kml);
    let document = Document::parse(&kml).unwrap();
    let names = all(&document, "name");
    assert_eq!(names[0], "a <&> \"b\"[31m é");
    let lines: Vec<_> = nodes(&document, "LineString").collect();
    // The lines are Takeoff and Mission before the gap, Mission up to the antimeridian, and Mission
    // after the antimeridian. Only the last point is in Hold, so this point ends the last line.
    assert_eq!(lines.len(), 4);
    let of = |i: usize| {
        let coordinates = lines[i].children().find(|n| n.tag_name().name() == "coordinates").unwrap();
        coordinates.text().unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(of(0).len(), 4, "a part ends where the next starts");
    assert_eq!(of(0)[3], of(1)[0]);
    assert_eq!(of(0)[0], "179.9000000,10.0000000,100.000");
    assert_eq!(of(3), ["-179.9950000,10.0000000,122.000", "-179.9900000,10.0000000,123.000"]);
    let placemark = lines[0].parent().unwrap();
    let child = |name: &str| placemark.children().find(|n| n.tag_name().name() == name).unwrap();
    assert_eq!((child("name").text(), child("styleUrl").text()), (Some("Takeoff (17)"), Some("#phase-17")));
    let styles: Vec<_> = nodes(&document, "Style").map(|node| node.attribute("id").unwrap()).collect();
    assert_eq!(styles, ["track", "phase-3", "phase-4", "phase-17", "times"]);

    let tracks: Vec<_> = nodes(&document, "Track").collect();
    assert_eq!(tracks.len(), 3);
    assert_eq!(tracks[0].tag_name().namespace(), Some("http://www.google.com/kml/ext/2.2"));
    for track in tracks {
        let count = |name: &str| track.children().filter(|node| node.tag_name().name() == name).count();
        assert_eq!(count("when"), count("coord"));
    }
    assert_eq!(nodes(&document, "when").count(), 10 + 2, "ten points, two marks");
    assert_eq!(all(&document, "coord")[0], "179.9000000 10.0000000 100.000");
    assert_eq!(all(&document, "when")[1], "2023-11-14T22:13:21Z");
    assert_eq!(nodes(&document, "Point").count(), 1, "a mark without a place has no geometry");
}

#[test]
fn kml_heights_have_the_requested_reference() {
    let track = made();
    let relative = text_with(&track, Format::Kml, Altitude::Relative);
    assert!(relative.contains("<altitudeMode>relativeToGround</altitudeMode>"));
    assert!(relative.contains("179.9000000,10.0000000,0.000"));
    assert!(relative.contains("-179.9900000,10.0000000,23.000"));
    let clamp = text_with(&track, Format::Kml, Altitude::Clamp);
    assert!(clamp.contains("<tessellate>1</tessellate><altitudeMode>clampToGround</altitudeMode>"));
    assert!(!clamp.contains("absolute"));
    for format in [Format::Gpx, Format::GeoJson] {
        let refused = track::write(&track, format, Altitude::Clamp, Vec::new());
        assert!(matches!(refused, Err(WriteError::Altitude(_))));
    }
    // A point with an unknown height must not be written with a height of zero meters.
    let mut track = made();
    track.lines[0].segments[2].points[0].altitude_msl = None;
    let kml = text(&track, Format::Kml);
    assert!(kml.contains("\n-179.9950000,10.0000000\n"));
}

#[test]
fn gpx_follows_the_schema() {
    let gpx = text(&made(), Format::Gpx);
    let document = Document::parse(&gpx).unwrap();
    let root = document.root_element();
    assert_eq!((root.tag_name().name(), root.attribute("version")), ("gpx", Some("1.1")));
    assert_eq!(root.tag_name().namespace(), Some("http://www.topografix.com/GPX/1/1"));
    let children: Vec<_> =
        root.children().filter(Node::is_element).map(|node| node.tag_name().name()).collect();
    assert_eq!(children, ["metadata", "wpt", "trk"]);
    let points: Vec<_> =
        nodes(&document, "trkseg").map(|s| s.children().filter(Node::is_element).count()).collect();
    assert_eq!(points, [6, 2, 2]);
    let first = nodes(&document, "trkpt").next().unwrap();
    assert_eq!((first.attribute("lat"), first.attribute("lon")), (Some("10.0000000"), Some("179.9000000")));
    let parts: Vec<_> = first.children().map(|node| (node.tag_name().name(), node.text().unwrap())).collect();
    let want = [
        ("ele", "100.000"),
        ("time", "2023-11-14T22:13:20Z"),
        ("fix", "3d"),
        ("sat", "12"),
        ("hdop", "0.75"),
    ];
    assert_eq!(parts, want);
}

#[test]
fn geojson_has_longitude_first_and_a_time_for_each_place() {
    let json: Json = serde_json::from_str(&text(&made(), Format::GeoJson)).unwrap();
    assert_eq!((&json["type"], &json["name"]), (&"FeatureCollection".into(), &made().name.into()));
    let features = json["features"].as_array().unwrap();
    let kinds: Vec<_> = features.iter().map(|f| f["geometry"]["type"].as_str()).collect();
    let line = Some("LineString");
    assert_eq!(kinds, [line, line, line, Some("Point"), None]);
    assert_eq!(features[0]["geometry"]["coordinates"][0], serde_json::json!([179.9, 10.0, 147.25]));
    assert_eq!(features[0]["properties"]["altitude"], "ellipsoid");
    for feature in &features[..3] {
        let count = |json: &Json| json.as_array().unwrap().len();
        assert_eq!(count(&feature["geometry"]["coordinates"]), count(&feature["properties"]["coordTimes"]));
    }
    assert_eq!(features[1]["properties"]["coordTimes"][1], "2023-11-14T22:13:51Z");
    assert_eq!(features[3]["properties"]["kind"], "armed");

    let mut track = made();
    track.lines[0].segments[0].points[2].altitude_ellipsoid = None;
    let json: Json = serde_json::from_str(&text(&track, Format::GeoJson)).unwrap();
    assert_eq!(json["features"][0]["properties"]["altitude"], "mean_sea_level");
    assert_eq!(json["features"][0]["geometry"]["coordinates"][0][2], 100.0);
}

#[test]
fn without_utc_there_are_no_times() {
    let mut track = made();
    track.utc = None;
    for format in Format::ALL {
        let text = text(&track, format);
        for word in ["<time>", "<when>", "gx:Track", "coordTimes", "TimeSpan", "2023", "1970"] {
            assert!(!text.contains(word), "{} has {word}", format.name());
        }
    }
}

#[test]
fn one_point_is_a_point_and_none_is_an_error() {
    let mut track = Track::default();
    for format in Format::ALL {
        let refused = track::write(&track, format, Altitude::default(), Vec::new());
        assert!(matches!(refused, Err(WriteError::Empty)));
    }
    track.lines = vec![line(&[point(1.0, -0.000_000_01, 5e-8, -0.000_1)])];
    let kml = text(&track, Format::Kml);
    assert!(
        kml.contains(
            "<Point><altitudeMode>absolute</altitudeMode><coordinates>\n0.0000001,0.0000000,0.000\n"
        ),
        "{kml}"
    );
    assert!(text(&track, Format::Gpx).contains(r#"lat="0.0000000" lon="0.0000001""#));
    assert!(text(&track, Format::GeoJson).contains(r#"{"type":"Point","coordinates":[1e-7,0.0,47.25]}"#));
    track.lines = vec![line(&[point(1.0, 0.0, 180.0, 0.0)])];
    assert!(text(&track, Format::Gpx).contains(r#"lon="-180.0000000""#), "the schema ends below 180");
}

#[test]
fn corpus_tracks_have_the_positions_of_their_recipes() {
    for (name, source, rule) in [
        ("utc-gps-int32.ulg", "vehicle_gps_position/0", "gps"),
        ("utc-gps-double.ulg", "sensor_gps/0", "gps"),
    ] {
        let (track, tally) = case(name);
        assert_eq!(track.lines[0].source, source);
        assert_eq!(track.utc.as_ref().unwrap().rule, rule);
        assert!(tally.rows > 0 && tally.without_fix > 0, "{name}: {tally:?}");
        for point in track.points() {
            let place = (point.latitude, point.longitude, point.altitude_msl);
            assert_eq!(place, (47.397_742, 8.545_593_8, Some(488.004)), "{name}");
            assert!(point.fix >= Some(Fix::ThreeD), "{name}");
        }
        for format in Format::ALL {
            assert_eq!(
                text(&track, format),
                text(&case(name).0, format),
                "the same log gives the same bytes"
            );
        }
        let gpx = text(&track, Format::Gpx);
        assert!(gpx.contains(r#"<trkpt lat="47.3977420" lon="8.5455938"><ele>488.004</ele><time>"#), "{gpx}");
    }
    let mut options = TrackOptions::default();
    options.topics = vec!["sensor_gps/1".to_owned()];
    let (track, _) = open(&root().join("corpus/ulog/utc-gps-double.ulg"), &options);
    assert_eq!(track.lines.iter().map(|line| line.source.as_str()).collect::<Vec<_>>(), ["sensor_gps/1"]);
    options.topics = vec!["nowhere".to_owned()];
    let log = rovelog::open(root().join("corpus/ulog/utc-gps-double.ulg")).unwrap();
    assert!(track::of(&log, &options).unwrap_err().to_string().contains("no topic nowhere"));
}

#[test]
fn every_log_of_the_corpus_has_a_track_or_none() {
    let mut with_points = 0;
    for entry in std::fs::read_dir(root().join("corpus/ulog")).unwrap() {
        let Ok(log) = rovelog::open(entry.unwrap().path()) else { continue };
        let (track, _) = track::of(&log, &TrackOptions::default()).unwrap();
        with_points += u32::from(!track.is_empty());
    }
    assert!(with_points >= 2);
}

#[test]
fn real_logs_give_files_that_parse() {
    let Some(folder) = real() else { return };
    let (track, tally) = open(&folder.join("quirks/95_gps_utc.ulg"), &TrackOptions::default());
    // The expected values are from the manifest of the real logs. It states ten rows, seven of
    // which have a fix, and the first position 47.397742, 8.5455938, 488.004 m.
    assert_eq!((tally.rows, tally.without_fix, track.points().count()), (10, 3, 7));
    let gpx = text(&track, Format::Gpx);
    assert!(gpx.contains(r#"<trkpt lat="47.3977420" lon="8.5455938"><ele>488.004</ele><time>2023-11-14T22:13:25.400Z</time>"#), "{gpx}");

    // The expected numbers of fixes are those of pyulog, except for the damaged log, in which
    // pyulog misses one fix.
    for (name, points, modes) in [
        ("sample_px4_events", 423, 4),
        ("sample_log_small", 32, 1),
        ("px4-ulog-rs__esc_status_log", 179, 2),
        ("px4-ulog-rs__corrupt_unregistered_msg_id", 59, 4),
        ("ulog-rs__sample-small", 36, 2),
        ("robologs__test", 19, 1),
        ("pyulog__sample_2016_original", 99, 2),
    ] {
        let mut options = TrackOptions::default();
        options.all = true;
        let (track, tally) = open(&folder.join(name).with_extension("ulg"), &options);
        assert_eq!(track.points().count(), points, "{name}");
        assert_eq!(tally.rows - tally.without_fix - tally.implausible, points as u64, "{name}");
        let kml = text(&track, Format::Kml);
        let document = Document::parse(&kml).unwrap();
        let lines = nodes(&document, "LineString").count();
        assert!(lines >= modes, "{name}: {lines} lines");
        let timed = if track.utc.is_some() { points } else { 0 };
        assert_eq!(nodes(&document, "coord").count(), timed, "{name}");
        let gpx = text(&track, Format::Gpx);
        assert_eq!(nodes(&Document::parse(&gpx).unwrap(), "trkpt").count(), points, "{name}");
        let json: Json = serde_json::from_str(&text(&track, Format::GeoJson)).unwrap();
        let places: usize = json["features"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|feature| feature["geometry"]["type"] == "LineString")
            .map(|feature| feature["geometry"]["coordinates"].as_array().unwrap().len())
            .sum();
        assert_eq!(places, points, "{name}");
    }
}

/// If bytes of a log are flipped, removed or set to zero, the result must be a track or an error.
#[test]
fn damaged_logs_never_panic() {
    let Some(folder) = real() else { return };
    let log = std::fs::read(folder.join("sample_px4_events.ulg")).unwrap();
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % below as u64).unwrap()
    };
    let (mut tracks, mut defined) = (0, 0);
    for _ in 0..40 {
        let mut bytes = log.clone();
        for _ in 0..40 {
            // Half of the changes are in the definitions at the start, where a small change has
            // large effects.
            let below = if random(2) == 0 { 60_000 } else { bytes.len() };
            let at = random(below);
            match random(4) {
                0 => bytes.truncate(bytes.len() - random(2000)),
                1 => drop(bytes.drain(at..(at + random(50)).min(bytes.len()))),
                2 => {
                    let end = (at + random(300)).min(bytes.len());
                    bytes[at..end].fill(0);
                }
                _ => bytes[at] ^= 1 << random(8),
            }
        }
        let Ok(log) = rovelog::from_bytes(bytes.into(), &rovelog::ReadOptions::default()) else { continue };
        if let Ok((track, _)) = track::of(&log, &TrackOptions::default())
            && !track.is_empty()
        {
            tracks += 1;
            Document::parse(&text(&track, Format::Kml)).unwrap();
            Document::parse(&text(&track, Format::Gpx)).unwrap();
            serde_json::from_str::<Json>(&text(&track, Format::GeoJson)).unwrap();
        }
        if let rovelog::AnyLog::Ulog(reader) = &log {
            let events = rovelog::ulog_format::px4::events(reader);
            defined += u32::from(events.defined);
            assert!(events.list.iter().all(|event| event.message().len() < 5000));
        }
    }
    assert!(tracks > 0, "{tracks} tracks, {defined} logs with definitions");
}

/// The log has fixes with the quality numbers 1, 2, 6 (dead reckoning), 4 and 99.
#[test]
fn fix_of_unknown_quality_does_not_satisfy_a_minimum() {
    let log = rovelog::open(root().join("corpus/vel/gps-quality.vel")).unwrap();
    let seconds = |min_fix: Option<u8>| {
        let mut options = TrackOptions::default();
        (options.min_fix, options.all) = (min_fix, true);
        let (track, tally) = track::of(&log, &options).unwrap();
        let seconds = track.points().map(|point| point.time.nanos / 1_000_000_000).collect::<Vec<_>>();
        assert_eq!(seconds.len() as u64 + tally.without_fix, tally.rows, "{tally:?}");
        seconds
    };
    assert_eq!(seconds(None), [0, 1, 3, 4]);
    assert_eq!(seconds(Some(2)), [0, 1, 2, 3]);
    assert_eq!(seconds(Some(3)), [0, 1, 3]);
    assert_eq!(seconds(Some(6)), [3]);
}
