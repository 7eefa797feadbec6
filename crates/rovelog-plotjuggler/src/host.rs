//! The functions of PlotJuggler that the plug-in calls, and the texts and errors of its interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::slice;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;

use crate::abi::{
    Level, PjError, RegistryVtable, RuntimeVtable, Service, State, StringView, TopicHandle, WriteVtable,
};

impl PjError {
    /// Creates an error. A long message is shortened.
    pub(crate) fn new(message: &str) -> Self {
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
pub(crate) fn view(text: &str) -> StringView {
    StringView { data: text.as_ptr().cast::<c_char>(), size: text.len() as u64 }
}

/// Copies a text of the host. Bytes that are not UTF-8 are replaced.
///
/// # Safety
/// The view must be empty, or point to as many bytes as it states.
pub(crate) unsafe fn text(view: &StringView) -> String {
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
    pub(crate) unsafe fn find(registry: Service<RegistryVtable>) -> Result<Self, String> {
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

    /// Shows progress. Returns false if the user has canceled the import.
    pub(crate) fn update_progress(&self, step: u64) -> bool {
        // SAFETY: the service is valid.
        unsafe { (self.functions().progress_update)(self.runtime.ctx, step) }
    }

    /// Ends the display of progress.
    pub(crate) fn finish_progress(&self) {
        // SAFETY: the service is valid.
        unsafe { (self.functions().progress_finish)(self.runtime.ctx) }
    }

    /// Tells the host the state of the source.
    pub(crate) fn notify_state(&self, state: State) {
        // SAFETY: the service is valid.
        unsafe { (self.functions().notify_state)(self.runtime.ctx, state) }
    }

    /// Asks the host to end the source.
    pub(crate) fn request_stop(&self, state: State, reason: &str) {
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
