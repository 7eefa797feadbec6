//! Tests of output files, mainly for failures and for several processes that write the same output.

use super::*;

const FORCE: OutArgs = OutArgs { force: true };

fn failure<T>(result: Result<T, Failure>) -> String {
    format!("{:?}", result.map(|_| ()).unwrap_err())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_name_may_have_all_255_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let long = |end: &str| format!("{}{end}", "ä".repeat(126));
    for (name, other) in [("x".repeat(248), "y".repeat(248)), (long("one"), long("two"))] {
        let place = |name: &str| folder.path().join(name);
        let mut first = OutFile::create(&place(&name), &[], OutArgs::default()).unwrap();
        let second = OutFile::create(&place(&other), &[], OutArgs::default()).unwrap();
        first.write_all(b"one").unwrap();
        drop(second);
        first.finish().unwrap();
        assert_eq!(fs::read(place(&name)).unwrap(), b"one");
    }
    let partial = partial::path(Path::new(&"x".repeat(255)));
    assert_eq!(partial.as_os_str().len(), 255);
    assert_eq!(partial, partial::path(Path::new(&"x".repeat(255))));
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gpx");
    let mut out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
    out.write_all(b"one").unwrap();
    assert_eq!(names(folder.path()), ["out.gpx.partial"]);
    out.finish().unwrap();
    assert_eq!(names(folder.path()), ["out.gpx"]);
    assert!(failure(OutFile::create(&path, &[], OutArgs::default())).contains("already exists"));
    let mut out = OutFile::create(&path, &[], FORCE).unwrap();
    out.write_all(b"lost").unwrap();
    drop(out);
    assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, b"one".to_vec()));
}

#[test]
fn a_partial_file_is_replaced_unless_it_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gpx");
    let partial = folder.path().join("out.gpx.partial");
    fs::write(&partial, "left by a run that was killed, and longer than the output").unwrap();
    let mut out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
    for args in [OutArgs::default(), FORCE] {
        let refused = failure(OutFile::create(&path, &[], args));
        assert!(refused.contains("another run of rovelog is writing this output"), "{refused}");
    }
    out.write_all(b"new").unwrap();
    out.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    fs::create_dir(&partial).unwrap();
    assert!(failure(OutFile::create(&path, &[], FORCE)).contains("cannot write the output"));
}

#[test]
fn a_file_that_appears_meanwhile_stays_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.gpx");
    let out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
    fs::write(&path, "of another run").unwrap();
    assert!(failure(out.finish()).contains("while the output was written"));
    assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, b"of another run".to_vec()));
    fs::remove_file(&path).unwrap();
    let out = OutFile::create(&path, &[], FORCE).unwrap();
    fs::write(&path, "of another run").unwrap();
    out.finish().unwrap();
    assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, Vec::new()));
}

#[test]
fn a_folder_is_kept_completely_or_not_at_all() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/b");
    let write = |folder: &OutFolder, name: &str| {
        folder.file(&path.join(name), &[]).and_then(OutFile::finish).unwrap();
    };
    let folder = OutFolder::create(&path, OutArgs::default()).unwrap();
    folder.folder("images/0").unwrap();
    write(&folder, "images/0/1.jpg");
    write(&folder, "index.csv");
    assert_eq!(names(&path), ["images", "index.csv"]);
    drop(folder);
    assert!(names(root.path()).is_empty());
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("other"), "").unwrap();
    fs::write(path.join("replaced"), "").unwrap();
    let folder = OutFolder::create(&path, FORCE).unwrap();
    write(&folder, "replaced");
    write(&folder, "new");
    drop(folder);
    assert_eq!(names(&path), ["other", "replaced"]);
    let folder = OutFolder::create(&path, OutArgs::default()).unwrap();
    write(&folder, "new");
    folder.finish().unwrap();
    assert_eq!(names(&path), ["new", "other", "replaced"]);
}

#[test]
#[cfg(unix)]
fn an_output_is_never_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("a.ulg");
    let (linked, hard) = (folder.path().join("linked"), folder.path().join("hard"));
    fs::write(&log, b"log").unwrap();
    std::os::unix::fs::symlink(&log, &linked).unwrap();
    fs::hard_link(&log, &hard).unwrap();
    let inputs = [log.clone()];
    for path in [&log, &linked, &hard] {
        let refused = failure(OutFile::create(path, &inputs, FORCE));
        assert!(refused.contains("the output file is also the input file"), "{refused}");
    }
    let partial = folder.path().join("out.partial");
    fs::rename(&hard, &partial).unwrap();
    let out = folder.path().join("out");
    let refused = failure(OutFile::create(&out, &inputs, FORCE));
    assert!(refused.contains("the output file is also the input file"), "{refused}");
    assert_eq!(fs::read(&log).unwrap(), b"log");
}

#[test]
#[cfg(unix)]
fn the_target_of_a_link_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let (link, chain) = (folder.path().join("link"), folder.path().join("chain"));
    std::os::unix::fs::symlink("there", &link).unwrap();
    std::os::unix::fs::symlink(&link, &chain).unwrap();
    for (args, text) in [(OutArgs::default(), "dangling"), (FORCE, "replaced")] {
        let mut file = OutFile::create(&chain, &[], args).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(folder.path().join("there")).unwrap(), text.as_bytes());
        assert_eq!(names(folder.path()), ["chain", "link", "there"]);
        assert!(fs::symlink_metadata(&chain).unwrap().is_symlink());
    }
    fs::remove_file(&chain).unwrap();
    std::os::unix::fs::symlink("chain", &chain).unwrap();
    assert!(failure(OutFile::create(&chain, &[], FORCE)).contains("cannot write the output"));
}

#[test]
#[cfg(unix)]
fn a_replaced_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "old").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set(0o600);
    let out = OutFile::create(&path, &[], FORCE).unwrap();
    assert_eq!(mode(&folder.path().join("out.partial")), 0o600);
    out.finish().unwrap();
    assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, Vec::new()));
    set(0o400);
    assert!(failure(OutFile::create(&path, &[], FORCE)).contains("write-protected"));
    assert_eq!(names(folder.path()), ["out"]);
}

#[test]
#[cfg(unix)]
fn a_device_is_written_in_place() {
    let mut out = OutFile::create(Path::new("/dev/null"), &[], OutArgs::default()).unwrap();
    out.write_all(b"x").unwrap();
    out.finish().unwrap();
}
