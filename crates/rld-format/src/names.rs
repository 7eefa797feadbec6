//! File names of recordings that consist of several files. If the first part is `x.rld`, the other
//! parts are `x_p1.rld`, `x_p2.rld` and so on. The ambient file, which contains the sensor values,
//! is `x-ambient.rld` in the same folder.

/// Maximum number of files into which a recording is split.
const MAX_PARTS: usize = 100_000;

/// Returns the file name of a part, if the first part is called `name`. For example, part 1 of
/// `x.rld` is `x_p1.rld`.
pub(crate) fn part_name(name: &str, part: usize) -> String {
    if part == 0 { name.to_owned() } else { with_suffix(name, &format!("_p{part}")) }
}

/// Suffix by which the name of an ambient file differs from the name of its log.
const AMBIENT_SUFFIX: &str = "-ambient";

/// Inserts a suffix before the extension of a file name.
fn with_suffix(name: &str, suffix: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}{suffix}.{extension}"),
        None => format!("{name}{suffix}"),
    }
}

/// Returns whether this is the name of an ambient file, for example `x-ambient.rld`. Returns false
/// for the other parts of a split ambient file, such as `x-ambient_p1.rld`.
pub(crate) fn is_ambient(name: &str) -> bool {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem).ends_with(AMBIENT_SUFFIX)
}

/// Returns the names of the existing files that belong to the log `name`. These are its parts up to
/// the first missing part, then the ambient file and the parts of the ambient file.
pub(crate) fn companions(name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let parts = |first: String, from: usize| {
        (from..MAX_PARTS).map(move |part| part_name(&first, part)).take_while(|name| exists(name))
    };
    parts(name.to_owned(), 1).chain(parts(with_suffix(name, AMBIENT_SUFFIX), 0)).collect()
}
