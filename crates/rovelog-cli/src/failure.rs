//! Result types of commands: a status, or a failure with advice on what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rovelog::rosbag12::BagError;
use rovelog::vel_format::VelError;
use rovelog::{Error, ErrorKind};

/// Status of a finished command. Worse statuses compare as greater, so the worst of several
/// statuses is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// The command succeeded.
    Done,
    /// The command succeeded, but some data was damaged or could not be represented.
    Lost,
    /// At least one input failed. The error message has already been printed.
    Failed,
}

/// Result of a command.
pub(crate) type Outcome = Result<Status, Failure>;

/// A failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program that reads our results has closed the pipe. This is not an error, so nothing is
    /// printed.
    Closed,
    /// A failure with a message that is printed to stderr.
    Message(Box<Message>),
}

/// Message of a failure, with advice for the user.
#[derive(Debug)]
pub(crate) struct Message {
    /// True if the arguments are invalid. The exit code is then 2.
    pub(crate) usage: bool,
    /// Description of what went wrong.
    pub(crate) cause: String,
    /// Advice on what to do next. The word `FILE` in it stands for the path in the field `file`.
    pub(crate) next: Option<String>,
    /// Path of the file that caused the failure.
    pub(crate) file: Option<PathBuf>,
    /// Underlying errors, which are printed with `-v`.
    pub(crate) causes: Vec<String>,
}

impl Failure {
    fn new(usage: bool, cause: String) -> Self {
        Self::Message(Box::new(Message { usage, cause, next: None, file: None, causes: Vec::new() }))
    }

    /// Creates a failure whose cause is not an invalid argument. The exit code is 1.
    pub(crate) fn failed(cause: impl Into<String>) -> Self {
        Self::new(false, cause.into())
    }

    /// Creates a failure for invalid arguments. The exit code is 2.
    pub(crate) fn usage(cause: impl Into<String>) -> Self {
        Self::new(true, cause.into())
    }

    /// Creates the failure for an operation that this build does not support, because the Cargo
    /// feature `feature` is not enabled. `lacks` completes the sentence "this build of rovelog …".
    pub(crate) fn not_built_in(lacks: &str, feature: &str) -> Self {
        Self::failed(format!("this build of rovelog {lacks}")).next(format!(
            "use a released binary or the Python package, or build it in a clone: cargo install --path \
             crates/rovelog-cli --features {feature}"
        ))
    }

    /// Sets the advice on what to do next. The word `FILE` in the advice is replaced by the path of
    /// the file that caused the failure.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        if let Self::Message(message) = &mut self {
            message.next = Some(next.into());
        }
        self
    }

    /// Sets the path of the file that caused the failure, unless a path is already set.
    pub(crate) fn at(mut self, file: &Path) -> Self {
        if let Self::Message(message) = &mut self {
            message.file.get_or_insert_with(|| file.to_owned());
        }
        self
    }

    /// Returns true if the command would fail in the same way for all remaining logs. This is true
    /// for a closed pipe, and for invalid arguments that do not depend on the log.
    pub(crate) fn ends_the_run(&self) -> bool {
        match self {
            Self::Closed => true,
            Self::Message(message) => message.usage && message.file.is_none(),
        }
    }
}

/// An error that occurred while an output was written. The crates that write logs return it as the
/// source of their own errors. It contains the path of the output, so that the error message names
/// the output and not the log.
#[derive(Debug)]
pub(crate) struct OutputError {
    path: PathBuf,
    error: io::Error,
}

impl OutputError {
    /// Wraps an error that occurred while writing the output at `path`. The path is empty for
    /// stdout.
    pub(crate) fn wrap(path: &Path, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Self { path: path.to_owned(), error })
    }

    /// Returns the failure that describes `error`, if the error was created by
    /// [`OutputError::wrap`].
    fn failure(error: &io::Error) -> Option<Failure> {
        let refused: &Self = error.get_ref()?.downcast_ref()?;
        Some(if refused.path.as_os_str().is_empty() {
            Failure::failed(format!("cannot write the results: {}", refused.error)).at(Path::new("stdout"))
        } else {
            cannot_write(&refused.path, &refused.error)
        })
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for OutputError {}

/// Returns the failure for an output file that cannot be written. Its advice depends on the error.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    file_system_failure("cannot write the output", path, error)
}

/// Returns the failure for an error of the file system, with advice. `what` describes the operation
/// that failed.
pub(crate) fn file_system_failure(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{what}: {error}")).at(path).next(rovelog_export::next_step(error))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // Logs are read from memory, so reading a log never causes a broken pipe. The error
        // therefore means that the pipe to which the command writes was closed.
        let io = error.get_ref().downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return Self::Closed;
        }
        if let Some(failure) = io.and_then(OutputError::failure) {
            return failure;
        }
        // The text of an error does not include the errors that caused it. The causing errors are
        // collected in a list, which is printed with `-v`.
        let mut causes = Vec::new();
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            causes.push(error.to_string());
            source = error.source();
        }
        // Some arguments can be checked only after a log has been opened. The library then reports
        // that an argument is invalid.
        let usage = error.kind == ErrorKind::InvalidArgument;
        let next = option_for(&error).or(error.next.as_deref()).map(str::to_owned);
        Self::Message(Box::new(Message { usage, cause: error.to_string(), next, file: None, causes }))
    }
}

/// Returns the advice that names the option which avoids an error. The libraries do not know the
/// options of the command line.
fn option_for(error: &Error) -> Option<&'static str> {
    let source = error.get_ref();
    if let Some(VelError::NoCalibration) = source.downcast_ref() {
        return Some("name the db.xml file that came with the sensor with --calibration");
    }
    if let Some(BagError::NoDefinition { .. }) = source.downcast_ref() {
        return Some("name a .msg file or a folder of packages that defines the type with --msgs");
    }
    None
}

/// Converts an error that occurred while results were written.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        OutputError::failure(&error)
            .unwrap_or_else(|| Self::failed(format!("cannot write the results: {error}")))
    }
}

impl From<rovelog::rld_format::RldError> for Failure {
    fn from(error: rovelog::rld_format::RldError) -> Self {
        rovelog::Error::from(error).into()
    }
}

impl From<rovelog_export::ExportError> for Failure {
    fn from(error: rovelog_export::ExportError) -> Self {
        match error {
            rovelog_export::ExportError::Log(error) => error.into(),
            rovelog_export::ExportError::Io(error) => error.into(),
            rovelog_export::ExportError::NotBuiltIn { what, feature } => {
                Self::not_built_in(&format!("cannot write {what}"), feature)
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
                let (path, what) = (Path::new(&path), "the lake cannot be read or written");
                // Advice such as "free disk space" is useful only for errors of the operating
                // system. Any other error means that a file of the lake is damaged.
                match error.raw_os_error() {
                    Some(_) => file_system_failure(what, path, &error),
                    None => Self::failed(format!("{what}: {error}")).at(path),
                }
            }
            error @ rovelog_scale::ScaleError::NotLake(_) => {
                Self::usage(error.to_string()).next("name a new folder or a folder that contains a lake")
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
