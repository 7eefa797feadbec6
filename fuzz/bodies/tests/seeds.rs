//! Runs the function of each fuzz target on the seeds of this target. Seeds are small inputs that
//! reach all code that fuzzing has reached. `cargo xtask fuzz` updates them.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;

/// Size in bytes of the blocks in a tar archive.
const BLOCK: usize = 512;

/// Returns the content of each file in an archive. The archive must be in the ustar format, without
/// folders and long names.
fn files(archive: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    let mut rest = archive;
    while let Some((head, content)) = rest.split_at_checked(BLOCK)
        && head[0] != 0
    {
        assert_eq!(&head[257..262], b"ustar");
        let digits = std::str::from_utf8(&head[124..135]).expect("digits");
        let size = usize::from_str_radix(digits, 8).expect("an octal number");
        files.push(&content[..size]);
        rest = &content[size.next_multiple_of(BLOCK)..];
    }
    files
}

#[test]
fn every_body_returns_for_its_seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds");
    let mut seeds = 0;
    for (name, body) in fuzz_bodies::ALL {
        let packed = std::fs::read(folder.join(format!("{name}.tar.gz"))).expect("every target has seeds");
        let mut archive = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut archive).expect("an archive");
        let inputs = files(&archive);
        assert!(!inputs.is_empty(), "{name} has no seeds");
        seeds += inputs.len();
        inputs.into_iter().for_each(body);
    }
    assert!(seeds > 1000, "only {seeds} seeds");
}

// If a fuzz target is missing in the list, these tests do not run it.
#[test]
fn every_target_is_in_the_list() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz_targets");
    let mut names: Vec<_> = std::fs::read_dir(targets)
        .expect("the folder of the targets")
        .map(|entry| {
            entry.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    let mut listed: Vec<_> = fuzz_bodies::ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(names, listed);
}
