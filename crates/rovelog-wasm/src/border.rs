//! The functions that JavaScript calls.
//!
//! An instance of the module has one log. JavaScript writes the text of a request to the address
//! that [`rovelog_request`] returns, and calls [`rovelog_open`] or [`rovelog_answer`], which return
//! the address of a [`RawReply`]. The reply is valid until the next call.
//!
//! If a call panics, the module is unusable. JavaScript then gets the message by `panicked`.

#![allow(unsafe_code)]

use std::cell::RefCell;

use rovelog::{AnyLog, Bytes, ErrorKind, ReadOptions, Result, Select};
use rovelog_explore::Explore;

use crate::file::HostFile;
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
/// If `whole` is 0, only the parts of a log with an index that its summary needs are read. A log of
/// several files is always read completely.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_open(whole: u32) -> *const RawReply {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // SAFETY: the text lives until the call returns.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    STATE.with_borrow_mut(|state| {
        let opened = open(&state.request, whole != 0).map(|log| state.log = Some(log));
        state.reply(opened.map(|()| Reply::default()))
    })
}

/// Answers a request for the open log, or a request that concerns no log.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_answer() -> *const RawReply {
    STATE.with_borrow_mut(|state| {
        let answered = match (&state.log, str::from_utf8(&state.request)) {
            (Some(log), Ok(request)) => answer(log, request),
            (None, Ok(request)) => answer_without_log(request),
            (_, Err(_)) => Err("the request is not UTF-8".to_owned()),
        };
        state.reply(answered)
    })
}

impl State {
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

/// Opens the log of a list of files.
fn open(request: &[u8], whole: bool) -> Result<Explore, String> {
    let files: Vec<(String, u64)> =
        serde_json::from_slice(request).map_err(|error| format!("the list of files is invalid: {error}"))?;
    let [(name, size), companions @ ..] = &files[..] else {
        return Err("the list of files is empty".to_owned());
    };
    let log = if companions.is_empty() { open_file(*size, whole) } else { open_parts(&files) };
    let log = log.map_err(|error| match &error.next {
        Some(next) => format!("{error}; {next}"),
        None => error.to_string(),
    })?;
    Ok(Explore::new(log, &**name, &**name))
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
fn open_file(size: u64, whole: bool) -> Result<AnyLog> {
    let file = HostFile::new(0, size)?;
    if !whole && rovelog::outline(&file, None)? && !file.unread().is_empty() {
        let mut options = ReadOptions::default();
        options.unread = file.unread();
        // SAFETY: the log is dropped before more of the file is read.
        match rovelog::from_bytes(unsafe { file.bytes() }, &options) {
            // Without an index, the numbers of records would only be those of the parts.
            Ok(log) if log.needed(&Select::all()).is_none() => {}
            Err(error) if error.kind == ErrorKind::PartlyRead => {}
            log => return log,
        }
    }
    file.fetch_all()?;
    enlarge_memory(size);
    // SAFETY: no more of the file is read.
    rovelog::from_bytes(unsafe { file.bytes() }, &ReadOptions::default())
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
