//! Recordings in several files: `x.rld`, `x_p1.rld`, `x_p2.rld`, and `x-ambient.rld` beside them.

use rovelog_core::reader::Companion;
use rovelog_core::{Bytes, ReadOptions};

use crate::error::RldError;
use crate::opening::judged;
use crate::reader::RldReader;
use crate::summary::is_ambient;

/// Parts that are looked for.
const MOST_PARTS: usize = 100_000;

/// The name of a part: `x.rld`, `x_p1.rld`, `x_p2.rld`.
pub fn part_name(name: &str, part: usize) -> String {
    if part == 0 {
        return name.to_owned();
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}_p{part}.{extension}"),
        None => format!("{name}_p{part}"),
    }
}

/// The name of the ambient file beside a log: `x-ambient.rld`.
pub fn ambient_name(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}-ambient.{extension}"),
        None => format!("{name}-ambient"),
    }
}

/// The files that belong to `name` among those that exist: parts up to the first one missing, then ambient ones.
pub(crate) fn companions(name: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let parts = |first: String, from: usize| {
        (from..MOST_PARTS).map(move |part| part_name(&first, part)).take_while(|name| exists(name))
    };
    parts(name.to_owned(), 1).chain(parts(ambient_name(name), 0)).collect()
}

/// Opens a log with its other files. What does not belong to it is named and left out.
pub(crate) fn open(
    first: Bytes,
    companions: Vec<Companion>,
    options: &ReadOptions,
) -> Result<RldReader, RldError> {
    // The parts of an ambient file that is opened itself are its own.
    let alone = is_ambient(&judged(&first)?);
    let (ambient, parts): (Vec<_>, Vec<_>) =
        companions.into_iter().partition(|(name, _)| !alone && name.contains("-ambient"));
    let mut left_out = Vec::new();
    let mut log = join(first, parts, options, &mut left_out)?;
    let mut ambient = ambient.into_iter();
    if let Some((name, first)) = ambient.next() {
        match join(first, ambient.collect(), options, &mut left_out) {
            Ok(ambient) if is_ambient(&ambient.judged) => log = log.with_ambient(ambient),
            Ok(_) => left_out.push((name, "its channels are not those of sensors".to_owned())),
            Err(error) => left_out.push((name, error.to_string())),
        }
    }
    for (name, why) in left_out {
        log.leave_out(&name, &why);
    }
    Ok(log)
}

/// The longest start of a set that is one log.
fn join(
    first: Bytes,
    parts: Vec<Companion>,
    options: &ReadOptions,
    left_out: &mut Vec<(String, String)>,
) -> Result<RldReader, RldError> {
    let (names, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let mut files = vec![first];
    files.extend(parts);
    match RldReader::join(files.clone(), options) {
        Err(RldError::NotAPart { part, why }) => {
            let why = format!("{why}; later parts are left out with it");
            left_out.extend(names.get(part - 1).map(|name| (name.clone(), why)));
            files.truncate(part);
            RldReader::join(files, options)
        }
        log => log,
    }
}
