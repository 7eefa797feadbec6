//! Translation of messages for Python users.
//!
//! Messages of the library mention commands and options of the command line. For Python users, they
//! are replaced by the corresponding functions and arguments.

use std::borrow::Cow;

use pyo3::prelude::*;

/// Pairs of a command-line term and its replacement in Python. If a term contains another term, the
/// longer term comes first.
const REPLACEMENTS: &[(&str, &str)] = &[
    ("rovelog recover FILE --input-format vel -o OUT", "rovelog.open(\"FILE\", format=\"vel\").recover(OUT)"),
    (
        "rovelog recover FILE --input-format ulog -o OUT",
        "rovelog.open(\"FILE\", format=\"ulog\").recover(OUT)",
    ),
    ("leave out --input-format", "leave out format="),
    ("select fewer topics: --topics NAME", "select fewer topics: topics=[NAME]"),
    ("use --input-format", "use open(.., format=)"),
    ("rovelog --version", "rovelog.formats()"),
    ("rovelog schema FILE", "log.topics and the fields of each"),
    ("rovelog topics FILE", "log.topics"),
    ("rovelog stats --ranges values", "log.rld.energy(ranges=\"values\")"),
    ("--raw keeps", "raw=True keeps"),
    ("--full writes", "full=True writes"),
    ("--blobs writes", "blobs=True writes"),
    ("(--max-unpacked 8GiB)", "(open(.., max_unpacked=8 << 30))"),
    ("use --follow-redirects", "use storage_options={\"follow_redirects\": \"true\"}"),
    ("or lower --dpi", "or give a smaller size"),
    ("--time-base boot", "time_base=\"boot\""),
    ("--time-base utc", "time_base=\"utc\""),
];

/// Returns the message `text` with all command-line terms replaced by Python terms.
pub(crate) fn in_python(text: &str) -> Cow<'_, str> {
    let replaced = |text: Cow<'static, str>, (from, to): &(&str, &str)| Cow::from(text.replace(from, to));
    if REPLACEMENTS.iter().any(|(from, _)| text.contains(from)) {
        REPLACEMENTS.iter().fold(Cow::from(text.to_owned()), replaced)
    } else {
        Cow::from(text)
    }
}

/// Makes [`in_python`] accessible to tests. The tests check that messages for Python users do not
/// mention options of the command line.
#[pyfunction]
#[pyo3(name = "_in_python")]
pub(crate) fn in_python_for_tests(text: &str) -> Cow<'_, str> {
    in_python(text)
}
