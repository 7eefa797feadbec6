//! The hidden command `rovelog man FOLDER`, which writes the man pages of all commands. It is used
//! to build release archives and packages.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// If `args` request the man pages, writes one page for each command and returns the exit code.
/// `line` defines the command line.
pub(crate) fn answer(args: &[OsString], line: fn() -> clap::Command) -> Option<u8> {
    // `man` is not defined as a command for clap, because clap would list it in the help. It is
    // therefore recognized here, before clap parses the arguments.
    let [_, command, rest @ ..] = args else { return None };
    if command != "man" {
        return None;
    }
    let folder = match rest {
        [folder] if !folder.to_string_lossy().starts_with('-') => Path::new(folder),
        _ => {
            let _ = writeln!(std::io::stderr().lock(), "usage: rovelog man FOLDER");
            return Some(2);
        }
    };
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(line(), folder));
    let Err(error) = written else { return Some(0) };
    let _ = writeln!(std::io::stderr().lock(), "error: cannot write {}: {error}", folder.display());
    Some(1)
}
