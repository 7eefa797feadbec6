//! Makes the page that reads logs without a server available to `include_bytes`, if the variable
//! `ROVELOG_PAGE` names it. `cargo xtask web` builds this page.

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-env-changed=ROVELOG_PAGE");
    let page = match env::var_os("ROVELOG_PAGE") {
        Some(page) => {
            println!("cargo:rerun-if-changed={}", page.to_string_lossy());
            fs::read(page)?
        }
        None => Vec::new(),
    };
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("page.html"), page)
}
