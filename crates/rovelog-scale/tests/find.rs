//! The search for logs in files, folders, archives and patterns.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use rovelog_scale::{LogFile, find};

/// Returns the paths of the logs in a folder, or of those that match a pattern, relative to `top`.
fn found(top: &Path, source: &str) -> Vec<String> {
    let logs = find(&[top.join(source).to_string_lossy()]).expect("there are logs");
    for log in &logs {
        // Otherwise, the log would count as changed after it was found.
        assert_eq!(LogFile::at(Path::new(&log.uri)).expect("it is there"), *log);
    }
    let inside = |log: &LogFile| {
        let path = Path::new(&log.uri).strip_prefix(top).expect("inside");
        path.to_string_lossy().replace('\\', "/")
    };
    logs.iter().map(inside).collect()
}

fn write(folder: &Path, names: &[&str]) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, name).expect("space");
    }
}

/// Files that are read together with a log are not listed, and all other files are.
#[test]
fn the_files_of_a_recording_are_one_log() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        folder.path(),
        &[
            "a.rld",
            "a_p1.rld.gz",
            "a_p2.rld",
            "a-ambient.rld",
            "a-ambient_p1.rld.xz",
            "a_p4.rld",
            "b.rld.zst",
            "b_p1.rld",
            "c_p1.rld",
            "d.ulg",
            "d_p1.ulg",
            "sub/a_p1.rld",
        ],
    );
    let flat = ["a.rld", "a_p4.rld", "b.rld.zst", "c_p1.rld", "d.ulg", "d_p1.ulg"];
    let all = [&flat[..], &["sub/a_p1.rld"]].concat();
    assert_eq!(found(folder.path(), ""), all);
    assert_eq!(found(folder.path(), "**/*"), all);
    assert_eq!(found(folder.path(), "*"), flat);
    assert_eq!(found(folder.path(), "?_p*.rld"), ["a_p4.rld", "c_p1.rld"]);
    // The size and the hash cover all files.
    let log = LogFile::at(&folder.path().join("a.rld")).expect("it is there");
    let names = ["a.rld", "a_p1.rld.gz", "a_p2.rld", "a-ambient.rld", "a-ambient_p1.rld.xz"].concat();
    assert_eq!(log.size, names.len() as u64);
    let mut bytes = String::new();
    log.bytes().expect("files").read_to_string(&mut bytes).expect("text");
    assert_eq!(bytes, names);
}

#[cfg(unix)]
#[test]
fn patterns_match_names_and_end_at_loops() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = tempfile::tempdir().expect("a folder");
    let top = folder.path();
    write(top, &["a.ulg", "b/run5/c.ulg", "b/d.bag", ".e.ulg", ".f/g.ulg", "b/.h/i.ulg"]);
    fs::write(top.join(std::ffi::OsStr::from_bytes(b"j-\xe4.ulg")), "").expect("space");
    for (target, link) in [(".", "first"), (".", "second"), ("..", "b/up"), ("run5", "b/latest")] {
        std::os::unix::fs::symlink(target, top.join(link)).expect("a link");
    }
    for (pattern, expected) in [
        ("*.ulg", &["a.ulg"][..]),
        ("**/*.ulg", &["a.ulg", "b/run5/c.ulg"]),
        ("b/**/*.ulg", &["b/run5/c.ulg", "b/up/a.ulg"]),
        ("**/d.*", &["b/d.bag"]),
        ("*/*.bag", &["b/d.bag"]),
        ("**/latest/*.ulg", &["b/latest/c.ulg"]),
        ("[ab]/run?/*", &["b/run5/c.ulg"]),
        ("b/**", &["b/d.bag", "b/run5/c.ulg", "b/up/a.ulg"]),
        (".*.ulg", &[".e.ulg"]),
        ("**/.*/*.ulg", &[".f/g.ulg", "b/.h/i.ulg"]),
    ] {
        assert_eq!(found(top, pattern), expected, "{pattern}");
    }
    for nothing in ["*.rld", "none/*.ulg", "*/"] {
        assert!(find(&[top.join(nothing).to_string_lossy()]).is_err(), "{nothing}");
    }
    let error = find(&[top.join("a***").to_string_lossy()]).unwrap_err().to_string();
    assert!(error.contains("cannot be searched"), "{error}");
}
