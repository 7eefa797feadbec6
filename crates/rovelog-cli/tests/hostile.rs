//! Small hostile logs of many kinds. The time and memory of commands must grow at most linearly.
//! `cargo xtask hostile` tests large logs.
#![cfg(target_os = "linux")]

use std::process::Command;

/// Size of each log in bytes.
const SIZE: &str = "1000000";

#[test]
fn time_and_memory_grow_with_the_log() {
    let script = rovelog_testing::root().join("oracle/hostile.py");
    let mut python = Command::new("python3");
    python.arg("-B").arg(script).arg(assert_cmd::cargo::cargo_bin!("rovelog")).args([SIZE, "--quick"]);
    let output = python.output().expect("python3");
    let (table, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}\n{errors}");
}
