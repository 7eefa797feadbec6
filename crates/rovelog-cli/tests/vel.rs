//! Messages, output files and invalid arguments of the commands for VEL logs.

mod common;

use std::fs;
use std::path::Path;

use common::{Place, assert_reported_by_all, run_in, runs, snapshot};
use rovelog::vel_format::{NewMessage, WriteOptions, write_log};

runs! {
    in "vel";
    vel_info:
        "info all-kinds.vel",
        "info all-kinds+inclusive.vel --explain",
        "info velodyne-vlp16.vel --explain",
        "info damaged+two-places.vel",
        "info index+descending.vel",
        "info unknown-type.vel end-mark+tail.vel",
        "info index-absent.vel -f json",
        "info cut-in-index.vel",
        "info bad-magic.vel",
        "info bad-magic.vel --input-format vel";
    vel_topics:
        "topics all-kinds.vel",
        "topics laser-latin-1.vel -f csv",
        "schema all-kinds.vel GPSDataM",
        "schema all-kinds.vel LaserRange2DDataM/front --raw",
        "schema unknown-type.vel 0x0001806E",
        "topics all-kinds.vel -f json";
    vel_cat_check:
        "cat gps-late-fixes.vel --topics GPSDataM",
        "cat all-kinds.vel --topics OBDDataM -f ndjson",
        "cat pose-at-rest.vel --topics RobotPoseM -f csv",
        "cat images-of-three-sources.vel --topics ImageM/1 -f ndjson",
        "cat damaged+garbage.vel --topics OBDDataM -f csv",
        "check all-kinds.vel",
        "check damaged+two-places.vel",
        "check image-size-differs.vel -v",
        "check short-laser.vel -f json",
        "check damaged+garbage.vel --strict";
    vel_hash:
        "params all-kinds.vel",
        "messages all-kinds.vel",
        "vel hash CompassM OBDDataM VelodyneGridMapM",
        "vel hash LaserCloudM CloudLaserM",
        "vel hash CompassM --log unknown-type.vel -f json",
        "vel hash CompassM --log ../ulog/one-topic.ulg",
        "vel hash Straße";
    vel_track:
        "track gps-degrees.vel --to geojson",
        "track gps-ddmm.vel -f csv",
        "track gps-quality.vel --to gpx",
        "track gps-no-date.vel --to geojson",
        "track one-message.vel --to gpx",
        "track all-kinds.vel --topic OBDDataM --to gpx";
}

/// Returns the paths of all files below a folder, sorted by name.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Every command reports messages after an end mark, which are left out.
#[test]
fn messages_after_an_end_mark_are_reported_by_every_command() {
    let commands = [
        "cat LOG",
        "cat LOG -f csv --topics OBDDataM",
        "stats LOG",
        "slice LOG -S +1ms",
        "export LOG --to csv",
        "diff LOG end-mark.vel",
    ];
    assert_reported_by_all(
        "vel",
        "end-mark+tail.vel",
        &commands,
        "2 records are left out; `rovelog recover` keeps them",
    );
    assert_reported_by_all("vel", "end-mark+inside.vel", &commands, "3 records are left out");
    assert_reported_by_all("vel", "short-fixed.vel", &["cat LOG", "recover LOG"], "");
    assert_eq!(run_in("vel", "recover end-mark+tail.vel", b"").status.code(), Some(0));
    assert_eq!(run_in("vel", "recover end-mark+inside.vel", b"").status.code(), Some(3));
}

/// Sorting the extracted files by name sorts them by time. Their extensions follow from their
/// content.
#[test]
fn extracted_files_are_named_by_time_and_content() {
    let place = Place::new("vel", &["images-of-three-sources.vel", "images-of-other-formats.vel"]);
    let extracted = |log: &str| {
        assert!(place.run(&format!("extract {log}.vel -o {log}")).status.success());
        let files = files(&place.path(log)).into_iter().filter(|file| file != "index.csv");
        files.collect::<Vec<_>>()
    };
    let names = extracted("images-of-three-sources");
    let of_first = names.iter().filter(|name| name.starts_with("images/0/")).collect::<Vec<_>>();
    assert_eq!(of_first, ["images/0/0000000000033000000.jpg", "images/0/0000000000132000000.jpg"]);
    let names = extracted("images-of-other-formats");
    assert_eq!(
        names,
        [
            "images/1/0000000000000000000.png",
            "images/1/0000000000100000000.bmp",
            "images/1/0000000000200000000.webp",
            "images/1/0000000000300000000.tif",
            "images/1/0000000000400000000.tif",
        ]
    );
    let index = String::from_utf8(place.read("images-of-other-formats/index.csv")).unwrap();
    for format in ["png", "bmp", "webp", "tiff"] {
        assert!(index.contains(&format!(",{format},")), "{format}: {index}");
    }
}

/// Column names are unique, even if a declared type has a field called `time`.
#[test]
fn columns_of_a_table_have_unique_names() {
    let place = Place::new("vel", &["all-kinds.vel", "own-type.vel"]);
    let compass =
        "message CompassM 100\n  float time deg\n  unsigned int n\n  float version[n] uT\n  string t_ns\n";
    fs::write(place.path("own.types"), compass).unwrap();
    let heads = |folder: &str| -> Vec<Vec<String>> {
        let files = place.names(folder).into_iter().filter(|name| name.contains(".csv"));
        let head = |name: String| {
            let text = String::from_utf8(place.read(&format!("{folder}/{name}"))).unwrap();
            text.lines().next().unwrap().split(',').map(str::to_owned).collect()
        };
        files.map(head).collect()
    };
    for line in
        ["export all-kinds.vel -o all --to csv", "export own-type.vel -o own --to csv --types own.types"]
    {
        let output = place.run(line);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let cat = place.run("cat own-type.vel --topics CompassM --types own.types -f csv").stdout;
    let cat = String::from_utf8(cat).unwrap();
    let mut all = heads("all");
    all.extend(heads("own"));
    all.push(cat.lines().next().unwrap().split(',').map(str::to_owned).collect());
    assert!(all.len() > 6, "{all:?}");
    for head in &all {
        let mut names = head.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), head.len(), "{head:?}");
        assert_eq!(head[..2], ["time", "t_ns"], "{head:?}");
    }
    assert!(all.last().unwrap().contains(&"time_".to_owned()), "{all:?}");
}

/// A plot of a topic draws the measured fields, but not the fields of the message header.
#[test]
fn a_plot_of_a_topic_draws_only_measured_fields() {
    let place = Place::new("vel", &["all-kinds.vel"]);
    let output = place.run("plot all-kinds.vel OBDDataM -o obd.svg");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = String::from_utf8(place.read("obd.svg")).unwrap();
    let draws = |name: &str| svg.contains(&format!(">{name}<"));
    assert!(svg.contains("OBDDataM") && draws("unused0"));
    assert!(!["ts_ms", "version", "offset"].into_iter().any(draws));
    // A field that the user names is drawn.
    assert_eq!(place.run("plot all-kinds.vel OBDDataM.ts_ms -o ms.svg").status.code(), Some(0));
    assert!(String::from_utf8(place.read("ms.svg")).unwrap().contains("ts_ms"));
}

/// Messages of declared types are printed and written like those of built-in types.
#[test]
fn declared_types_work_like_built_in_types() {
    let place = Place::new("vel", &["own-type.vel", "all-kinds.vel"]);
    let compass = "# a compass\nmessage CompassM 100\n  float heading deg\n  unsigned int n\n  float samples[n] uT\n  \
                   string name\n";
    fs::write(place.path("own.types"), compass).unwrap();
    fs::write(place.path("bad.types"), "message CompassM 100\n  flaot heading\n").unwrap();
    let runs = [
        "topics own-type.vel",
        "info own-type.vel --types own.types",
        "topics own-type.vel --types own.types",
        "schema own-type.vel CompassM --types own.types",
        "schema own-type.vel CompassM --raw --types own.types",
        "cat own-type.vel --topics CompassM --types own.types",
        "cat own-type.vel --topics CompassM --types own.types -f ndjson",
        "check own-type.vel --types own.types",
        "slice own-type.vel --topics CompassM -o own.vel --types own.types",
        "cat own.vel --types own.types -f csv",
        "vel hash CompassM OtherM --types own.types",
        "info all-kinds.vel --types bad.types",
        "info all-kinds.vel --types none.types",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("vel_own_types", runs);
}

#[test]
fn written_logs_have_the_expected_records() {
    let place = Place::new(
        "vel",
        &[
            "all-kinds.vel",
            "damaged+garbage.vel",
            "end-mark+tail.vel",
            "end-mark+inside.vel",
            "short-fixed.vel",
            "gps-degrees.vel",
        ],
    );
    let runs = [
        "recover damaged+garbage.vel -o fixed.vel",
        "check fixed.vel",
        "recover all-kinds.vel -o copy.vel",
        "recover end-mark+tail.vel -o tail.vel",
        "cat end-mark+tail.vel",
        "check end-mark+inside.vel",
        "recover end-mark+inside.vel -o inside.vel",
        "check inside.vel",
        "recover short-fixed.vel -o short.vel",
        "check short.vel",
        "slice all-kinds.vel -o cut.vel --topics GPSDataM,ImageM/0",
        "slice gps-degrees.vel -o late.vel -S +3s",
        "info late.vel",
        "split all-kinds.vel -o parts --by-topic",
        "merge cut.vel late.vel -o merged.vel",
        "merge cut.vel late.vel -o merged.vel --time-base utc",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    snapshot!("vel_reshape", runs);
    assert_eq!(place.read("copy.vel"), place.read("all-kinds.vel"));
}

#[test]
fn extract() {
    let place = Place::new(
        "vel",
        &["all-kinds.vel", "image-uncompressed.vel", "velodyne-vlp16.vel", "velodyne-hdl64-s2.vel"],
    );
    let runs = [
        "extract all-kinds.vel -o -",
        "extract all-kinds.vel -o all -S +1000h",
        "extract all-kinds.vel -o all",
        "extract all-kinds.vel -o all",
        "extract image-uncompressed.vel -o raw",
        "extract velodyne-vlp16.vel -o clouds",
        "extract velodyne-hdl64-s2.vel -o hdl",
        "extract velodyne-hdl64-s2.vel -o hdl --only clouds",
        "extract velodyne-vlp16.vel -o ply --cloud ply --only clouds -f json -q",
        "extract velodyne-vlp16.vel -o npz --cloud npz --only clouds",
        "extract velodyne-vlp16.vel -o laz --cloud LAZ --only clouds",
        "extract velodyne-vlp16.vel -o kitti --cloud kitti --only clouds",
        "extract velodyne-vlp16.vel -o packets --only packets",
        "extract velodyne-vlp16.vel -o other --cloud e57",
        "extract velodyne-vlp16.vel -o other --model nonsense",
    ];
    let runs = runs.map(|line| place.shown(line)).join("\n");
    let lists = ["all", "raw", "clouds", "ply", "npz", "laz", "kitti", "packets"].map(|folder| {
        let listed = files(&place.path(folder)).join("\n");
        let index = String::from_utf8(place.read(&format!("{folder}/index.csv"))).unwrap();
        format!("{folder}:\n{listed}\n\n{index}")
    });
    snapshot!("vel_extract", format!("{runs}\n{}", lists.join("\n")));
    // The image is copied unchanged, so its bytes occur in the log.
    let log = place.read("all-kinds.vel");
    let jpeg = files(&place.path("all")).into_iter().find(|name| name.contains(".jpg")).unwrap();
    let jpeg = place.read(&format!("all/{jpeg}"));
    assert!(jpeg.starts_with(&[0xFF, 0xD8]) && log.windows(jpeg.len()).any(|window| window == jpeg));
    // Both formats contain the same points.
    let list = files(&place.path("clouds"));
    let cloud = |extension: &str| {
        place.read(&format!("clouds/{}", list.iter().find(|n| n.ends_with(extension)).unwrap()))
    };
    let body = |bytes: &[u8], end: &[u8]| {
        let at = bytes.windows(end.len()).position(|window| window == end).unwrap();
        bytes[at + end.len()..].to_vec()
    };
    let (ply, pcd) = (body(&cloud(".ply"), b"end_header\n"), body(&cloud(".pcd"), b"DATA binary\n"));
    assert!(ply == pcd && ply.len() % 22 == 0 && !ply.is_empty());
}

/// Messages that viewers cannot display are a loss, unless the raw bytes are written.
#[test]
fn export_mcap() {
    let place = Place::new(
        "vel",
        &[
            "all-kinds.vel",
            "image-no-jpeg.vel",
            "own-type.vel",
            "velodyne-few-packets.vel",
            "velodyne-vlp16.vel",
        ],
    );
    let runs = [
        "export all-kinds.vel -o all.mcap",
        "export all-kinds.vel -o raw.mcap --raw",
        "export all-kinds.vel -o plain.mcap --no-typed",
        "export image-no-jpeg.vel -o image.mcap",
        "export own-type.vel -o own.mcap",
        "export own-type.vel -o own-raw.mcap --raw",
        "export velodyne-few-packets.vel -o few.mcap -f json",
        "export velodyne-vlp16.vel -o clouds.mcap",
        "export velodyne-vlp16.vel -o none.mcap --full",
        "export velodyne-vlp16.vel -o none.csv --raw",
    ];
    snapshot!("vel_export_mcap", runs.map(|line| place.shown(line)).join("\n"));
}

/// If an HDL-64E log lacks its calibration, point clouds are exported with the calibration of a
/// file.
#[test]
fn export_mcap_with_a_calibration() {
    let place = Place::new("vel", &["velodyne-hdl64-s2.vel", "velodyne-vlp16.vel"]);
    let laser = |id: i32| {
        format!("<item><px><id_>{id}</id_><vertCorrection_>{}</vertCorrection_></px></item>", id / 3 - 20)
    };
    let lasers: String = (0..64).map(laser).collect();
    fs::write(place.path("db.xml"), format!("<DB><points_>{lasers}</points_></DB>")).unwrap();
    fs::write(place.path("half.xml"), format!("<DB><points_>{}</points_></DB>", laser(1))).unwrap();
    let runs = [
        "export velodyne-hdl64-s2.vel -o without.mcap",
        "export velodyne-hdl64-s2.vel -o with.mcap --calibration db.xml",
        "export velodyne-hdl64-s2.vel -o half.mcap --calibration half.xml",
        "export velodyne-hdl64-s2.vel -o none.mcap --calibration none.xml",
        "export velodyne-vlp16.vel -o model.mcap --model VLP-16",
        "export velodyne-vlp16.vel -o none.mcap --model nonsense",
        "export velodyne-vlp16.vel -o none.ndjson --model VLP-16",
        "export velodyne-vlp16.vel -o none.mcap --calibration db.xml --no-typed",
        "export ../ulog/one-topic.ulg -o none.mcap --calibration db.xml",
        "extract velodyne-hdl64-s2.vel -o clouds --only clouds --cloud ply --calibration db.xml",
    ];
    snapshot!("vel_export_mcap_calibration", runs.map(|line| place.shown(line)).join("\n"));
    assert!(place.read("with.mcap").len() > place.read("without.mcap").len());
}

/// A log from a pipe gives the same records.
#[test]
fn a_pipe_is_read_in_a_single_pass() {
    let log = fs::read(rovelog_testing::root().join("corpus/vel/all-kinds.vel")).unwrap();
    let of_file = run_in("vel", "info all-kinds.vel --get records", b"");
    let of_pipe = run_in("vel", "info --get records", &log);
    assert_eq!(of_file.stdout, of_pipe.stdout);
    let of_file = run_in("vel", "check image-size-differs.vel -f json", b"");
    assert_eq!(of_file.status.code(), Some(0));
}

/// If memory is too small, a command ends with an error message instead of an abort.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_an_error() {
    let place = Place::new("vel", &[]);
    let (width, height) = (6000_i32, 4000_i32);
    let data = vec![0; 24_000_000];
    let mut image = [0, 0, width, height, 24_000_000].map(i32::to_le_bytes).concat();
    image.extend(data);
    let message = NewMessage::raw(0x0001_09C9, 100, 1.0, image);
    let mut log = Vec::new();
    write_log(&[message], &WriteOptions::default(), &mut log).unwrap();
    fs::write(place.path("big.vel"), log).unwrap();
    let mut refused = 0;
    let program = assert_cmd::cargo::cargo_bin!("rovelog");
    for (i, kilobytes) in (30_000..200_000).step_by(10_000).enumerate() {
        // With even less memory, the system cannot start the program.
        let starts = std::process::Command::new("sh")
            .args(["-c", "ulimit -v $1 && exec $0 --version"])
            .arg(program)
            .arg(kilobytes.to_string())
            .output()
            .unwrap();
        if !starts.status.success() {
            continue;
        }
        let output = std::process::Command::new("sh")
            .current_dir(place.path("."))
            .env("RUST_BACKTRACE", "0")
            .args(["-c", "ulimit -v $1 && exec $0 extract big.vel -o $2"])
            .arg(program)
            .args([kilobytes.to_string(), format!("out{i}")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1 | 127)), "{kilobytes} kB: {:?} {said}", output.status);
        if code == Some(1) {
            assert!(said.contains("error:") && said.contains("memory"), "{kilobytes} kB: {said}");
            refused += 1;
        }
    }
    assert!(refused > 0, "no run was out of memory");
}
