//! Output files. An output never overwrites an input, and appears atomically, even after a signal.

mod common;

use std::fs;
#[cfg(unix)]
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Place;

fn rovelog(place: &Place, line: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rovelog"));
    command.args(line.split(' ')).current_dir(place.path("."));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns a folder with a recording of two parts and its ambient file.
fn parts() -> Place {
    let place = Place::new("rld", &["v4.rld", "ambient.rld"]);
    assert_eq!(place.run("split v4.rld -o parts --every 5ms").status.code(), Some(0));
    for name in place.names("parts") {
        fs::rename(place.path("parts").join(&name), place.path(&name.replace("v4", "set"))).unwrap();
    }
    fs::rename(place.path("ambient.rld"), place.path("set-ambient.rld")).unwrap();
    fs::remove_dir(place.path("parts")).unwrap();
    place
}

#[test]
fn no_part_of_the_input_is_overwritten() {
    let place = parts();
    assert!(place.names(".").contains(&"set_p1.rld".to_owned()), "{:?}", place.names("."));
    let lines = [
        "recover set.rld -o OUT",
        "slice set.rld -o OUT",
        "merge set.rld -o OUT",
        "scrub set.rld -o OUT",
        "rld csv set.rld -o OUT",
        "export set.rld -o OUT --to csv --topics samples",
        "export set.rld -o OUT --to mcap",
        "export set.rld -o OUT --to ndjson",
        "export set.rld -o OUT --to csv --dialect rocketlogger",
        "plot set.rld --all -o OUT --to svg",
        "split set.rld -o . --every 1h",
    ];
    #[cfg(unix)]
    std::os::unix::fs::symlink("set_p1.rld", place.path("link")).unwrap();
    fs::hard_link(place.path("set_p1.rld"), place.path("hard")).unwrap();
    let before: Vec<_> = place.names(".").iter().map(|name| (name.clone(), place.read(name))).collect();
    for line in lines {
        for out in [
            "set_p1.rld",
            "./set-ambient.rld",
            "hard",
            #[cfg(unix)]
            "link",
        ] {
            let line = format!("{} --force", line.replace("OUT", out));
            let output = place.run(&line);
            let said = String::from_utf8(output.stderr).unwrap();
            let refused = said.contains("the output file is also the input file");
            assert!(output.status.code() == Some(2) && refused, "{line}: {said}");
            let after: Vec<_> =
                place.names(".").iter().map(|name| (name.clone(), place.read(name))).collect();
            assert!(before == after, "{line}");
        }
    }
}

#[test]
fn no_file_given_by_an_option_is_overwritten() {
    let place = Place::new("vel", &["velodyne-hdl64-s2.vel", "own-type.vel"]);
    let laser =
        |id: i32| format!("<item><px><id_>{id}</id_><vertCorrection_>{id}</vertCorrection_></px></item>");
    let calibration = format!("<DB><points_>{}</points_></DB>", (0..64).map(laser).collect::<String>());
    let types = "message CompassM 100\n  float heading deg\n";
    fs::write(place.path("db.xml"), &calibration).unwrap();
    fs::write(place.path("own.types"), types).unwrap();
    fs::write(place.path("own.msg"), "int32 x\n").unwrap();
    for line in [
        "export velodyne-hdl64-s2.vel -o db.xml --to mcap --calibration db.xml --force",
        "slice own-type.vel -o own.types --types own.types --force",
        "recover own-type.vel -o own.types --types own.types --force",
        "recover own-type.vel -o own.msg --msgs own.msg --force",
    ] {
        let output = place.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("the output file is also the input file"), "{line}: {said}");
    }
    assert_eq!(place.read("db.xml"), calibration.as_bytes());
    assert_eq!(place.read("own.types"), types.as_bytes());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_with_the_name_of_the_output() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    for line in [
        "slice one-topic.ulg",
        "recover one-topic.ulg",
        "merge one-topic.ulg",
        "export one-topic.ulg --to mcap",
        "export one-topic.ulg --to ndjson",
        "export one-topic.ulg --to csv",
        "export one-topic.ulg --to parquet",
        "export one-topic.ulg --to arrow",
        "plot one-topic.ulg t --to svg",
        "plot one-topic.ulg t --to png",
    ] {
        let output = place.run(&format!("{line} -o /dev/full"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        let first = said.lines().next().unwrap();
        assert!(
            first.starts_with("error: cannot write the output: ") && first.ends_with(": /dev/full"),
            "{line}: {said}"
        );
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = rovelog(&place, line).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.starts_with("error: cannot write the results: "), "{line}: {said}");
        assert!(!said.contains("one-topic.ulg"), "{line}: {said}");
    }
}

/// Writes a log with rows over a long time, so that writing and splitting it takes a while.
fn long_log(place: &Place, rows: u64) {
    let mut log = place.read("one-topic.ulg");
    let row = log[log.len() - 17..].to_vec();
    let last = u64::from_le_bytes(row[5..13].try_into().unwrap());
    for number in 1..=rows {
        log.extend(&row[..5]);
        log.extend((last + number * 1000).to_le_bytes());
        log.extend(&row[13..]);
    }
    fs::write(place.path("long.ulg"), log).unwrap();
}

/// Waits until the command has started to write. Returns true if the command is still running.
fn wait_for(child: &mut Child, has_started: impl Fn() -> bool) {
    let started = Instant::now();
    while !has_started() {
        assert!(child.try_wait().unwrap().is_none(), "the command ended before it wrote anything");
        assert!(started.elapsed() < Duration::from_mins(1), "nothing is written");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(unix)]
fn any_file(folder: &Path, ending: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::new("ulog", &["one-topic.ulg"]);
    long_log(&place, 1_000_000);
    let before = place.names(".");
    let lines = [
        // stdin stays open, so this command blocks after it has created its output.
        ("recover - -o out.ulg", ".", ".partial"),
        ("export long.ulg -o out.mcap", ".", ".partial"),
        ("export long.ulg -o out.ndjson", ".", ".partial"),
        ("export long.ulg -o new/tables --to csv", "new/tables", ".partial"),
        // Complete parts are removed too, because the set of parts is incomplete.
        ("split long.ulg -o new/parts --every 1s", "new/parts", "_0001.ulg"),
    ];
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        for (line, folder, ending) in lines {
            let mut child = rovelog(&place, line).spawn().unwrap();
            let stdin = child.stdin.take();
            wait_for(&mut child, || any_file(&place.path(folder), ending));
            let sent = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
            assert!(sent.unwrap().success());
            let output = child.wait_with_output().unwrap();
            drop(stdin);
            assert_eq!(
                output.status.signal(),
                Some(number),
                "{line}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(place.names("."), before, "{signal} {line}");
        }
    }
}

/// A signal that was ignored at the start of the process, as with `nohup`, does not end the
/// command.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_signal_stays_ignored() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    let binary = assert_cmd::cargo::cargo_bin!("rovelog");
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP INT; exec \"$0\" recover - -o out.ulg -q"])
        .arg(binary)
        .current_dir(place.path("."))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    wait_for(&mut child, || place.path("out.ulg.partial").exists());
    for signal in ["-HUP", "-INT"] {
        assert!(Command::new("kill").arg(signal).arg(child.id().to_string()).status().unwrap().success());
    }
    std::io::Write::write_all(&mut stdin, &place.read("one-topic.ulg")).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(place.read("out.ulg"), place.read("one-topic.ulg"));
}

/// Commands that write to stdout handle no signals, so a signal ends them immediately.
#[cfg(unix)]
#[test]
fn a_signal_ends_a_command_that_writes_to_stdout() {
    use std::io::Read as _;
    use std::os::unix::process::ExitStatusExt as _;
    let place = Place::new("ulog", &["one-topic.ulg"]);
    long_log(&place, 100_000);
    let mut child = rovelog(&place, "cat long.ulg").spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0; 10]).unwrap();
    assert!(Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}

/// An error about the folder of an output names the output and not its partial file.
#[test]
fn a_missing_folder_is_reported_with_the_name_of_the_output() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    let output = place.run("export one-topic.ulg -o none/out.ndjson");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().next().is_some_and(|line| line.ends_with("none/out.ndjson")), "{said}");
}

/// The partial file of a killed process is replaced. The partial file of a running process is an
/// error.
#[cfg(unix)]
#[test]
fn a_partial_file_is_replaced_unless_a_process_has_locked_it() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    let mut child = rovelog(&place, "recover - -o out.ulg").spawn().unwrap();
    wait_for(&mut child, || place.path("out.ulg.partial").exists());
    let refused = place.run("recover one-topic.ulg -o out.ulg --force");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.starts_with("error: another run of rovelog is writing this output file: out.ulg.partial\n"),
        "{said}"
    );
    // `kill` sends SIGKILL, which the process cannot handle.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.path("out.ulg.partial").exists());
    assert_eq!(place.run("recover one-topic.ulg -o out.ulg").status.code(), Some(0));
    assert_eq!(place.names("."), ["one-topic.ulg", "out.ulg"]);
    assert_eq!(place.read("out.ulg"), place.read("one-topic.ulg"));
}

/// Writes a bag with a topic whose name is longer than a file name may be.
fn bag_with_a_long_topic(place: &Place) {
    let long = format!("/chatter{}", "/deeply".repeat(500));
    let mut bag = Vec::new();
    let read = place.read("recorded.bag");
    let mut rest = &read[..];
    let line = rest.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bag.extend(&rest[..line]);
    rest = &rest[line..];
    // A record is the length of its header, the header, the length of its data, and the data.
    while rest.len() > 4 {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let (header, after) = rest[4..].split_at(word(rest));
        let (data, after) = after[4..].split_at(word(after));
        let mut fields = header;
        let mut changed = Vec::new();
        while fields.len() > 4 {
            let (field, next) = fields[4..].split_at(word(fields));
            fields = next;
            let field = if field == b"topic=/chatter" {
                [&b"topic="[..], long.as_bytes()].concat()
            } else {
                field.to_vec()
            };
            changed.extend(u32::try_from(field.len()).unwrap().to_le_bytes());
            changed.extend(field);
        }
        bag.extend(u32::try_from(changed.len()).unwrap().to_le_bytes());
        bag.extend(changed);
        bag.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
        bag.extend(data);
        rest = after;
    }
    fs::write(place.path("long.bag"), bag).unwrap();
}

#[test]
fn long_topic_names_become_short_file_names() {
    let place = Place::new("rosbag", &["recorded.bag"]);
    bag_with_a_long_topic(&place);
    for line in [
        "export long.bag -o csv --to csv -q",
        "export long.bag -o parquet/ --to parquet -q",
        "split long.bag -o parts --by-topic -q",
    ] {
        let output = place.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{line}: {said}");
    }
    for folder in ["csv", "parquet", "parts"] {
        let names = place.names(folder);
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(
            names[0].starts_with("long_") && names[0].contains("chatter_deeply") && names[0].len() < 140,
            "{names:?}"
        );
    }
}

#[test]
fn a_file_with_all_topics_is_named_in_the_message() {
    let place = Place::new("ulog", &["one-topic.ulg"]);
    fs::create_dir(place.path("there")).unwrap();
    for line in ["export one-topic.ulg -o d/ --to ndjson", "export one-topic.ulg -o there --to mcap"] {
        let output = place.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(2) && said.contains("next: name a file in the folder: -o "),
            "{line}: {said}"
        );
    }
}

#[test]
fn a_log_without_records_becomes_an_empty_file() {
    let place = Place::new("rosbag", &["no-messages.bag"]);
    for line in ["-o x.mcap", "-o x.ndjson", "-o x.bag", "-o tables --to csv", "-o x.csv", "--to csv"] {
        let output = place.run(&format!("export no-messages.bag {line}"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    }
    assert!(
        place.read("x.mcap").starts_with(b"\x89MCAP0\r\n")
            && place.read("x.mcap").ends_with(b"\x89MCAP0\r\n")
    );
    assert!(place.read("x.bag").starts_with(b"#ROSBAG V2.0\n"));
    assert!(place.read("x.ndjson").is_empty() && !place.path("x.csv").exists());
}
