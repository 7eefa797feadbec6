//! The functions of the C interface.
//!
//! Each function only converts arguments and results. A panic or an error becomes a status code and
//! the last error of the thread, so that no panic unwinds into C code.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::mem::MaybeUninit;
use std::path::Path;
use std::slice;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use rovelog::{Result, Select};

use crate::error::{self, RovelogStatus, guard, invalid, utf8};
use crate::log::{RovelogLog, RovelogProblem, RovelogTopic};

/// Flag of `rovelog_open`: opens a log by its index, if it has one. This is faster, but damaged
/// records are only found when they are read. They are then not among the problems of the log. All
/// streams that end after this end with an error.
pub const ROVELOG_BY_INDEX: u32 = 1;

/// The fields and times that a stream returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RovelogSelect {
    /// Names of the fields, such as `q` or `pos.x`, or `NULL` for all fields. The column `t_ns` with
    /// the times is always returned.
    pub fields: *const *const c_char,
    /// Number of names in `fields`.
    pub field_count: usize,
    /// Start of the time window in nanoseconds of the log's clock, inclusive. `INT64_MIN` for no
    /// start.
    pub start_ns: i64,
    /// End of the time window in nanoseconds of the log's clock, exclusive. `INT64_MAX` for no end.
    pub end_ns: i64,
}

/// Returns the version of the library, such as `0.1.0`. The text is static.
// SAFETY: no other function of the program has a name that starts with `rovelog_`. This holds for
// all functions in this module.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// Returns the status of the last error that occurred on the calling thread. A success does not
/// reset it.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_last_error_code() -> RovelogStatus {
    error::last_status()
}

/// Returns the message of the last error that occurred on the calling thread: the cause, and the
/// next step if there is one. The text belongs to the library. It is valid until the next error on
/// this thread.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_last_error_message() -> *const c_char {
    error::last_message()
}

/// Opens the log at `path`. The format is detected by the content of the file. A damaged log can be
/// opened: its problems are listed by `rovelog_problem`.
///
/// `path` is a NUL-terminated path, in UTF-8 on Windows. It is not used after the call. `flags` is 0
/// or `ROVELOG_BY_INDEX`.
///
/// Returns the log, which the caller must close with `rovelog_close`. If the file cannot be read or
/// is not a log, returns `NULL` and sets the last error.
///
/// Large files are memory-mapped. If another program shortens the file, streams end with an error.
/// To detect this, the first call on Unix installs a handler for the signal `SIGBUS`. It passes
/// faults at other addresses to the previous handler.
///
/// # Safety
/// `path` must be `NULL` or a NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rovelog_open(path: *const c_char, flags: u32) -> Option<Box<RovelogLog>> {
    let open = || {
        if flags & !ROVELOG_BY_INDEX != 0 {
            return Err(invalid(format!("the flags {flags:#x} are unknown")));
        }
        // SAFETY: the caller passes a NUL-terminated text or NULL.
        let path = unsafe { text(path) }.ok_or_else(|| invalid("the path is NULL"))?;
        RovelogLog::open(native_path(path)?, flags & ROVELOG_BY_INDEX != 0)
    };
    guard(open).ok().map(Box::new)
}

/// Closes a log and frees its memory, including all texts of the log. Does nothing if `log` is
/// `NULL`. Streams of the log stay valid, and keep its file open until they are released.
///
/// No other thread may use the log during or after the call.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_close(log: Option<Box<RovelogLog>>) {
    // The status is ignored, because the caller can do nothing about an error.
    let _ = guard(|| {
        drop(log);
        Ok(())
    });
}

/// Returns the id of the log's format (`ulog`, `rld`, `rosbag` or `vel`), or `NULL` if `log` is
/// `NULL`. The text belongs to the log.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_format(log: Option<&RovelogLog>) -> *const c_char {
    log.map_or(std::ptr::null(), RovelogLog::format)
}

/// Returns the number of topics, or 0 if `log` is `NULL`.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_topic_count(log: Option<&RovelogLog>) -> usize {
    log.map_or(0, |log| log.reader().topics().len())
}

/// Writes the description of the topic with the index `index` to `topic`. The texts belong to the
/// log.
///
/// Returns `ROVELOG_STATUS_INVALID_ARGUMENT` if there is no such topic, or if an argument is
/// `NULL`. `topic` is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_topic(
    log: Option<&RovelogLog>,
    index: usize,
    topic: Option<&mut MaybeUninit<RovelogTopic>>,
) -> RovelogStatus {
    write(topic, || open_log(log)?.topic(index))
}

/// Finds the topic with the name `name`, and writes its index to `index`. The instance number `/0`
/// can be omitted from the name.
///
/// Returns `ROVELOG_STATUS_INVALID_ARGUMENT` if there is no such topic, or if an argument is
/// `NULL`. The message lists the topics of the log.
///
/// # Safety
/// `name` must be `NULL` or a NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rovelog_find_topic(
    log: Option<&RovelogLog>,
    name: *const c_char,
    index: Option<&mut MaybeUninit<usize>>,
) -> RovelogStatus {
    write(index, || {
        // SAFETY: the caller passes a NUL-terminated text or NULL.
        let name = unsafe { text(name) }.ok_or_else(|| invalid("the name is NULL"))?;
        open_log(log)?.topic_index(utf8(name, "the name")?)
    })
}

/// Returns the number of listed problems, or 0 if `log` is `NULL`. The list contains the problems
/// that were found when the log was opened, but at most 1000 of each kind. The key `problem_count`
/// of `rovelog_info` counts all of them.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_problem_count(log: Option<&RovelogLog>) -> usize {
    log.map_or(0, |log| log.reader().diagnostics().list().len())
}

/// Writes the description of the problem with the index `index` to `problem`. Problems are in file
/// order. The texts belong to the log.
///
/// Returns `ROVELOG_STATUS_INVALID_ARGUMENT` if there is no such problem, or if an argument is
/// `NULL`. `problem` is then unchanged.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_problem(
    log: Option<&RovelogLog>,
    index: usize,
    problem: Option<&mut MaybeUninit<RovelogProblem>>,
) -> RovelogStatus {
    write(problem, || open_log(log)?.problem(index))
}

/// Returns the summary of the log as JSON in UTF-8: format, size, state, times, topics, lost data
/// and details of the format. The keys have the same meaning as in the output of
/// `rovelog info -f json`. The lost data includes what was found by streams that have been read.
///
/// The caller must free the text with `rovelog_free_text`. Returns `NULL` and sets the last error if
/// `log` is `NULL`, or if another program has shortened the file.
#[unsafe(no_mangle)]
pub extern "C" fn rovelog_info(log: Option<&RovelogLog>) -> *mut c_char {
    guard(|| open_log(log)?.info()).map_or(std::ptr::null_mut(), CString::into_raw)
}

/// Frees a text that `rovelog_info` has returned. Does nothing if `text` is `NULL`.
///
/// # Safety
/// `text` must be `NULL` or a result of `rovelog_info` that has not been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rovelog_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller passes the result of `CString::into_raw` in `rovelog_info`.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Writes a stream with the rows of the topic with the index `index` to `stream`, in file order.
/// The first column is `t_ns`, the time in nanoseconds of the log's clock. The other columns are the
/// fields of the topic.
///
/// `select` contains the fields and the time window. `NULL` selects everything. It is not used after
/// the call.
///
/// The caller must call the function `release` of the stream. The stream can be read after the log
/// was closed, and by any thread, but only by one thread at a time. If the stream ends with an
/// error, its function `get_last_error` returns the message.
///
/// Returns `ROVELOG_STATUS_INVALID_ARGUMENT` if there is no such topic, if the topic does not have
/// a selected field, or if `log` or `stream` is `NULL`. Returns another status if the records cannot
/// be decoded. `stream` is then unchanged.
///
/// # Safety
/// `select` must be `NULL` or point to a valid selection, whose names are NUL-terminated texts.
/// `stream` must be `NULL` or point to memory for a stream. A stream in this memory is overwritten
/// without being released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rovelog_stream(
    log: Option<&RovelogLog>,
    index: usize,
    select: Option<&RovelogSelect>,
    stream: Option<&mut MaybeUninit<FFI_ArrowArrayStream>>,
) -> RovelogStatus {
    write(stream, || {
        let select = match select {
            // SAFETY: the caller passes a valid selection.
            Some(select) => unsafe { selection(select) }?,
            None => Select::all(),
        };
        let rows = open_log(log)?.stream(index, &select)?;
        Ok(FFI_ArrowArrayStream::new(Box::new(rows)))
    })
}

/// Calls `work`, and writes its result to `out`.
fn write<T>(out: Option<&mut MaybeUninit<T>>, work: impl FnOnce() -> Result<T>) -> RovelogStatus {
    let written = guard(|| {
        let out = out.ok_or_else(|| invalid("the pointer for the result is NULL"))?;
        out.write(work()?);
        Ok(())
    });
    written.err().unwrap_or(RovelogStatus::Ok)
}

/// Returns the log, or an error if it is `NULL`.
fn open_log(log: Option<&RovelogLog>) -> Result<&RovelogLog> {
    log.ok_or_else(|| invalid("the log is NULL"))
}

/// Returns a text of the caller, or `None` if it is `NULL`.
///
/// # Safety
/// `text` must be `NULL` or a NUL-terminated text that stays unchanged for the lifetime `'a`.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the text is not NULL, and the caller guarantees the rest.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Converts a selection of the caller.
///
/// # Safety
/// If `select.fields` is not `NULL`, it must point to `select.field_count` texts, each of which is
/// `NULL` or NUL-terminated.
unsafe fn selection(select: &RovelogSelect) -> Result<Select> {
    let bound = |nanos: i64, unlimited: i64| Some(nanos).filter(|nanos| *nanos != unlimited);
    let all = Select::all().between(bound(select.start_ns, i64::MIN), bound(select.end_ns, i64::MAX));
    if select.fields.is_null() {
        return Ok(all);
    }
    // SAFETY: the caller guarantees the number of texts.
    let fields = unsafe { slice::from_raw_parts(select.fields, select.field_count) };
    let name = |field: &*const c_char| {
        // SAFETY: the caller guarantees that each text is NULL or NUL-terminated.
        let name = unsafe { text(*field) }.ok_or_else(|| invalid("the name of a field is NULL"))?;
        utf8(name, "the name of a field").map(str::to_owned)
    };
    Ok(all.with_fields(fields.iter().map(name).collect::<Result<Vec<_>>>()?))
}

/// Returns a path of the caller. On Unix, it may contain any bytes.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "a path on other systems may be invalid")]
fn native_path(path: &CStr) -> Result<&Path> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
}

/// Returns a path of the caller, which is UTF-8.
#[cfg(not(unix))]
fn native_path(path: &CStr) -> Result<&Path> {
    utf8(path, "the path").map(Path::new)
}
