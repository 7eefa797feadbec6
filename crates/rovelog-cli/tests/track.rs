//! Output, files and invalid arguments of `rovelog track` and `rovelog events`.

mod common;

use std::fs;

use common::{Place, corpus, run, runs, stdout};
use serde_json::Value;

runs! {
    in "ulog";
    track_formats:
        "track utc-gps-int32.ulg --to kml",
        "track utc-gps-int32.ulg --to kml --altitude relative --min-fix 4",
        "track utc-gps-int32.ulg --to gpx",
        "track utc-gps-double.ulg --to geojson",
        "track utc-gps-double.ulg --to geojson --topic sensor_gps/1",
        "track utc-gps-double.ulg --to gpx --topic vehicle_gps_position --min-fix 2";
    track_table:
        "track utc-gps-int32.ulg -f csv",
        "track utc-gps-double.ulg --topic sensor_gps/1 -f json",
        "track utc-gps-int32.ulg -f ndjson -S +0.5s -E +1s";
    track_errors:
        "track utc-gps-int32.ulg",
        "track utc-gps-int32.ulg -o track.txt",
        "track utc-gps-int32.ulg --to shp",
        "track utc-gps-int32.ulg --to gpx -f csv",
        "track utc-gps-int32.ulg --to gpx --altitude clamp",
        "track utc-gps-int32.ulg --to gpx --min-fix 1",
        "track utc-gps-double.ulg --to gpx --topic vehicle_gps_position",
        "track utc-gps-int32.ulg --to gpx --topic vehicle_gps",
        "track one-topic.ulg --to gpx",
        "track utc-gps-int32.ulg --to gpx -S +1000h",
        "track one-topic.ulg --to gpx --topic t",
        "track header-only.ulg --to gpx";
    trajectories:
        "track ../rosbag/robot.bag --to tum",
        "track ../rosbag/robot.bag --to euroc --time-base relative",
        "track ../rosbag/robot.bag --to kitti --topic /fix",
        "track utc-gps-int32.ulg --to csv -S +0.5s",
        "track utc-gps-int32.ulg --to csv --time-base boot -E +0.3s";
    trajectory_errors:
        "track ../rosbag/robot.bag --to tum --tf map base_link",
        "track ../rosbag/robot.bag --to tum --topic /image",
        "track ../rosbag/robot.bag --to kml --tf map base_link",
        "track ../rosbag/robot.bag --to tum --tf map",
        "track ../rosbag/robot.bag --to tum --altitude clamp",
        "track utc-gps-int32.ulg --to tum --tf map base_link",
        "track one-topic.ulg --to tum",
        "track utc-gps-double.ulg --to tum --topic sensor_gps/1 --topic sensor_gps/0",
        "track ../rld/v4.rld --to tum";
    events:
        "events one-topic.ulg",
        "events one-topic.ulg -f json",
        "events one-topic.ulg -f csv",
        "events cut-in-payload.ulg";
}

#[test]
fn a_track_is_written_completely_or_not_at_all() {
    let place = Place::new("ulog", &["utc-gps-int32.ulg", "one-topic.ulg"]);
    fs::rename(place.path("utc-gps-int32.ulg"), place.path("flight.ulg")).unwrap();
    let track = |arguments: &str| {
        let output = place.run(&format!("track {arguments}"));
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = track("flight.ulg -o flight.gpx");
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("wrote flight.gpx: "), "{said}");
    let gpx = String::from_utf8(place.read("flight.gpx")).unwrap();
    let document = roxmltree::Document::parse(&gpx).unwrap();
    assert!(
        document.descendants().any(|node| node.has_tag_name(("http://www.topografix.com/GPX/1/1", "trkpt")))
    );
    assert_eq!(gpx, stdout("track utc-gps-int32.ulg --to gpx").replace("utc-gps-int32", "flight"));

    let (code, said) = track("flight.ulg -o flight.gpx");
    assert_eq!(code, 2);
    assert!(said.contains("already exists") && said.contains("--force"), "{said}");
    assert_eq!(track("flight.ulg -o flight.gpx --force -q"), (0, String::new()));

    // `-` is standard output, as for every command.
    let output = place.run("track flight.ulg --to gpx -o -");
    assert_eq!((output.status.code(), String::from_utf8(output.stdout)), (Some(0), Ok(gpx)));

    // The log is never overwritten, whatever its name.
    for options in ["flight.ulg -o flight.ulg --to kml --force", "flight.ulg -o ./flight.ulg --to kml"] {
        let (code, said) = track(options);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("the output file is also the input file"), "{said}");
    }
    assert_eq!(place.read("flight.ulg"), fs::read(corpus().join("utc-gps-int32.ulg")).unwrap());

    // A failed run leaves no file.
    let (code, _) = track("one-topic.ulg -o empty.kml");
    assert_eq!(code, 1);
    let (code, _) = track("absent.ulg -o empty.kml");
    assert_eq!(code, 1);
    let (code, said) = track("flight.ulg -o nowhere/track.kml");
    assert_eq!(code, 1, "{said}");
    assert_eq!(place.names("."), ["flight.gpx", "flight.ulg", "one-topic.ulg"]);
}

#[test]
fn a_trajectory_file_says_what_it_lacks() {
    let place = Place::new("rosbag", &["robot.bag"]);
    let output = place.run("track robot.bag -o robot.tum");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("wrote robot.tum: ") && said.contains(" of /fix\n"), "{said}");
    assert!(said.contains("no pose has an orientation; the identity was written for "), "{said}");
    let tum = String::from_utf8(place.read("robot.tum")).unwrap();
    assert!(tum.lines().skip(1).all(|line| line.ends_with(" 0 0 0 1")), "{tum}");
    // Several logs are written to a folder, with the extension of the format.
    assert_eq!(place.run("track robot.bag ./ -o out/ --to euroc -q").status.code(), Some(2));
    assert_eq!(place.run("track ./ -o out/ --to euroc -q").status.code(), Some(0));
    assert_eq!(place.names("out"), ["robot.csv"]);
}

/// The recording has 1344 transforms of `turtle1`, which are the poses in both directions.
#[test]
fn frames_of_a_real_bag() {
    let Some(folder) = rovelog_testing::real("rosbag20") else { return };
    let bag = folder.join("real_turtlesim_2014.bag");
    let output = run(&format!("track {} --to csv --tf world turtle1", bag.display()));
    let csv = String::from_utf8(output.stdout).unwrap();
    assert_eq!(csv.lines().count(), 1345, "{csv}");
    let inverse = run(&format!("track {} --to csv --tf turtle1 world", bag.display()));
    assert_eq!(String::from_utf8(inverse.stdout).unwrap().lines().count(), 1345);
    let wrong = run(&format!("track {} --to csv --tf world turtel1", bag.display()));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(said.contains("did you mean turtle1? The frames are: carrot turtle1 turtle2 world"), "{said}");
    let none = run(&format!("track {} --to csv", bag.display()));
    assert!(String::from_utf8(none.stderr).unwrap().contains("--tf map base_link"));
}

#[test]
fn json_documents_name_their_schema() {
    let json = |line: &str| serde_json::from_str::<Value>(&stdout(line)).unwrap();
    let track = json("track utc-gps-int32.ulg -f json");
    assert_eq!(track["schema"], "rovelog.track/1");
    assert_eq!(track["points"][0]["latitude_deg"], 47.397_742);
    assert_eq!(json("events one-topic.ulg -f json")["schema"], "rovelog.events/1");
}

#[test]
fn events_and_tracks_of_real_logs() {
    let Some(folder) = rovelog_testing::real("ulog") else { return };
    let log = folder.join("sample_px4_events.ulg");
    let lines = stdout(&format!("events {}", log.display()));
    assert_eq!(lines.lines().count(), 15, "{lines}");
    assert!(lines.contains("+00:00:14.9  info       Using default takeoff altitude: 2.50 m\n"), "{lines}");
    assert!(lines.contains("  mode       Return (5)\n"), "{lines}");
    let all = stdout(&format!("events --all -f ndjson {}", log.display()));
    assert_eq!(all.lines().filter(|line| line.contains("\"kind\":\"event\"")).count(), 38);
    // Bytes of the log were lost, but not in the track.
    let damaged = folder.join("px4-ulog-rs__corrupt_unregistered_msg_id.ulg");
    let output = run(&format!("track --to geojson {}", damaged.display()));
    assert_eq!(output.status.code(), Some(3));
    assert!(serde_json::from_slice::<Value>(&output.stdout).is_ok());
}
