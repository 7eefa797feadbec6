//! Companion files, which are the other files of a log that consists of several files.
//!
//! The names of files decide which of them belong to the same log. For example, `x.rld.gz`,
//! `x_p1.rld` and `x-ambient.rld` are the files of one RLD recording. Each file may be compressed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rovelog_core::FormatInfo;

use crate::file::{SUFFIXES, plain_name};
use crate::{FORMATS, companions};

/// Returns the format whose logs have the extension of a file name. The suffix of a compression may
/// follow the extension. The name may contain folders, which are separated by slashes.
pub fn format_by_name(name: &str) -> Option<&'static FormatInfo> {
    let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let (stem, extension) = plain_name(&name).rsplit_once('.')?;
    FORMATS.iter().find(|format| !stem.is_empty() && format.extensions.contains(&extension))
}

/// Divides files into logs by their names. Each log is a list of positions in `names`, which starts
/// with the first file of the log. Its companion files follow in their order.
///
/// The names may contain folders, which are separated by slashes. Files in different folders do not
/// belong to the same log. If a file exists several times with different compressions, only one of
/// these files is listed as a companion file, and the others are left out.
pub fn group_by_log(names: &[&str]) -> Vec<Vec<usize>> {
    let files = FileNames::of(names);
    let mut order: Vec<usize> = (0..names.len()).collect();
    // The name of a companion file is longer than the name of the first file, so the first file
    // comes first in this order.
    order.sort_by_key(|&at| plain_name(names[at]).len());
    let (mut groups, mut taken) = (Vec::new(), HashSet::new());
    for at in order {
        if taken.contains(plain_name(names[at])) {
            continue;
        }
        let others = files.companions(names[at]);
        taken.extend(others.iter().map(|&at| plain_name(names[at])));
        groups.push([vec![at], others].concat());
    }
    groups.sort_unstable();
    groups
}

/// Returns the paths of the companion files of the log at `path`. The format of the log follows from
/// its file name. The list is empty if the path is not a regular file.
pub fn companions_by_name(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str());
    let format = name.and_then(format_by_name).filter(|format| format.files.is_some());
    format.map_or_else(Vec::new, |format| companions(path, Some(format.id)))
}

/// Returns which of the files with these names are companion files of the file `name`. The result
/// contains positions in `names`.
pub(crate) fn companions_among(name: &str, names: &[&str]) -> Vec<usize> {
    FileNames::of(names).companions(name)
}

/// The position of each file in a list of files, by its name without the suffix of a compression.
struct FileNames<'a>(HashMap<&'a str, usize>);

impl<'a> FileNames<'a> {
    fn of(names: &[&'a str]) -> Self {
        let rank = |name: &str| SUFFIXES.iter().rposition(|suffix| name.ends_with(suffix));
        let mut positions: HashMap<&str, usize> = HashMap::new();
        for (at, name) in names.iter().enumerate() {
            let known = positions.entry(plain_name(name)).or_insert(at);
            if rank(name) < rank(names[*known]) {
                *known = at;
            }
        }
        Self(positions)
    }

    fn companions(&self, name: &str) -> Vec<usize> {
        let Some(format) = format_by_name(name) else { return Vec::new() };
        let names = companion_names(format.id, name, &|name| self.0.contains_key(name));
        names.iter().filter_map(|name| self.0.get(&**name).copied()).collect()
    }
}

/// Returns the names of the companion files of the log whose first file is `name`, in their order.
/// `exists` tells whether there is a file with a name. All names passed to `exists` and returned are
/// without the suffix of a compression.
pub(crate) fn companion_names(format: &str, name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let files = FORMATS.iter().find(|known| known.id == format).and_then(|format| format.files);
    files.map_or_else(Vec::new, |files| (files.others)(plain_name(name), exists))
}

/// A companion file of a log.
pub(crate) struct CompanionFile {
    /// Name of the companion file, without the suffix of a compression.
    pub(crate) name: String,
    /// Path of the companion file.
    pub(crate) path: PathBuf,
}

/// Returns the companion files of the log whose first file is `name`. They are in the same folder.
pub(crate) fn companion_files(format: &str, path: &Path, name: &str) -> Vec<CompanionFile> {
    let file = |name: &str| {
        let paths = SUFFIXES.iter().map(|suffix| path.with_file_name(format!("{name}{suffix}")));
        paths.into_iter().find(|path| path.is_file())
    };
    let names = companion_names(format, name, &|name| file(name).is_some());
    names.into_iter().filter_map(|name| Some(CompanionFile { path: file(&name)?, name })).collect()
}
