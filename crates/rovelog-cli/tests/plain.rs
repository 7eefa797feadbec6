//! A build without features says what it lacks and how to get it. A build of
//! the whole workspace has all features, so this is run alone: `cargo test -p rovelog-cli --test plain`.
#![cfg(not(any(feature = "lake", feature = "remote", feature = "view")))]

use assert_cmd::Command;

fn refused(args: &[&str]) -> String {
    let output = Command::cargo_bin("rovelog").unwrap().args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_not_built_in_is_named_with_its_feature() {
    for (args, feature) in [
        (&["ingest", "logs/", "-o", "lake/"][..], "lake"),
        (&["lake", "check", "lake/"], "lake"),
        (&["view", "logs/"], "view"),
        (&["info", "s3://bucket/log.ulg"], "remote"),
    ] {
        let said = refused(args);
        assert!(said.contains("this build of rovelog"), "{said}");
        assert!(said.contains(&format!("cargo install rovelog-cli --features {feature}")), "{said}");
    }
}
