//! Runs the example programs of a crate. Cargo builds them together with the tests of the crate.

use std::path::Path;
use std::process::Command;

use crate::root;

/// An example program: its name, its arguments, and a line that it must print. Paths in arguments
/// are relative to the root of the workspace.
pub type Example<'a> = (&'a str, &'a [&'a str], &'a str);

/// Runs `examples`, and checks that the crate at `folder` has no other examples.
pub fn run_examples(folder: &str, examples: &[Example<'_>]) {
    let entries = std::fs::read_dir(Path::new(folder).join("examples")).expect("the crate has examples");
    let mut found: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    found.sort();
    let found: Vec<_> = found.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
    let mut listed: Vec<_> = examples.iter().map(|example| example.0).collect();
    listed.sort_unstable();
    assert_eq!(found, listed, "every example has a run, and every run its example");
    for (name, args, line) in examples {
        let printed = run(name, args);
        assert!(
            printed.lines().any(|found| found == *line),
            "{name} prints no line `{line}`, but:\n{printed}"
        );
    }
}

/// Runs an example program and returns its output.
fn run(name: &str, args: &[&str]) -> String {
    // The test program is in target/PROFILE/deps, and the examples are in target/PROFILE/examples.
    let test = std::env::current_exe().expect("a test is a program");
    let profile = test.ancestors().nth(2).expect("target/PROFILE");
    let program = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.is_file(), "{name} is not built: cargo test without --test builds it");
    let output = Command::new(program).args(args).current_dir(root()).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} ended with {}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("examples print UTF-8")
}
