//! Messages of the library for Python: command-line options become arguments.

use std::borrow::Cow;

use pyo3::prelude::*;

/// Texts in messages and their replacements; longer texts before their parts.
const WORDS: &[(&str, &str)] = &[
    ("rovelog recover FILE --input-format vel -o OUT", "rovelog.open(\"FILE\", format=\"vel\").recover(OUT)"),
    ("use --input-format", "use open(.., format=)"),
    ("rovelog --version", "rovelog.formats()"),
    ("rovelog schema FILE", "log.topics and the fields of each"),
    ("rovelog topics FILE", "log.topics"),
    ("stats --ranges values", "log.rld.energy(ranges=\"values\")"),
    ("--raw keeps", "raw=True keeps"),
    ("--full writes", "full=True writes"),
    ("--blobs writes", "blobs=True writes"),
    ("(--max-unpacked 8GiB)", "(open(.., max_unpacked=8 << 30))"),
    ("or lower --dpi", "or give a smaller size"),
    ("--time-base boot", "time_base=\"boot\""),
    ("--time-base utc", "time_base=\"utc\""),
];

/// Returns the message with Python arguments.
pub(crate) fn in_python(text: &str) -> Cow<'_, str> {
    let replaced = |text: Cow<'static, str>, (from, to): &(&str, &str)| Cow::from(text.replace(from, to));
    if WORDS.iter().any(|(from, _)| text.contains(from)) {
        WORDS.iter().fold(Cow::from(text.to_owned()), replaced)
    } else {
        Cow::from(text)
    }
}

/// Returns the message for the tests, which search all messages of the library for options.
#[pyfunction]
#[pyo3(name = "_in_python")]
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    in_python(text)
}
