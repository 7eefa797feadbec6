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
use serde_json::Value;

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
struct State {
    request: Vec<u8>,
    log: Option<(Explore, String)>,
    reply: Reply,
    raw: RawReply,
}

thread_local! {
    static STATE: RefCell<State> = const {
        let none = core::ptr::null();
        RefCell::new(State {
            request: Vec::new(),
            log: None,
            reply: Reply { media_type: "", bytes: Vec::new(), note: None },
            raw: RawReply {
                failed: 0,
                media_type: none,
                media_type_len: 0,
                bytes: none,
                bytes_len: 0,
                note: none,
                note_len: 0,
            },
        })
    };
}

/// Returns the address at which JavaScript writes the text of the next request. The text has `len`
/// bytes of UTF-8.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_request(len: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.request = vec![0; len];
        state.request.as_mut_ptr()
    })
}

/// Opens the log. The request is JSON: a list of the files of the log, each with its name and size.
/// The first file is the log, and the others are its companion files. JavaScript reads a file by its
/// position in the list.
///
/// If `whole` is 0, only the parts of the log that are needed for its summary are read.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_open(whole: u32) -> *const RawReply {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        // SAFETY: the text lives until the call returns.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    STATE.with_borrow_mut(|state| {
        let opened = open(&state.request, whole != 0).map(|(log, name)| {
            state.log = Some((Explore::new(log, &*name, &*name), name));
            Reply { media_type: "", bytes: Vec::new(), note: None }
        });
        state.reply(opened)
    })
}

/// Answers a request for the open log, or a request that concerns no log.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn rovelog_answer() -> *const RawReply {
    STATE.with_borrow_mut(|state| {
        let answered = match (&state.log, str::from_utf8(&state.request)) {
            (Some((explore, name)), Ok(request)) => answer(explore, name, request),
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
        self.reply =
            reply.unwrap_or_else(|error| Reply { media_type: "", bytes: error.into_bytes(), note: None });
        let Reply { media_type, bytes, note } = &self.reply;
        let note = note.as_deref().unwrap_or_default();
        self.raw = RawReply {
            failed,
            media_type: media_type.as_ptr(),
            media_type_len: media_type.len(),
            bytes: bytes.as_ptr(),
            bytes_len: bytes.len(),
            note: note.as_ptr(),
            note_len: note.len(),
        };
        &raw const self.raw
    }
}

/// Opens the log of a list of files. Returns it with its name.
fn open(request: &[u8], whole: bool) -> Result<(AnyLog, String), String> {
    let files: Vec<(String, u64)> = serde_json::from_slice::<Value>(request)
        .ok()
        .and_then(|value| serde_json::from_value(value).ok())
        .ok_or("the list of files is invalid")?;
    let (name, size) = files.first().cloned().ok_or("the list of files is empty")?;
    let log = if files.len() > 1 { open_parts(&files) } else { open_file(size, whole) };
    log.map(|log| (log, name)).map_err(|error| match &error.next {
        Some(next) => format!("{error}; {next}"),
        None => error.to_string(),
    })
}

/// Enlarges the memory of the module once. Otherwise the allocator enlarges it in thousands of small
/// steps while columns are read, and each step takes longer than the work in between.
fn enlarge_memory(size: u64) {
    let mut memory: Vec<u8> = Vec::new();
    // Memory that is never written takes no memory of the machine. If there is not enough, the
    // allocator continues with small steps.
    let _ = memory.try_reserve(usize::try_from(size.saturating_mul(2)).map_or(0, |size| size.min(1 << 30)));
}

/// Opens a log that is a single file.
fn open_file(size: u64, whole: bool) -> Result<AnyLog> {
    let file = HostFile::new(0, size)?;
    if !whole && rovelog::outline(&file, None)? && !file.unread().is_empty() {
        let mut options = ReadOptions::default();
        options.unread = file.unread();
        match rovelog::from_bytes(file.into_bytes(), &options) {
            // Without an index, the numbers of records would only be those of the parts.
            Ok(log) if log.needed(&Select::all()).is_none() => return open_file(size, true),
            Err(error) if error.kind == ErrorKind::PartlyRead => return open_file(size, true),
            log => return log,
        }
    }
    file.fetch_all()?;
    enlarge_memory(size);
    rovelog::from_bytes(file.into_bytes(), &ReadOptions::default())
}

/// Opens a log that consists of several files.
fn open_parts(files: &[(String, u64)]) -> Result<AnyLog> {
    let mut parts: Vec<(String, Bytes)> = Vec::new();
    for (number, (name, size)) in (0..).zip(files) {
        let file = HostFile::new(number, *size)?;
        file.fetch_all()?;
        parts.push((name.clone(), file.into_bytes()));
    }
    let (_, log) = parts.remove(0);
    rovelog::from_files(log, parts, &ReadOptions::default())
}
