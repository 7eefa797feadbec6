//! The committed header must be what cbindgen generates. Its comments are also compared without
//! cbindgen, which few machines have.

use std::fs;
use std::process::Command;

use rovelog_testing::{root, skipped};

#[test]
fn the_header_is_up_to_date() {
    let folder = root().join("crates/rovelog-ffi");
    let mut cbindgen = Command::new("cbindgen");
    let Ok(output) =
        cbindgen.current_dir(&folder).args(["--quiet", "--config", "cbindgen.toml", "."]).output()
    else {
        return skipped("cbindgen is not installed: cargo install cbindgen --version 0.29.2");
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let header = folder.join("include/rovelog.h");
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(&header, &output.stdout).expect("the header is writable");
    }
    let committed = fs::read_to_string(&header).expect("the header exists");
    let generated = String::from_utf8(output.stdout).expect("a header is UTF-8");
    assert_eq!(committed, generated, "write it with BLESS=1 cargo test -p rovelog-ffi --test header");
}

/// The comments of the public functions, structs and constants in `border.rs` are in the header.
#[test]
fn the_header_has_all_comments() {
    let folder = root().join("crates/rovelog-ffi");
    let source = fs::read_to_string(folder.join("src/border.rs")).expect("the source exists");
    let header = fs::read_to_string(folder.join("include/rovelog.h")).expect("the header exists");
    let (mut comment, mut compared) = (String::new(), 0);
    for line in source.lines() {
        if let Some(text) = line.trim_start().strip_prefix("///") {
            comment = format!("{comment}//{text}\n");
        } else if line.trim_start().starts_with("pub ") && !comment.is_empty() {
            let lines = header.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
            assert!(lines.contains(comment.trim_end()), "{line}: write the header anew: {comment}");
            comment.clear();
            compared += 1;
        } else if !line.trim_start().starts_with(['#', '/']) {
            comment.clear();
        }
    }
    assert!(compared > 15, "{compared} comments");
}
