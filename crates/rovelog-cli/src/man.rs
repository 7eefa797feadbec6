//! The hidden command `rovelog man FOLDER`, which writes the man pages of all commands. It is used
//! to build release archives and packages.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// If `args` request the man pages, writes one page for each command and returns the exit code.
/// `line` defines the command line.
pub(crate) fn answer(args: &[OsString], line: fn() -> clap::Command) -> Option<u8> {
    let [_, command, folder] = args else { return None };
    // `man` is not defined as a command for clap, because clap would list it in the help. It is
    // therefore recognized here, before clap parses the arguments.
    if command != "man" {
        return None;
    }
    let folder = Path::new(folder);
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(line(), folder));
    let Err(error) = written else { return Some(0) };
    let _ = writeln!(std::io::stderr().lock(), "error: cannot write {}: {error}", folder.display());
    Some(1)
}
