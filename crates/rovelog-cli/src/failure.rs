//! Outcome of a command: its status, or a failure with the next step.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rovelog::{Error, ErrorKind};

/// Status of a command; a greater value is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Success.
    Done,
    /// Success, but data was lost.
    Lost,
    /// Some input failed, and the failure was printed.
    Failed,
}

/// Result of every command.
pub(crate) type Outcome = Result<Status, Failure>;

/// Failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the results has closed the pipe.
    Closed,
    /// A failure with a message for stderr.
    Said(Box<Said>),
}

/// A failure with a message.
#[derive(Debug)]
pub(crate) struct Said {
    /// True for bad arguments.
    pub(crate) usage: bool,
    pub(crate) cause: String,
    pub(crate) next: Option<String>,
    pub(crate) file: Option<PathBuf>,
    /// Further causes, for `-v`.
    pub(crate) behind: Vec<String>,
}

impl Failure {
    fn new(usage: bool, cause: String) -> Self {
        Self::Said(Box::new(Said { usage, cause, next: None, file: None, behind: Vec::new() }))
    }

    /// Returns a failure of the work: exit code 1.
    pub(crate) fn failed(cause: impl Into<String>) -> Self {
        Self::new(false, cause.into())
    }

    /// Returns a failure of the arguments: exit code 2.
    pub(crate) fn usage(cause: impl Into<String>) -> Self {
        Self::new(true, cause.into())
    }

    /// Returns the failure of a build without a feature of this package; `lacks` is what it cannot do.
    pub(crate) fn not_built_in(lacks: &str, feature: &str) -> Self {
        Self::failed(format!("this build of rovelog {lacks}")).next(format!(
            "use a released binary or the Python package, or build it: cargo install rovelog-cli --features {feature}"
        ))
    }

    /// Adds the next step; `FILE` is replaced by the path.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        if let Self::Said(said) = &mut self {
            said.next = Some(next.into());
        }
        self
    }

    /// Adds the file that the failure is about.
    pub(crate) fn at(mut self, file: &Path) -> Self {
        if let Self::Said(said) = &mut self {
            said.file.get_or_insert_with(|| file.to_owned());
        }
        self
    }

    /// Returns whether further inputs are pointless: bad arguments stay bad, unless they are so for
    /// one log; a closed pipe stays closed.
    pub(crate) fn ends_the_run(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Said(said) => said.usage && said.file.is_none(),
        }
    }
}

/// An error of an output. It knows the output, so that no message attributes it to the log.
#[derive(Debug)]
pub(crate) struct Refused {
    path: PathBuf,
    error: io::Error,
}

impl Refused {
    /// Marks `error` as one of the output at `path`; stdout has no path.
    pub(crate) fn by(path: &Path, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Self { path: path.to_owned(), error })
    }

    /// Returns the failure if `error` is marked as one of an output.
    fn failure(error: &io::Error) -> Option<Failure> {
        let refused: &Self = error.get_ref()?.downcast_ref()?;
        Some(if refused.path.as_os_str().is_empty() {
            Failure::failed(format!("cannot write the results: {}", refused.error)).at(Path::new("stdout"))
        } else {
            cannot_write(&refused.path, &refused.error)
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// Returns the failure of an output file, with the next step.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    refused_by_disk("cannot write the output", path, error)
}

/// Returns the failure `what` of the file system, with the next step.
pub(crate) fn refused_by_disk(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{what}: {error}")).at(path).next(rovelog_export::next_step(error))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // A log is written from memory, so only the output can be a closed pipe.
        let io = error.get_ref().downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return Self::Closed;
        }
        if let Some(failure) = io.and_then(Refused::failure) {
            return failure;
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

/// Conversion of errors in writing results.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        let other = || Self::failed(format!("cannot write the results: {error}"));
        Refused::failure(&error).unwrap_or_else(other)
    }
}

impl From<rovelog_export::ExportError> for Failure {
    fn from(error: rovelog_export::ExportError) -> Self {
        match error {
            rovelog_export::ExportError::Log(error) => error.into(),
            rovelog_export::ExportError::Io(error) => error.into(),
            rovelog_export::ExportError::NotBuiltIn { what, feature } => {
                Self::not_built_in(&format!("does not write {what}"), feature)
            }
            error => Self::failed(error.to_string()),
        }
    }
}

impl From<rovelog_scale::ScaleError> for Failure {
    fn from(error: rovelog_scale::ScaleError) -> Self {
        match error {
            rovelog_scale::ScaleError::Source(cause) => {
                Self::failed(cause).next("name a file, a folder with logs, or a pattern in quotes")
            }
            rovelog_scale::ScaleError::Export(error) => error.into(),
            rovelog_scale::ScaleError::Log { uri, error } => Self::from(error).at(Path::new(&uri)),
            rovelog_scale::ScaleError::Lake { path, error } => {
                let (path, what) = (Path::new(&path), "cannot read or write the lake");
                // Only the errors of the system have a next step: others say what is wrong in a file.
                match error.raw_os_error() {
                    Some(_) => refused_by_disk(what, path, &error),
                    None => Self::failed(format!("{what}: {error}")).at(path),
                }
            }
            error @ rovelog_scale::ScaleError::NotLake(_) => {
                Self::usage(error.to_string()).next("name a new folder, or one that has a lake")
            }
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
