//! The functions that DuckDB calls. Their macros turn a panic into an error of the query.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::path::Path;

use arrow_array::Array as _;
use libduckdb_sys::duckdb_vector_size;
use quack_rs::connection::{Connection, Registrar as _};
use quack_rs::data_chunk::DataChunk;
use quack_rs::error::ExtensionError;
use quack_rs::replacement_scan::ReplacementScanInfo;
use quack_rs::table::{
    BindInfo, FfiBindData, FfiInitData, FfiLocalInitData, FunctionInfo, InitInfo, TableFunctionBuilder,
};
use quack_rs::types::TypeId;
use quack_rs::{
    entry_point_v2, replacement_scan_callback, table_bind_callback, table_init_callback, table_scan_callback,
};
use rovelog_scale::is_log;

use crate::arguments::{NAMED, texts, wanted};
use crate::facts::{FACTS, Facts};
use crate::query::{Call, Scan, Worker};
use crate::types::logical;
use crate::vectors::write;

const READ_LOG: &str = "read_log";

entry_point_v2!(rovelog_init_c_api, |connection| register(connection));

/// Registers all functions.
fn register(connection: &Connection) -> Result<(), ExtensionError> {
    let function = |name: &str| {
        TableFunctionBuilder::new(name)
            .param(TypeId::Any)
            .bind(bind)
            .init(init)
            .local_init(local_init)
            .scan(scan)
            .projection_pushdown(true)
    };
    let mut read_log = function(READ_LOG);
    for name in NAMED {
        // A text or a list of texts, or an integer or a timestamp. `arguments` checks the types.
        read_log = read_log.named_param(name, if name == "blobs" { TypeId::Boolean } else { TypeId::Any });
    }
    // SAFETY: the connection is open while the extension is loaded. `extra_info` points to a
    // static, which lives forever, and `bind` reads it with the same type.
    unsafe {
        connection.register_table(read_log)?;
        for facts in &FACTS {
            let data = std::ptr::from_ref(facts).cast_mut().cast();
            connection.register_table(function(facts.name).extra_info(data, keep))?;
        }
        connection.register_replacement_scan(replace, std::ptr::null_mut(), None);
    }
    Ok(())
}

/// Destroys nothing, because the data is static.
extern "C" fn keep(_: *mut c_void) {}

table_bind_callback!(bind, |info| {
    // SAFETY: DuckDB passes a valid handle.
    let info_of_bind = unsafe { BindInfo::new(info) };
    match call(&info_of_bind) {
        // SAFETY: the handle is valid, and the data is set once.
        Ok(call) => unsafe { FfiBindData::set(info, call) },
        Err(error) => info_of_bind.set_error(&error),
    }
});

/// Reads the arguments of a call, and declares its columns.
fn call(info: &BindInfo) -> Result<Call, String> {
    // SAFETY: each function has one positional parameter. `extra_info` is null or points to one of
    // `FACTS`.
    let (files, facts) =
        unsafe { (info.get_parameter_value(0), info.get_extra_info().cast::<Facts>().as_ref()) };
    let files = texts(&files, "files")?;
    let call = match facts {
        Some(facts) => Call::facts(&files, facts)?,
        // SAFETY: `read_log` has all named parameters.
        None => Call::rows(&files, wanted(|name| unsafe { info.get_named_parameter_value(name) })?)?,
    };
    for field in call.schema.fields() {
        let logical = logical(field.data_type()).map_err(|error| format!("{}: {error}", field.name()))?;
        info.add_result_column_with_type(field.name(), &logical);
    }
    Ok(call)
}

table_init_callback!(init, |info| {
    // SAFETY: DuckDB passes a valid handle, and `bind` has set the call.
    let (info_of_init, call) = unsafe { (InitInfo::new(info), FfiBindData::<Call>::get_from_init(info)) };
    let Some(call) = call else { return info_of_init.set_error("the query has not been planned") };
    let columns: Vec<_> = (0..info_of_init.projected_column_count())
        .map(|column| info_of_init.projected_column_index(column).unwrap_or(usize::MAX))
        .collect();
    let scan = match call.scan(&columns) {
        Ok(scan) => scan,
        Err(error) => return info_of_init.set_error(&error),
    };
    info_of_init.set_max_threads(scan.threads() as u64);
    // SAFETY: the handle is valid, and the data is set once.
    unsafe { FfiInitData::set(info, scan) };
});

table_init_callback!(local_init, |info| {
    // SAFETY: the handle is valid, and the data is set once.
    unsafe { FfiLocalInitData::set(info, Worker::default()) };
});

table_scan_callback!(scan, |info, output| {
    // SAFETY: DuckDB passes valid handles, and the other callbacks have set the data. Each thread has
    // its own worker.
    let (function, scan, worker, chunk) = unsafe {
        (
            FunctionInfo::new(info),
            FfiInitData::<Scan>::get(info),
            FfiLocalInitData::<Worker>::get_mut(info),
            DataChunk::from_raw(output),
        )
    };
    let (Some(scan), Some(worker)) = (scan, worker) else {
        return function.set_error("the query has not been started");
    };
    if let Err(error) = fill(scan, worker, &chunk) {
        function.set_error(&error);
    }
});

/// Writes the next rows to a chunk. At the end, the chunk has no rows.
fn fill(scan: &Scan, worker: &mut Worker, chunk: &DataChunk) -> Result<(), String> {
    // SAFETY: the function has no requirements.
    let max = usize::try_from(unsafe { duckdb_vector_size() }).unwrap_or(1);
    let Some(rows) = scan.next(worker, max)? else { return Ok(()) };
    for (number, column) in rows.columns().iter().enumerate() {
        debug_assert_eq!(column.len(), rows.num_rows());
        // SAFETY: a chunk has the requested columns with their types, and room for `max` rows.
        unsafe { write(chunk.vector(number), column)? };
    }
    // SAFETY: the chunk has room for `max` rows.
    unsafe { chunk.set_size(rows.num_rows()) };
    Ok(())
}

replacement_scan_callback!(replace, |info, name, _data| {
    // SAFETY: DuckDB passes a valid handle and a text.
    let (info, name) = unsafe { (ReplacementScanInfo::new(info), CStr::from_ptr(name)) };
    if let Ok(name) = name.to_str()
        && is_log(Path::new(name))
    {
        info.set_function(READ_LOG).add_varchar_parameter(name);
    }
});
