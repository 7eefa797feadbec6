//! The functions that JavaScript calls.
//!
//! An instance of the module has at most one open log. JavaScript writes the text of a request to the address
//! that [`rovelog_request`] returns, and calls [`rovelog_open`] or [`rovelog_answer`], which return
//! the address of a [`RawReply`]. The reply is valid until the next call.
//!
//! If a call panics, the module is unusable. JavaScript then gets the message by `panicked`.

#![allow(unsafe_code)]

use std::cell::RefCell;

use rovelog::core::internal::partial::Ranges as _;
use rovelog::{AnyLog, Bytes, Error, ErrorKind, ReadOptions, Result, Select};
use rovelog_explore::Explore;

use crate::file::{HostFile, MAX_SMALL, read_small};
use crate::requests::{Reply, answer, answer_without_log};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Passes the message of a panic to JavaScript, as UTF-8.
    fn panicked(text: *const u8, len: usize);
}

/// A reply as JavaScript reads it.
#[repr(C)]
pub(crate) struct RawReply {
    /// 1 if `bytes` is the text of an error, otherwise 0.
    failed: u32,
    media_type: *const u8,
    media_type_len: usize,
    bytes: *const u8,
    bytes_len: usize,
    /// Text about data that is missing in the answer. The length is 0 if nothing is missing.
    note: *const u8,
    note_len: usize,
}

/// State of an instance.
#[derive(Default)]
struct State {
    request: Vec<u8>,
    log: Option<Explore>,
    /// The file of the log, if only the parts of it are read that requests need.
    partly_read: Option<HostFile>,
    /// Why more of the log could not be read. The log then cannot be used any more.
    failure: Option<String>,
    /// The last reply, and its raw form, which points into it.
    reply: Reply,
    raw: Option<RawReply>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Returns the address at which JavaScript writes the text of the next request. The text has `len`
/// bytes of UTF-8.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_request(len: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        // The last reply may be as large as the log.
        (state.reply, state.raw) = (Reply::default(), None);
        state.request = vec![0; len];
        state.request.as_mut_ptr()
    })
}

/// Opens the log. The request is JSON: a list of the files of the log, each with its name and size.
/// The first file is the log, and the others are its companion files. JavaScript reads a file by its
/// position in the list.
///
/// If `whole` is 0, only the parts of the log are read that the requests need. A log of several files
/// and a log without an index are always read completely.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_open(whole: u32) -> *const RawReply {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // SAFETY: the text lives until the call returns.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    STATE.with_borrow_mut(|state| {
        (state.log, state.partly_read, state.failure) = (None, None, None);
        let opened = open(&state.request, whole != 0);
        let opened = opened.map(|(log, partly_read)| {
            (state.log, state.partly_read) = (Some(log), partly_read);
            Reply::default()
        });
        state.reply(opened)
    })
}

/// Closes the log, so that its memory can be used for another one.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_close() {
    STATE.with_borrow_mut(|state| *state = State::default());
}

/// Answers a request for the open log, or a request that concerns no log.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_answer() -> *const RawReply {
    STATE.with_borrow_mut(|state| {
        let request = std::mem::take(&mut state.request);
        let answered = match str::from_utf8(&request) {
            Ok(request) => state.answer(request),
            Err(_) => Err("the request is not UTF-8".to_owned()),
        };
        state.reply(answered)
    })
}

impl State {
    /// Answers a request. If the log is partly read, the parts that the request needs are read first.
    fn answer(&mut self, request: &str) -> Result<Reply, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let Some(mut log) = self.log.take() else { return answer_without_log(request) };
        if let Some(file) = &self.partly_read {
            let read = read_needed(log, file, request);
            log = read.inspect_err(|error| self.failure = Some(error.clone()))?;
        }
        answer(self.log.insert(log), request)
    }

    /// Stores a reply, and returns the address of its raw form.
    fn reply(&mut self, reply: Result<Reply, String>) -> *const RawReply {
        let failed = u32::from(reply.is_err());
        self.reply = reply.unwrap_or_else(|error| Reply { bytes: error.into_bytes(), ..Reply::default() });
        let Reply { media_type, bytes, note } = &self.reply;
        let note = note.as_deref().unwrap_or_default();
        let raw = RawReply {
            failed,
            media_type: media_type.as_ptr(),
            media_type_len: media_type.len(),
            bytes: bytes.as_ptr(),
            bytes_len: bytes.len(),
            note: note.as_ptr(),
            note_len: note.len(),
        };
        &raw const *self.raw.insert(raw)
    }
}

/// Opens the log of a list of files. If the log is partly read, its file is also returned.
fn open(request: &[u8], whole: bool) -> Result<(Explore, Option<HostFile>), String> {
    let files: Vec<(String, u64)> =
        serde_json::from_slice(request).map_err(|error| format!("the list of files is invalid: {error}"))?;
    let (log, name, file) = match &files[..] {
        [] => return Err("the list of files is empty".to_owned()),
        [(name, size)] => {
            let (log, file) = open_file(*size, whole).map_err(|error| text(&error))?;
            (log, name, file.filter(|file| !file.unread().is_empty()))
        }
        [(name, _), ..] => (open_parts(&files).map_err(|error| text(&error))?, name, None),
    };
    Ok((Explore::new(log, &**name, &**name), file))
}

/// Returns the text of an error for the user.
fn text(error: &Error) -> String {
    match &error.next {
        Some(next) => format!("{error}; {next}"),
        None => error.to_string(),
    }
}

/// Enlarges the memory of the module once. Otherwise the allocator enlarges it in thousands of small
/// steps while columns are read, and each step takes longer than the work in between.
fn enlarge_memory(size: u64) {
    let mut memory: Vec<u8> = Vec::new();
    // Memory that is never written takes no memory of the machine. If there is not enough, the
    // allocator continues with small steps.
    let _ = memory.try_reserve(usize::try_from(size.saturating_mul(2)).map_or(0, |size| size.min(1 << 30)));
    // Otherwise the compiler may remove memory that is not used.
    std::hint::black_box(&memory);
}

/// Opens a log that is a single file. If `whole` is false and the log has an index, only the parts
/// that its summary needs are read.
fn open_file(size: u64, whole: bool) -> Result<(AnyLog, Option<HostFile>)> {
    if whole && size <= MAX_SMALL {
        let bytes = read_small(0, size)?;
        enlarge_memory(size);
        return Ok((rovelog::from_bytes(bytes, &ReadOptions::default())?, None));
    }
    let file = HostFile::new(0, size)?;
    if whole || !rovelog::outline(&file, None)? {
        file.fetch_all()?;
    }
    Ok((open_read(&file)?, Some(file)))
}

/// Opens a log with what was read of its file. If this is not sufficient, the whole file is read.
fn open_read(file: &HostFile) -> Result<AnyLog> {
    let unread = file.unread();
    if !unread.is_empty() {
        let mut options = ReadOptions::default();
        options.unread = unread;
        // SAFETY: this function and its callers drop the log before they read more of the file.
        match rovelog::from_bytes(unsafe { file.bytes() }, &options) {
            // Without an index, the numbers of records would only be those of the parts.
            Ok(log) if log.needed(&Select::all()).is_none() => {}
            Err(error) if error.kind == ErrorKind::PartlyRead => {}
            log => return log,
        }
        file.fetch_all()?;
    }
    enlarge_memory(file.size());
    // SAFETY: no more of the file is read.
    rovelog::from_bytes(unsafe { file.bytes() }, &ReadOptions::default())
}

/// Reads the parts of a file that a request needs, and returns the log with them.
fn read_needed(mut log: Explore, file: &HostFile, request: &str) -> Result<Explore, String> {
    loop {
        let needed = log.needed(request).unwrap_or_else(|| file.unread().ranges().to_vec());
        if needed.is_empty() {
            return Ok(log);
        }
        let name = log.name().to_owned();
        drop(log);
        file.fetch(&needed).map_err(|error| text(&error))?;
        log = Explore::new(open_read(file).map_err(|error| text(&error))?, &*name, &*name);
    }
}

/// Opens a log that consists of several files.
fn open_parts(files: &[(String, u64)]) -> Result<AnyLog> {
    let mut parts: Vec<(String, Bytes)> = Vec::new();
    for (number, (name, size)) in (0..).zip(files) {
        let file = HostFile::new(number, *size)?;
        file.fetch_all()?;
        // SAFETY: no more of the file is read.
        parts.push((name.clone(), unsafe { file.bytes() }));
    }
    rovelog::from_files(parts, &ReadOptions::default())
}
