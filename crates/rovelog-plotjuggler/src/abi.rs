//! Structures of the PlotJuggler SDK 0.23: `plugin_data_api.h` and `data_source_protocol.h`.
//!
//! The names of the SDK are kept without the prefix `PJ_`. Functions that the plug-in does not call
//! have the type [`Unused`].

use std::ffi::{c_char, c_int, c_void};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;

/// Version of the whole interface (`PJ_ABI_VERSION`).
pub(crate) const ABI_VERSION: u32 = 5;
/// Version of the data source protocol.
pub(crate) const DATA_SOURCE_PROTOCOL_VERSION: u32 = 4;
/// Capability of a source that reads a file once.
pub(crate) const FINITE_IMPORT: u64 = 1;
/// Capability of a source that writes decoded data.
pub(crate) const DIRECT_INGEST: u64 = 1 << 2;

/// Pointer to a function that the plug-in does not call.
pub(crate) type Unused = *const c_void;

/// Text that is not NUL-terminated.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StringView {
    pub(crate) data: *const c_char,
    pub(crate) size: u64,
}

/// An error. A function writes it to memory of its caller.
#[repr(C)]
pub(crate) struct PjError {
    pub(crate) code: i32,
    pub(crate) domain: [u8; 32],
    pub(crate) message: [u8; 224],
    pub(crate) extended: *const c_void,
    pub(crate) extended_kind: [u8; 32],
}

/// State of a data source.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) enum State {
    Idle = 0,
    Starting = 2,
    Stopped = 6,
    Failed = 7,
}

/// Severity of a message to the user.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) enum Level {
    Info = 0,
    Warning = 1,
}

/// Handle of a topic in PlotJuggler.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TopicHandle {
    pub(crate) id: u32,
}

/// Context and functions of a service of the host. `V` is the table of functions.
#[repr(C)]
pub(crate) struct Service<V> {
    pub(crate) ctx: *mut c_void,
    pub(crate) vtable: *const V,
}

impl<V> Clone for Service<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Service<V> {}

/// Functions that find services by their name.
#[repr(C)]
pub(crate) struct RegistryVtable {
    pub(crate) protocol_version: u32,
    pub(crate) struct_size: u32,
    pub(crate) get_service: unsafe extern "C" fn(
        ctx: *mut c_void,
        name: StringView,
        min_version: u32,
        service: *mut Service<c_void>,
        error: *mut PjError,
    ) -> bool,
}

/// Functions that write rows.
#[repr(C)]
pub(crate) struct WriteVtable {
    pub(crate) abi_version: u32,
    pub(crate) struct_size: u32,
    pub(crate) ensure_topic: unsafe extern "C" fn(
        ctx: *mut c_void,
        name: StringView,
        topic: *mut TopicHandle,
        error: *mut PjError,
    ) -> bool,
    pub(crate) ensure_field: Unused,
    pub(crate) append_record: Unused,
    pub(crate) append_bound_record: Unused,
    pub(crate) append_arrow_stream: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            topic: TopicHandle,
            stream: *mut FFI_ArrowArrayStream,
            timestamp_column: StringView,
            error: *mut PjError,
        ) -> bool,
    >,
}

/// Functions for messages, progress and states.
#[repr(C)]
pub(crate) struct RuntimeVtable {
    pub(crate) protocol_version: u32,
    pub(crate) struct_size: u32,
    pub(crate) report_message: unsafe extern "C" fn(ctx: *mut c_void, level: Level, message: StringView),
    pub(crate) progress_start: unsafe extern "C" fn(
        ctx: *mut c_void,
        label: StringView,
        total: u64,
        cancellable: bool,
        error: *mut PjError,
    ) -> bool,
    pub(crate) progress_update: unsafe extern "C" fn(ctx: *mut c_void, step: u64) -> bool,
    pub(crate) progress_finish: unsafe extern "C" fn(ctx: *mut c_void),
    pub(crate) is_stop_requested: unsafe extern "C" fn(ctx: *mut c_void) -> bool,
    pub(crate) notify_state: unsafe extern "C" fn(ctx: *mut c_void, state: State),
    pub(crate) request_stop: unsafe extern "C" fn(ctx: *mut c_void, state: State, reason: StringView),
    pub(crate) ensure_parser_binding: Unused,
    pub(crate) show_message_box: Unused,
    pub(crate) list_available_encodings: Unused,
}

/// Functions of a data source, which the plug-in implements.
#[repr(C)]
pub(crate) struct DataSourceVtable {
    pub(crate) protocol_version: u32,
    pub(crate) struct_size: u32,
    pub(crate) create: extern "C" fn() -> *mut c_void,
    pub(crate) destroy: unsafe extern "C" fn(ctx: *mut c_void),
    pub(crate) manifest_json: *const c_char,
    pub(crate) capabilities: extern "C" fn(ctx: *mut c_void) -> u64,
    pub(crate) bind: unsafe extern "C" fn(*mut c_void, Service<RegistryVtable>, *mut PjError) -> bool,
    pub(crate) save_config: unsafe extern "C" fn(*mut c_void, *mut StringView, *mut PjError) -> bool,
    pub(crate) load_config: unsafe extern "C" fn(*mut c_void, StringView, *mut PjError) -> bool,
    pub(crate) start: unsafe extern "C" fn(*mut c_void, *mut PjError) -> bool,
    pub(crate) stop: unsafe extern "C" fn(*mut c_void),
    pub(crate) pause: unsafe extern "C" fn(*mut c_void, *mut PjError) -> bool,
    pub(crate) resume: unsafe extern "C" fn(*mut c_void, *mut PjError) -> bool,
    pub(crate) poll: unsafe extern "C" fn(*mut c_void, *mut PjError) -> bool,
    pub(crate) current_state: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) get_dialog: extern "C" fn(*mut c_void) -> Service<c_void>,
    pub(crate) get_plugin_extension: extern "C" fn(*mut c_void, StringView) -> *const c_void,
}
