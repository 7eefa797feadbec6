//! Symbols that PlotJuggler looks up, functions that it calls, and calls of its functions.
//!
//! The host calls the functions of a source one after the other on one thread, except for
//! `current_state`, which any thread may call. A panic becomes an error, so that it does not unwind
//! into the host.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;

use crate::abi::{
    ABI_VERSION, DATA_SOURCE_PROTOCOL_VERSION, DIRECT_INGEST, DataSourceVtable, FINITE_IMPORT, Level,
    PjError, RegistryVtable, RuntimeVtable, Service, State, StringView, TopicHandle, WriteVtable,
};
use crate::import;

/// Version of the interface, which the host reads before it calls any function.
#[unsafe(no_mangle)]
static pj_plugin_abi_version: u32 = ABI_VERSION;

/// Description of the plug-in for the host.
const MANIFEST: &str = concat!(
    r#"{"id":"rovelog","name":"Rovelog","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","description":"Opens ULog, RLD, ROS 1 bag and VEL logs, damaged ones included","#,
    r#""file_extensions":[".ulg",".rld",".bag",".vel"]}"#,
    "\0"
);

/// Functions of the plug-in, with a pointer to a static text.
struct Vtable(DataSourceVtable);

// SAFETY: the table is never changed, and the text to which it points is static.
unsafe impl Sync for Vtable {}

#[expect(clippy::cast_possible_truncation, reason = "the table has 17 entries")]
static VTABLE: Vtable = Vtable(DataSourceVtable {
    protocol_version: DATA_SOURCE_PROTOCOL_VERSION,
    struct_size: size_of::<DataSourceVtable>() as u32,
    create,
    destroy,
    manifest_json: MANIFEST.as_ptr().cast(),
    capabilities,
    bind,
    save_config,
    load_config,
    start,
    stop,
    pause: cannot_pause,
    resume: cannot_pause,
    poll,
    current_state,
    get_dialog,
    get_plugin_extension,
});

/// Returns the functions of the plug-in.
#[unsafe(no_mangle)]
extern "C" fn PJ_get_data_source_vtable() -> *const DataSourceVtable {
    &raw const VTABLE.0
}

/// A data source in PlotJuggler, which reads one log.
struct Source {
    state: AtomicI32,
    inner: Mutex<Inner>,
}

/// Parts of a source that only the thread of the host uses.
#[derive(Default)]
struct Inner {
    host: Option<Host>,
    /// Settings as JSON. The host stores them in a layout.
    config: String,
    /// Last result of `save_config`, which the host may still read.
    saved: String,
    path: PathBuf,
}

impl Source {
    /// Returns the source behind a pointer of the host.
    ///
    /// # Safety
    /// `ctx` must be a result of [`create`] that was not destroyed.
    unsafe fn of<'a>(ctx: *mut c_void) -> &'a Self {
        // SAFETY: the caller guarantees it. The source is only used by shared references.
        unsafe { &*ctx.cast::<Self>() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_state(&self, host: &Host, state: State) {
        self.state.store(state as i32, Ordering::SeqCst);
        host.notify_state(state);
    }

    /// Reads the log.
    fn start(&self) -> Result<(), String> {
        let (host, path) = {
            let inner = self.inner();
            (inner.host.ok_or("the host offers no services")?, inner.path.clone())
        };
        self.set_state(&host, State::Starting);
        let imported = catch_unwind(AssertUnwindSafe(|| import::import(&path, &host)))
            .unwrap_or_else(|_| Err(BUG.to_owned()));
        host.finish_progress();
        self.set_state(&host, if imported.is_ok() { State::Stopped } else { State::Failed });
        if imported.is_ok() {
            host.request_stop(State::Stopped, "import complete");
        }
        imported
    }
}

/// Text of the error after a panic.
pub(crate) const BUG: &str = "an internal error occurred, which is a bug in rovelog; please report it";

extern "C" fn create() -> *mut c_void {
    let source = Source { state: AtomicI32::new(State::Idle as i32), inner: Mutex::default() };
    Box::into_raw(Box::new(source)).cast()
}

unsafe extern "C" fn destroy(ctx: *mut c_void) {
    // SAFETY: the host passes a result of `create`, and does not use it any more.
    drop(unsafe { Box::from_raw(ctx.cast::<Source>()) });
}

extern "C" fn capabilities(_: *mut c_void) -> u64 {
    FINITE_IMPORT | DIRECT_INGEST
}

unsafe extern "C" fn bind(ctx: *mut c_void, registry: Service<RegistryVtable>, error: *mut PjError) -> bool {
    // SAFETY: the host passes a source and its registry, whose functions stay valid.
    let host = unsafe { Host::find(registry) };
    // SAFETY: the host passes a source.
    let bound = host.map(|host| unsafe { Source::of(ctx) }.inner().host = Some(host));
    // SAFETY: the host passes memory for an error, or NULL.
    unsafe { report(bound, error) }
}

unsafe extern "C" fn save_config(ctx: *mut c_void, out: *mut StringView, _: *mut PjError) -> bool {
    // SAFETY: the host passes a source.
    let mut inner = unsafe { Source::of(ctx) }.inner();
    let Inner { config, saved, .. } = &mut *inner;
    saved.clone_from(config);
    // SAFETY: the host passes memory for the text, which stays valid until the next call.
    unsafe { out.write(view(&inner.saved)) };
    true
}

unsafe extern "C" fn load_config(ctx: *mut c_void, config: StringView, error: *mut PjError) -> bool {
    // SAFETY: the host passes a text that is valid during the call.
    let config = unsafe { text(&config) };
    let loaded = file_path(&config).map(|path| {
        // SAFETY: the host passes a source.
        let mut inner = unsafe { Source::of(ctx) }.inner();
        (inner.config, inner.path) = (config, path);
    });
    // SAFETY: the host passes memory for an error, or NULL.
    unsafe { report(loaded, error) }
}

/// Returns the path in the settings, which have the form `{"filepath": "/path/to/flight.ulg"}`.
fn file_path(config: &str) -> Result<PathBuf, String> {
    let config: serde_json::Value =
        serde_json::from_str(config).map_err(|error| format!("the settings are not JSON: {error}"))?;
    let path = config.get("filepath").and_then(serde_json::Value::as_str);
    path.map(PathBuf::from).ok_or_else(|| "the settings have no `filepath`; open a log file".to_owned())
}

unsafe extern "C" fn start(ctx: *mut c_void, error: *mut PjError) -> bool {
    // SAFETY: the host passes a source, and memory for an error or NULL.
    unsafe { report(Source::of(ctx).start(), error) }
}

/// Does nothing, because `start` returns only after the whole log was read.
unsafe extern "C" fn stop(_: *mut c_void) {}

unsafe extern "C" fn cannot_pause(_: *mut c_void, error: *mut PjError) -> bool {
    // SAFETY: the host passes memory for an error, or NULL.
    unsafe { report(Err("a log cannot be paused".to_owned()), error) }
}

unsafe extern "C" fn poll(_: *mut c_void, _: *mut PjError) -> bool {
    true
}

unsafe extern "C" fn current_state(ctx: *mut c_void) -> c_int {
    // SAFETY: the host passes a source.
    unsafe { Source::of(ctx) }.state.load(Ordering::SeqCst)
}

extern "C" fn get_dialog(_: *mut c_void) -> Service<c_void> {
    Service { ctx: ptr::null_mut(), vtable: ptr::null() }
}

extern "C" fn get_plugin_extension(_: *mut c_void, _: StringView) -> *const c_void {
    ptr::null()
}

/// Returns true after a success. Otherwise, writes the error and returns false.
///
/// # Safety
/// `error` must be `NULL` or point to memory for an error.
unsafe fn report(result: Result<(), String>, error: *mut PjError) -> bool {
    let Err(why) = result else { return true };
    if !error.is_null() {
        // SAFETY: the caller guarantees the memory.
        unsafe { error.write(PjError::new(&why)) };
    }
    false
}

impl PjError {
    /// Creates an error. A long message is shortened.
    fn new(message: &str) -> Self {
        let mut error = Self { code: i32::from(!message.is_empty()), ..Self::none() };
        let message = message.get(..message.floor_char_boundary(error.message.len() - 1)).unwrap_or_default();
        let domain = b"rovelog";
        error.message.iter_mut().zip(message.bytes()).for_each(|(to, from)| *to = from);
        error.domain.iter_mut().zip(domain).for_each(|(to, from)| *to = *from);
        error
    }

    fn none() -> Self {
        Self { code: 0, domain: [0; 32], message: [0; 224], extended: ptr::null(), extended_kind: [0; 32] }
    }

    /// Returns the message of an error that the host has written.
    fn text(&self) -> String {
        let message = CStr::from_bytes_until_nul(&self.message).unwrap_or_default();
        message.to_string_lossy().into_owned()
    }
}

/// Returns a view of a text, which is valid as long as the text.
fn view(text: &str) -> StringView {
    StringView { data: text.as_ptr().cast::<c_char>(), size: text.len() as u64 }
}

/// Copies a text of the host. Bytes that are not UTF-8 are replaced.
///
/// # Safety
/// The view must be empty, or point to as many bytes as it states.
unsafe fn text(view: &StringView) -> String {
    let Some(len) = usize::try_from(view.size).ok().filter(|len| *len > 0) else { return String::new() };
    // SAFETY: the caller guarantees the number of bytes.
    let bytes = unsafe { slice::from_raw_parts(view.data.cast::<u8>(), len) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Services of PlotJuggler. They stay valid as long as the source.
#[derive(Clone, Copy)]
pub(crate) struct Host {
    runtime: Service<RuntimeVtable>,
    write: Service<WriteVtable>,
}

// SAFETY: the host is stored behind a mutex, and the functions of a source, which use it, are called
// by one thread at a time.
unsafe impl Send for Host {}

impl Host {
    /// Finds the services.
    ///
    /// # Safety
    /// The registry and its services must be valid as long as the source.
    unsafe fn find(registry: Service<RegistryVtable>) -> Result<Self, String> {
        // SAFETY: the tables of these services have these types in the SDK.
        let (runtime, write): (Service<RuntimeVtable>, Service<WriteVtable>) =
            unsafe { (service(registry, "pj.runtime.v1")?, service(registry, "pj.source_write.v1")?) };
        // SAFETY: the registry returns valid tables.
        let sizes = unsafe { ((*runtime.vtable).struct_size, (*write.vtable).struct_size) };
        if (sizes.0 as usize) < size_of::<RuntimeVtable>() || (sizes.1 as usize) < size_of::<WriteVtable>() {
            return Err("this version of PlotJuggler is too old; install PlotJuggler 4 or later".to_owned());
        }
        Ok(Self { runtime, write })
    }

    fn functions(&self) -> &RuntimeVtable {
        // SAFETY: the table is valid as long as the source.
        unsafe { &*self.runtime.vtable }
    }

    /// Shows a message to the user.
    pub(crate) fn report(&self, level: Level, message: &str) {
        // SAFETY: the service is valid, and the host copies the text.
        unsafe { (self.functions().report_message)(self.runtime.ctx, level, view(message)) }
    }

    /// Starts a display of progress that the user can cancel.
    pub(crate) fn start_progress(&self, label: &str, total: u64) {
        // SAFETY: as in `report`. Without a display of progress, the import goes on.
        unsafe {
            (self.functions().progress_start)(self.runtime.ctx, view(label), total, true, ptr::null_mut());
        }
    }

    /// Shows progress. Returns false if the user has cancelled the import.
    pub(crate) fn update_progress(&self, step: u64) -> bool {
        // SAFETY: the service is valid.
        unsafe { (self.functions().progress_update)(self.runtime.ctx, step) }
    }

    fn finish_progress(&self) {
        // SAFETY: the service is valid.
        unsafe { (self.functions().progress_finish)(self.runtime.ctx) }
    }

    fn notify_state(&self, state: State) {
        // SAFETY: the service is valid.
        unsafe { (self.functions().notify_state)(self.runtime.ctx, state) }
    }

    fn request_stop(&self, state: State, reason: &str) {
        // SAFETY: as in `report`.
        unsafe { (self.functions().request_stop)(self.runtime.ctx, state, view(reason)) }
    }

    /// Returns true if the host wants the source to stop.
    pub(crate) fn is_stop_requested(&self) -> bool {
        self.stop_flag().is_set()
    }

    /// Returns the function that tells whether the host wants the source to stop.
    pub(crate) fn stop_flag(&self) -> StopFlag {
        StopFlag { ctx: self.runtime.ctx, is_set: self.functions().is_stop_requested }
    }

    /// Passes the rows of a topic to the host. The column `t_ns` contains the times.
    pub(crate) fn append(
        &self,
        topic: &str,
        rows: impl RecordBatchReader + Send + 'static,
    ) -> Result<(), String> {
        // SAFETY: the table is valid as long as the source.
        let write = unsafe { &*self.write.vtable };
        let append = write.append_arrow_stream.ok_or("this version of PlotJuggler reads no Arrow streams")?;
        let (mut handle, mut error) = (TopicHandle { id: 0 }, PjError::none());
        let mut stream = FFI_ArrowArrayStream::new(Box::new(rows));
        // SAFETY: the pointers are valid during the calls, and the host copies the texts. After a
        // success, the host has released the stream. After an error, the stream is released when it
        // is dropped.
        let appended = unsafe {
            (write.ensure_topic)(self.write.ctx, view(topic), &raw mut handle, &raw mut error)
                && append(self.write.ctx, handle, &raw mut stream, view("t_ns"), &raw mut error)
        };
        if appended {
            // The host may have moved the stream without clearing it.
            std::mem::forget(stream);
            return Ok(());
        }
        Err(error.text())
    }
}

/// Finds a service by its name.
///
/// # Safety
/// The registry must be valid, and `V` must be the table of functions of the service.
unsafe fn service<V>(registry: Service<RegistryVtable>, name: &str) -> Result<Service<V>, String> {
    let mut found = Service::<c_void> { ctx: ptr::null_mut(), vtable: ptr::null() };
    let mut error = PjError::none();
    // SAFETY: the caller guarantees a valid registry, and the pointers are valid during the call.
    let is_found = !registry.vtable.is_null()
        && unsafe {
            ((*registry.vtable).get_service)(registry.ctx, view(name), 1, &raw mut found, &raw mut error)
        };
    if !is_found || found.vtable.is_null() {
        return Err(format!("PlotJuggler offers no service {name}: {}", error.text()));
    }
    Ok(Service { ctx: found.ctx, vtable: found.vtable.cast() })
}

/// Function that tells whether the host wants the source to stop.
pub(crate) struct StopFlag {
    ctx: *mut c_void,
    is_set: unsafe extern "C" fn(*mut c_void) -> bool,
}

// SAFETY: the SDK allows every thread to call this function.
unsafe impl Send for StopFlag {}

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        // SAFETY: the service is valid as long as the source, which the stream does not outlive.
        unsafe { (self.is_set)(self.ctx) }
    }
}
