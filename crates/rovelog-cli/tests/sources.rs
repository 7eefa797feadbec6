//! Tests of the search for logs in folders.
#![cfg(unix)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rovelog_testing::root;

fn rovelog(args: &[&OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rovelog")).args(args).output().expect("it starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Copies a log of the corpus.
fn copy(log: &str, to: &Path) {
    fs::copy(root().join("corpus").join(log), to).expect("space");
}

/// Returns the paths of the logs that `rovelog info` lists in a folder or for a pattern, and its
/// error messages.
fn listed(source: &Path) -> (Vec<String>, String) {
    let output = rovelog(&["info".as_ref(), "-f".as_ref(), "csv".as_ref(), source.as_ref()]);
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    let paths = text.lines().skip(1).filter_map(|line| line.split(',').next());
    (paths.map(str::to_owned).collect(), stderr(&output))
}

#[test]
fn links_and_strange_names_do_not_stop_a_search() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("a folder");
    copy("ulog/one-topic.ulg", &inside.join("a.ulg"));
    fs::write(inside.join(OsStr::from_bytes(b"notes-\xe4.txt")), "").expect("space");
    fs::create_dir(inside.join(".hidden")).expect("a folder");
    copy("ulog/one-topic.ulg", &inside.join(".hidden/b.ulg"));
    for name in ["first", "second"] {
        symlink(".", inside.join(name)).expect("a link");
    }
    let log = inside.join("a.ulg").to_string_lossy().into_owned();
    assert_eq!(listed(&inside), (vec![log.clone()], String::new()));
    assert_eq!(listed(&inside.join("*.ulg")), (vec![log.clone()], String::new()));

    // A log that cannot be read is reported, and the others are read.
    symlink("nowhere.ulg", inside.join("latest.ulg")).expect("a link");
    copy("ulog/one-topic.ulg", &inside.join(OsStr::from_bytes(b"c-\xe4.ulg")));
    for source in [inside.clone(), inside.join("*.ulg")] {
        let (logs, errors) = listed(&source);
        assert_eq!(logs, [log.as_str()], "{errors}");
        assert!(errors.contains("latest.ulg"), "{errors}");
        assert_eq!(errors.contains("c-\u{fffd}.ulg"), source == inside, "no pattern matches this name");
    }

    // Another folder is searched once, however many links lead to it.
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    copy("ulog/one-topic.ulg", &outside.join("d.ulg"));
    let links = folder.path().join("links");
    fs::create_dir(&links).expect("a folder");
    for name in ["first", "second"] {
        symlink(&outside, links.join(name)).expect("a link");
    }
    assert_eq!(listed(&links).0.len(), 1);
}

/// Each file that is added to a recording of several files changes its size, so a lake reads the
/// recording again.
#[test]
fn later_files_of_a_recording_are_added_to_a_lake() {
    let folder = tempfile::tempdir().expect("a folder");
    let (parts, logs, lake) =
        (folder.path().join("parts"), folder.path().join("logs"), folder.path().join("lake"));
    let whole = root().join("corpus/rld/data-sizes.rld");
    let options = ["-o".as_ref(), parts.as_os_str(), "--size".as_ref(), "500".as_ref()];
    let split = rovelog(&[&["split".as_ref(), whole.as_os_str()][..], &options].concat());
    assert!(split.status.success(), "{}", stderr(&split));
    let mut files: Vec<PathBuf> =
        fs::read_dir(&parts).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    assert!(files.len() > 1, "{files:?}");
    fs::create_dir(&logs).expect("a folder");
    let mut added = Vec::new();
    for file in &files {
        fs::copy(file, logs.join(file.file_name().expect("a file"))).expect("space");
        let output = rovelog(&["ingest".as_ref(), logs.as_ref(), "-o".as_ref(), lake.as_ref()]);
        assert!(stderr(&output).contains("1 added"), "{}", stderr(&output));
        added.push(stderr(&output));
    }
    assert!(!added[0].contains("with other content") && added[1].contains("with other content"), "{added:?}");
}
