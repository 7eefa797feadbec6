//! The last error of each thread, and the conversion of panics to errors.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rovelog::{Error, ErrorKind, Result};

/// Result of a function: success, or the kind of an error.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RovelogStatus {
    /// No error.
    Ok = 0,
    /// The operating system reported an error, or another program shortened the open file.
    Io = 1,
    /// The file is not a log of a supported format.
    NotALog = 2,
    /// The bytes violate the specification of the format.
    Malformed = 3,
    /// The file ends before any record can be read.
    Truncated = 4,
    /// The log is valid, but uses an unsupported feature.
    Unsupported = 5,
    /// A limit that protects against malicious logs was exceeded.
    LimitExceeded = 6,
    /// An argument is wrong, for example a field that the topic does not have.
    InvalidArgument = 7,
    /// Some records are lost. All other records were returned.
    DataLost = 8,
    /// An internal error occurred, which is a bug in Rovelog.
    Internal = 9,
}

impl From<ErrorKind> for RovelogStatus {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Io => Self::Io,
            ErrorKind::NotThisFormat => Self::NotALog,
            ErrorKind::Malformed => Self::Malformed,
            ErrorKind::Truncated => Self::Truncated,
            ErrorKind::LimitExceeded => Self::LimitExceeded,
            ErrorKind::InvalidArgument => Self::InvalidArgument,
            ErrorKind::DataLost => Self::DataLost,
            // Parts of a log are only missing if it is remote, and this library opens local files.
            _ => Self::Unsupported,
        }
    }
}

thread_local! {
    /// Status of the last error of this thread.
    static STATUS: Cell<RovelogStatus> = const { Cell::new(RovelogStatus::Ok) };
    /// Message of the last error of this thread.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Calls `work`. An error or a panic becomes the last error of this thread, and its status is
/// returned.
pub(crate) fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T, RovelogStatus> {
    // Asserting unwind safety is sound, because an open log does not change, and the result of
    // `work` is dropped after a panic.
    let (status, message) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(error)) => (error.kind.into(), error_text(&error)),
        Err(panic) => (RovelogStatus::Internal, panic_message(&*panic)),
    };
    STATUS.set(status);
    // The message cannot be stored while the thread ends. The status is returned anyway.
    let _ = MESSAGE.try_with(|last| last.replace(c_text(&message)));
    Err(status)
}

/// Returns the status of the last error of this thread.
pub(crate) fn last_status() -> RovelogStatus {
    STATUS.get()
}

/// Returns the message of the last error of this thread. The text is valid until the next error of
/// this thread.
pub(crate) fn last_message() -> *const c_char {
    MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"the thread ends".as_ptr())
}

/// Returns the text of an error, and its next step if there is one.
pub fn error_text(error: &Error) -> String {
    match &error.next {
        Some(next) => format!("{error}; {next}"),
        None => error.to_string(),
    }
}

/// Describes a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let why = panic.downcast_ref::<&str>().copied();
    let why = why.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or_default();
    format!(
        "an internal error occurred, which is a bug in rovelog: {why}; please report it, and include the \
         log if you can"
    )
}

/// Converts a text to a C string. A NUL byte in the text becomes `\0`, because it would end a C
/// string.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// Creates the error for a wrong argument.
pub(crate) fn invalid(why: impl Into<String>) -> Error {
    Error::new("rovelog", ErrorKind::InvalidArgument, None, why.into())
}

/// Returns an argument as UTF-8. `what` names the argument.
pub(crate) fn utf8<'a>(text: &'a CStr, what: &str) -> Result<&'a str> {
    text.to_str().map_err(|_| invalid(format!("{what} is not UTF-8")))
}
