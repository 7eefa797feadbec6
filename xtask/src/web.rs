//! `cargo xtask web`: builds the page that opens logs in the browser, and the npm package.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::process::{cargo, run, run_or};
use crate::{browser, place, root};

/// The target of the WebAssembly module.
const TARGET: &str = "wasm32-unknown-unknown";

/// The packages that the npm package is compared with, those that they need, and the compiler that
/// checks its types.
const NPM_PACKAGES: &[&str] =
    &["@foxglove/ulog@2.3.2", "@foxglove/rosbag@0.4.1", "lz4js@0.2.0", "tslib@2.8.1", "typescript@5.9.3"];

/// Size in bytes of the RLD recording of which the page draws a preview.
const LARGE_LOG_BYTES: u64 = 100_000_000;

/// Runs the subcommand `cargo xtask web`.
pub(crate) fn command(args: &[String]) -> Result<()> {
    let is_test = match args {
        [] => false,
        [option] if option == "--test" => true,
        _ => bail!("usage: web [--test]"),
    };
    let Some(built) = build()? else { return Ok(()) };
    println!(
        "page: {}\nnpm package: {}",
        built.join("page/index.html").display(),
        built.join("npm").display()
    );
    if is_test { test() } else { Ok(()) }
}

/// Builds the page and the npm package in `target/web`. Returns this folder, or `None` if a tool is
/// missing.
pub(crate) fn build() -> Result<Option<PathBuf>> {
    for (tool, args) in [("rustup", &["target", "add", TARGET][..]), ("node", &["--version"])] {
        let found = Command::new(tool).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            println!(
                "SKIPPED: `{tool} {}` fails; the page and the npm package are not built",
                args.join(" ")
            );
            return Ok(None);
        }
    }
    // The features of the crates differ from those of the other builds, so the module has a target
    // folder of its own.
    let out = place::target().join("web");
    // All current browsers have SIMD instructions of 128 bits.
    let mut build =
        cargo(&["build", "--quiet", "--profile", "web", "-p", "rovelog-wasm", "--target", TARGET]);
    run(build.env("CARGO_TARGET_DIR", &out).env("RUSTFLAGS", "-Ctarget-feature=+simd128"))?;
    let module = out.join(TARGET).join("web/rovelog_wasm.wasm");
    let script = root().join("crates/rovelog-wasm/js/build.mjs");
    run(Command::new("node").arg(script).arg(module).arg(env!("CARGO_PKG_VERSION")).arg(&out))?;
    Ok(Some(out))
}

/// Drops logs on the page in Chromium, and reads logs with the npm package. The results are compared
/// with the command line and with other packages.
fn test() -> Result<()> {
    let out = place::target().join("web");
    let mut logs = vec![root().join("corpus")];
    match corpus_generator::real() {
        Some(real) => logs.push(real),
        None => println!("SKIPPED: real logs; the npm package is not compared with other packages"),
    }
    // The module for WebAssembly has code that other builds do not have.
    let mut clippy =
        cargo(&["clippy", "--quiet", "-p", "rovelog-wasm", "--target", TARGET, "--", "-D", "warnings"]);
    run(clippy.env("CARGO_TARGET_DIR", &out))?;
    run(Command::new("npm")
        .args(["install", "--silent", "--no-save", "--prefix"])
        .arg(&out)
        .args(NPM_PACKAGES))?;
    let mut types = Command::new("node");
    types
        .arg(out.join("node_modules/typescript/lib/tsc.js"))
        .args(["--noEmit", "--strict", "--target", "es2022"]);
    run_or(types.arg(out.join("npm/index.d.ts")), "the types of the npm package are invalid")?;
    let tests = root().join("crates/rovelog-wasm/tests");
    // The corpus has many logs that the other packages misread.
    if let Some(real) = logs.get(1) {
        let mut node = Command::new("node");
        node.arg("--no-warnings").arg(tests.join("npm.mjs")).arg(&out).arg(real);
        run_or(&mut node, "the npm package fails")?;
    }
    let Some(mut page) = browser::script(&tests.join("page.py"), &place::binary()?)? else {
        println!("SKIPPED: no Chromium (ROVELOG_BROWSER names one); the page is not tested");
        return Ok(());
    };
    let large = corpus_generator::large_log("rld", Some(LARGE_LOG_BYTES))?;
    let page = page.arg(out.join("page/index.html")).arg(large).args(&logs);
    run_or(page, "the page fails in the browser")
}
