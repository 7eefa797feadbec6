//! Builds the release archive for one target. It contains the program, man pages, completions, and
//! licenses.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Version, empty, try_program};
use crate::process::{cargo, run};
use crate::root;

/// Shells, each with the file name under which it finds a completion script.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "rovelog.bash"),
    ("elvish", "rovelog.elv"),
    ("fish", "rovelog.fish"),
    ("powershell", "_rovelog.ps1"),
    ("zsh", "_rovelog"),
];

/// Returns the reason why this machine cannot build for `target`, if there is one.
pub(super) fn cannot_build(target: &str) -> Option<String> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).current_dir(root()).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    if !sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
        return Some(format!("its standard library is missing: rustup target add {target}"));
    }
    let (variable, compiler) = compiler(target);
    let starts = Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if starts.is_ok_and(|status| status.success()) {
        return None;
    }
    Some(format!("no C compiler for it: install musl-tools, or set {variable}"))
}

/// Returns the name and the value of the environment variable that selects the C compiler for
/// `target`.
fn compiler(target: &str) -> (String, OsString) {
    let variable = format!("CC_{}", target.replace('-', "_"));
    let compiler = env::var_os(&variable).unwrap_or_else(|| "musl-gcc".into());
    (variable, compiler)
}

/// Builds the archive. Returns its path.
pub(super) fn make(version: &Version, target: &str, out: &Path) -> Result<PathBuf> {
    let program = build(target, &version.profile)?;
    let name = format!("rovelog-{}-{target}", version.number);
    let folder = empty("archive")?.join(&name);
    fs::create_dir_all(folder.join("completions"))?;
    let binary = program.file_name().context("a program has a name")?;
    fs::copy(&program, folder.join(binary))?;
    // The program writes its own man pages. So an archive can only be built on a machine that can
    // run its program.
    run(Command::new(&program).arg("man").arg(folder.join("man")))?;
    for (shell, file) in SHELLS {
        let output = Command::new(&program).args(["completion", shell]).output()?;
        ensure!(
            output.status.success() && !output.stdout.is_empty(),
            "completion {shell}: {}",
            output.status
        );
        fs::write(folder.join("completions").join(file), output.stdout)?;
    }
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "SECURITY.md"] {
        fs::copy(root().join(file), folder.join(file))?;
    }
    fs::copy(root().join("crates/rovelog-cli/README.md"), folder.join("README.md"))?;
    fs::write(folder.join("THIRD-PARTY.txt"), licenses(&version.built_from(target)?)?)?;
    pack(&folder, &name, target.contains("windows"), out)
}

/// Version of the program cargo-auditable.
const AUDITABLE: &str = "0.7.7";

/// Returns the command `cargo auditable`. It adds the list of dependencies to the program, which
/// `cargo audit bin` reads. Returns the command `cargo` if cargo-auditable cannot be installed, for
/// example without a network.
fn auditable() -> Result<Command> {
    let folder = root().join("target/tools").join(AUDITABLE);
    let program = folder.join("bin").join(format!("cargo-auditable{}", env::consts::EXE_SUFFIX));
    if !program.is_file() {
        let mut install = cargo(&["install", "--locked", "--quiet", "--no-track", "cargo-auditable"]);
        let status = install.args(["--version", AUDITABLE, "--root"]).arg(&folder).status()?;
        if !status.success() {
            println!("SKIPPED: the list of dependencies in the program: cargo-auditable cannot be installed");
            return Ok(cargo(&[]));
        }
    }
    let mut auditable = Command::new(program);
    auditable.arg("auditable").current_dir(root());
    Ok(auditable)
}

/// Builds the program. Returns its path.
fn build(target: &str, profile: &str) -> Result<PathBuf> {
    let is_host = target == super::host()?;
    let mut build = auditable()?;
    build.args(["build", "-p", "rovelog-cli", "--bin", "rovelog"]);
    build.args(["--locked", "--all-features", "--profile", profile]);
    // Without `--target`, cargo can reuse the dependencies that other builds of the workspace have
    // compiled.
    if !is_host {
        build.args(["--target", target]);
    }
    if target.ends_with("-musl") {
        let (variable, compiler) = compiler(target);
        build.env(variable, compiler);
    }
    // The page of `rovelog view --save`.
    if let Some(web) = crate::web::build()? {
        build.env("ROVELOG_PAGE", web.join("page/index.html"));
    }
    run(&mut build)?;
    let name = if target.contains("windows") { "rovelog.exe" } else { "rovelog" };
    let folder = crate::place::target();
    let folder = if is_host { folder } else { folder.join(target) };
    // The build folder of the profile `dev` is named `debug`.
    Ok(folder.join(if profile == "dev" { "debug" } else { profile }).join(name))
}

/// Packs a folder into an archive. On Windows, `tar` can also write ZIP archives.
fn pack(folder: &Path, name: &str, is_zip: bool, out: &Path) -> Result<PathBuf> {
    let file = out.join(format!("{name}.{}", if is_zip { "zip" } else { "tar.gz" }));
    let mut tar = Command::new("tar");
    tar.args(if is_zip { ["-a", "-c", "-f"] } else { ["-c", "-z", "-f"] }).arg(&file);
    if !is_zip && cfg!(target_os = "linux") {
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    }
    run(tar.arg("-C").arg(folder.parent().context("the folder has a parent")?).arg(name))?;
    Ok(file)
}

/// Returns a text with the license of each package. Each license text occurs only once.
fn licenses(packages: &[&Value]) -> Result<String> {
    let mut text = String::from("The packages that this program is built from, with their licenses.\n");
    let mut known: Vec<(String, Vec<String>)> = Vec::new();
    for package in packages {
        let text_of = |key: &str| package[key].as_str().unwrap_or_default();
        let title = format!("{} {}", text_of("name"), text_of("version"));
        let _ = writeln!(text, "{title}: {}", text_of("license"));
        let folder = Path::new(text_of("manifest_path")).parent().unwrap_or(Path::new("")).to_owned();
        for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
            let is_text =
                ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| name.starts_with(start));
            if !is_text || !entry.path().is_file() {
                continue;
            }
            let license = String::from_utf8_lossy(&fs::read(entry.path())?).trim().to_owned();
            match known.iter_mut().find(|(text, _)| *text == license) {
                Some((_, titles)) => titles.push(title.clone()),
                None => known.push((license, vec![title.clone()])),
            }
        }
    }
    for (license, mut titles) in known {
        titles.dedup();
        let _ = write!(text, "\n{}\n{}\n\n{license}\n", "-".repeat(80), titles.join(", "));
    }
    Ok(text)
}

/// Unpacks the archive in an empty home folder, and tests its program, man pages and completions.
pub(super) fn try_out(archive: &Path, version: &Version, target: &str) -> Result<()> {
    let home = empty(target)?;
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&home))?;
    let folder = home.join(format!("rovelog-{}-{target}", version.number));
    let program = folder.join("rovelog");
    try_program(&program, &home)?;
    if target.ends_with("-musl") {
        // A dynamically linked program contains the path of its loader in its first bytes.
        let bytes = fs::read(&program)?;
        let loader =
            bytes.windows(9).take(4096).any(|window| window == b"/ld-musl-" || window == b"/ld-linux");
        ensure!(!loader, "the program for {target} is not static");
    }
    let pages = fs::read_dir(folder.join("man"))?.count();
    ensure!(pages > 25, "{pages} man pages");
    let mut man = Command::new("man");
    man.args(["--local-file", "--pager=cat"]).arg(folder.join("man/rovelog-info.1"));
    match man.stdout(Stdio::piped()).stderr(Stdio::piped()).output() {
        Ok(shown) => {
            let [text, errors] =
                [&shown.stdout, &shown.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
            ensure!(
                shown.status.success() && text.contains("SYNOPSIS"),
                "man does not show the page of info: {}{text}{errors}",
                shown.status
            );
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: man pages: man is not installed");
        }
        Err(error) => return Err(error).context("starting man"),
    }
    for (shell, file) in SHELLS {
        let script = folder.join("completions").join(file);
        match Command::new(shell).arg("-n").arg(&script).stdin(Stdio::null()).status() {
            Ok(status) if matches!(*shell, "bash" | "fish" | "zsh") => {
                ensure!(status.success(), "{shell} does not read its completion: {status}");
            }
            _ => println!("SKIPPED: the completion for {shell}"),
        }
    }
    let text = fs::read_to_string(folder.join("THIRD-PARTY.txt"))?;
    ensure!(text.contains("clap ") && text.contains("Permission is hereby granted"), "no license texts");
    let size = fs::metadata(archive)?.len();
    println!(
        "{}: {} kB, program {} kB, {pages} man pages",
        archive.display(),
        size / 1000,
        fs::metadata(program)?.len() / 1000
    );
    Ok(())
}
