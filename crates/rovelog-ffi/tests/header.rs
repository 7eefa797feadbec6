//! The committed header must be what cbindgen generates.

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
