//! File names of recordings in several files. The parts of `x.rld` are `x_p1.rld`, `x_p2.rld` and
//! so on, and its ambient file is `x-ambient.rld` in the same folder.

/// Maximum number of parts of a recording.
const MAX_PARTS: usize = 100_000;

/// Returns the name of a part: `x.rld` for part 0, `x_p1.rld` for part 1.
pub(crate) fn part_name(name: &str, part: usize) -> String {
    if part == 0 {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}_p{part}.{extension}"),
        None => format!("{name}_p{part}"),
    }
}

/// Suffix that the name of an ambient file adds to that of its log.
const AMBIENT_SUFFIX: &str = "-ambient";

/// Returns the name of the ambient file of a log: `x-ambient.rld`.
fn ambient_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}{AMBIENT_SUFFIX}.{extension}"),
        None => format!("{name}{AMBIENT_SUFFIX}"),
    }
}

/// Returns whether this is the name of the first ambient file among the companions of a log. Names
/// of further parts of an ambient file, such as `x-ambient_p1.rld`, do not count.
pub(crate) fn is_ambient(name: &str) -> bool {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).ends_with(AMBIENT_SUFFIX)
}

/// Returns the names of the existing files that belong to `name`: parts up to the first missing
/// one, then the ambient file and its parts.
pub(crate) fn companions(name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let parts = |first: String, from: usize| {
        (from..MAX_PARTS).map(move |part| part_name(&first, part)).take_while(|name| exists(name))
    };
    parts(name.to_owned(), 1).chain(parts(ambient_name(name), 0)).collect()
}
