//! What goes to stderr, and the exit code: failures with their next step, losses, repeated warnings counted.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rovelog::{Error, ErrorKind, Ledger};

use crate::output::{Paint, escape};

/// Warnings of one kind that are printed; the rest is counted.
const PRINTED: u64 = 5;

/// How a command ended; the greater, the worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Done.
    Done,
    /// Done, but data was lost.
    Lost,
    /// Some input failed, and that was said.
    Failed,
}

/// What every command gives back.
pub(crate) type Outcome = Result<Status, Failure>;

/// Why a command could not be done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read the results has seen enough.
    Closed,
    /// Said on stderr.
    Said(Box<Said>),
}

/// A failure in words.
#[derive(Debug)]
pub(crate) struct Said {
    /// Bad arguments, not a failure of the work.
    usage: bool,
    cause: String,
    next: Option<String>,
    file: Option<PathBuf>,
    /// What lies behind the cause, for `-v`.
    behind: Vec<String>,
}

impl Failure {
    fn new(usage: bool, cause: String) -> Self {
        Self::Said(Box::new(Said { usage, cause, next: None, file: None, behind: Vec::new() }))
    }

    /// The work failed: exit 1.
    pub(crate) fn failed(cause: impl Into<String>) -> Self {
        Self::new(false, cause.into())
    }

    /// The arguments ask for what cannot be: exit 2.
    pub(crate) fn usage(cause: impl Into<String>) -> Self {
        Self::new(true, cause.into())
    }

    /// The same failure with the next step; `FILE` stands for the path.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        if let Self::Said(said) = &mut self {
            said.next = Some(next.into());
        }
        self
    }

    /// The same failure with the file that it is about.
    pub(crate) fn at(mut self, file: &Path) -> Self {
        if let Self::Said(said) = &mut self {
            said.file.get_or_insert_with(|| file.to_owned());
        }
        self
    }

    /// Whether further inputs are pointless: bad arguments stay bad, a closed pipe stays closed.
    pub(crate) fn ends_the_run(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Said(said) => said.usage,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // A log is written from memory, so only the output can be a closed pipe.
        let io = error.get_ref().downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return Self::Closed;
        }
        let mut behind = Vec::new();
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            behind.push(error.to_string());
            source = error.source();
        }
        let usage = error.kind == ErrorKind::InvalidArgument;
        let next = error.next.as_deref().map(str::to_owned);
        Self::Said(Box::new(Said { usage, cause: error.to_string(), next, file: None, behind }))
    }
}

/// Errors of writing results.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::failed(format!("cannot write the results: {error}"))
    }
}

impl From<rovelog_export::ExportError> for Failure {
    fn from(error: rovelog_export::ExportError) -> Self {
        match error {
            rovelog_export::ExportError::Log(error) => error.into(),
            rovelog_export::ExportError::Io(error) => error.into(),
            error => Self::failed(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<csv::Error> for Failure {
    fn from(error: csv::Error) -> Self {
        match error.into_kind() {
            csv::ErrorKind::Io(error) => error.into(),
            other => Self::failed(format!("cannot write the results: {other:?}")),
        }
    }
}

/// The voice on stderr.
pub(crate) struct Report {
    verbose: bool,
    paint: Paint,
    warned: RefCell<BTreeMap<&'static str, u64>>,
}

impl Report {
    pub(crate) fn new(verbose: bool, paint: Paint) -> Self {
        Self { verbose, paint, warned: RefCell::default() }
    }

    /// A warning; after the fifth of a `kind` they are only counted. `kind` reads on after "3 more": a plural.
    pub(crate) fn warn(&self, kind: &'static str, text: &str) {
        let mut warned = self.warned.borrow_mut();
        let count = warned.entry(kind).or_default();
        *count += 1;
        if *count <= PRINTED {
            say(&format!("{} {}", self.paint.yellow("warning:"), escape(text)));
        }
    }

    /// One line about bytes that could not be read, where there are any.
    pub(crate) fn loss(&self, lost: &Ledger, file: &Path) -> Status {
        if lost.losses == 0 {
            return Status::Done;
        }
        let (bytes, places) = (count(lost.bytes, "byte"), count(lost.losses, "place"));
        let check = if file == Path::new("-") { String::new() } else { " (see: rovelog check FILE)".into() };
        let text =
            format!("{bytes} in {places} could not be read{}: {}", with_file(&check, file), shown(file));
        self.warn("damaged logs", &text);
        Status::Lost
    }

    /// A failure, with its next step.
    pub(crate) fn failure(&self, failure: &Failure) {
        let Failure::Said(said) = failure else { return };
        let mut text = format!("{} {}", self.paint.red("error:"), escape(&said.cause));
        if let Some(file) = &said.file {
            let _ = write!(text, ": {}", escape(&shown(file)));
        }
        if self.verbose {
            for cause in &said.behind {
                let _ = write!(text, "\n  caused by: {}", escape(cause));
            }
        }
        if let Some(next) = &said.next {
            let next = said.file.as_deref().map_or_else(|| next.clone(), |file| with_file(next, file));
            let _ = write!(text, "\n  {} {}", self.paint.bold("next:"), escape(&next));
        }
        say(&text);
    }

    /// Says what is left to say; the exit code.
    pub(crate) fn finish(&self, outcome: Outcome) -> u8 {
        for (kind, count) in &*self.warned.borrow() {
            if let Some(more) = count.checked_sub(PRINTED).filter(|more| *more > 0) {
                say(&format!("{} {more} more {kind}", self.paint.yellow("warning:")));
            }
        }
        match outcome {
            Ok(Status::Done) | Err(Failure::Closed) => 0,
            Ok(Status::Failed) => 1,
            Ok(Status::Lost) => 3,
            Err(failure) => {
                self.failure(&failure);
                let usage = matches!(&failure, Failure::Said(said) if said.usage);
                if usage { 2 } else { 1 }
            }
        }
    }
}

/// A line about what was done, for people.
pub(crate) fn note(text: &str) {
    say(&escape(text));
}

/// One line on stderr. Where that is closed, there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// A path as people read it.
fn shown(file: &Path) -> Cow<'_, str> {
    if file == Path::new("-") { Cow::Borrowed("stdin") } else { file.to_string_lossy() }
}

/// `1 byte`, `118 bytes`.
pub(crate) fn count(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// `text` with the path in place of the word `FILE`, quoted where a shell needs it.
pub(crate) fn with_file(text: &str, file: &Path) -> String {
    let path = file.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@,%".contains(c);
    let quoted = if !path.is_empty() && path.chars().all(plain) {
        path.into_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    };
    text.replace("FILE", &quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_needs_it() {
        assert_eq!(with_file("see FILE", Path::new("logs/a_1.ulg")), "see logs/a_1.ulg");
        assert_eq!(with_file("see FILE", Path::new("my log's.ulg")), r"see 'my log'\''s.ulg'");
    }
}
