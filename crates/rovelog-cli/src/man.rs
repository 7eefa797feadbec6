//! `rovelog man FOLDER`: the man pages of all commands. For archives and packages, so no help lists
//! it.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// If `args` ask for man pages, writes one for each command of `line` and returns the exit code.
pub(crate) fn answer(args: &[OsString], line: fn() -> clap::Command) -> Option<u8> {
    let [_, command, folder] = args else { return None };
    if command != "man" {
        return None;
    }
    let folder = Path::new(folder);
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(line(), folder));
    let Err(error) = written else { return Some(0) };
    let _ = writeln!(std::io::stderr().lock(), "error: cannot write {}: {error}", folder.display());
    Some(1)
}
