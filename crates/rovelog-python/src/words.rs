//! What the library tells people at a terminal, in Python's words: options of the command line become arguments.

use std::borrow::Cow;

use pyo3::prelude::*;

/// What stands in texts of the library, and what it is called here; what holds another one comes before it.
const WORDS: &[(&str, &str)] = &[
    ("rovelog recover FILE --input-format vel -o OUT", "rovelog.open(\"FILE\", format=\"vel\").recover(OUT)"),
    ("--input-format opens", "open(.., format=) opens"),
    ("rovelog --version", "rovelog.formats()"),
    ("rovelog schema FILE", "log.topics and the fields of each"),
    ("rovelog topics FILE", "log.topics"),
    ("stats --ranges values", "log.rld.energy(ranges=\"values\")"),
    ("--raw keeps", "raw=True keeps"),
    ("all of them: --full", "all of them: full=True"),
    ("--blobs keeps", "blobs=True keeps"),
    ("(--max-unpacked 8GiB)", "(open(.., max_unpacked=8 << 30))"),
    ("--time-base boot", "time_base=\"boot\""),
    ("--time-base utc", "time_base=\"utc\""),
];

/// The text in Python's words.
pub(crate) fn in_python(text: &str) -> Cow<'_, str> {
    let replaced = |text: Cow<'static, str>, (from, to): &(&str, &str)| Cow::from(text.replace(from, to));
    if WORDS.iter().any(|(from, _)| text.contains(from)) {
        WORDS.iter().fold(Cow::from(text.to_owned()), replaced)
    } else {
        Cow::from(text)
    }
}

/// The same for the tests, which look for options in all texts of the library.
#[pyfunction]
#[pyo3(name = "_in_python")]
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    in_python(text)
}
