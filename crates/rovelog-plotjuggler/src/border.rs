//! Symbols that PlotJuggler looks up, and the functions of a data source that it calls.
//!
//! The host calls the functions of a source one after the other on one thread, except for
//! `current_state`, which any thread may call. `start` converts a panic to an error, so that it does
//! not unwind into the host. The other functions call no code that can panic.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard};

use rovelog::core::internal::parallel::lock;

use crate::abi::{
    ABI_VERSION, DATA_SOURCE_PROTOCOL_VERSION, DIRECT_INGEST, DataSourceVtable, FINITE_IMPORT, PjError,
    RegistryVtable, Service, State, StringView,
};
use crate::host::{Host, text, view};
use crate::import::{BUG, import};

/// Version of the interface, which the host reads before it calls any function.
#[unsafe(no_mangle)]
static pj_plugin_abi_version: u32 = ABI_VERSION;

/// Manifest of the plug-in as JSON: its name, and the extensions of the files that it opens.
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
        lock(&self.inner)
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
        let imported =
            catch_unwind(AssertUnwindSafe(|| import(&path, &host))).unwrap_or_else(|_| Err(BUG.to_owned()));
        host.finish_progress();
        self.set_state(&host, if imported.is_ok() { State::Stopped } else { State::Failed });
        if imported.is_ok() {
            host.request_stop(State::Stopped, "import complete");
        }
        imported
    }
}

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

/// Returns whether `result` is a success. If it is not, writes the error to `error`.
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
