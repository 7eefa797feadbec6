//! Names of recordings in several files: `x.rld`, `x_p1.rld`, `x_p2.rld`, and `x-ambient.rld` in
//! the same folder.

/// Maximum number of parts.
const MOST_PARTS: usize = 100_000;

/// Returns the name of a part: `x.rld`, `x_p1.rld`, `x_p2.rld`.
pub(crate) fn part_name(name: &str, part: usize) -> String {
    if part == 0 {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}_p{part}.{extension}"),
        None => format!("{name}_p{part}"),
    }
}

/// What the name of a log has more in that of its ambient file.
const AMBIENT: &str = "-ambient";

/// Returns the name of the ambient file of a log: `x-ambient.rld`.
fn ambient_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}{AMBIENT}.{extension}"),
        None => format!("{name}{AMBIENT}"),
    }
}

/// Returns whether this is the name of the first ambient file among those of a log. A part of a log
/// `x-ambient.rld` is none.
pub(crate) fn is_ambient(name: &str) -> bool {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).ends_with(AMBIENT)
}

/// Returns the existing files that belong to `name`: parts up to the first missing one, then
/// ambient ones.
pub(crate) fn companions(name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let parts = |first: String, from: usize| {
        (from..MOST_PARTS).map(move |part| part_name(&first, part)).take_while(|name| exists(name))
    };
    parts(name.to_owned(), 1).chain(parts(ambient_name(name), 0)).collect()
}
