//! Copies Arrow columns to DuckDB vectors.
#![allow(unsafe_code)]

use arrow_array::cast::AsArray as _;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, downcast_primitive_array};
use arrow_buffer::ArrowNativeType as _;
use arrow_schema::{DataType, TimeUnit};
use libduckdb_sys::{
    duckdb_array_vector_get_child, duckdb_list_entry, duckdb_list_vector_get_child,
    duckdb_list_vector_reserve, duckdb_list_vector_set_size, duckdb_struct_vector_get_child, duckdb_vector,
    duckdb_vector_assign_string_element_len, duckdb_vector_get_data, idx_t,
};
use quack_rs::vector::VectorWriter;

use crate::types::MAX_ARRAY_LEN;

/// Smallest number of nanoseconds that DuckDB can convert to a date: 1677-09-22.
const MIN_NANOS: i64 = -9_223_286_400_000_000_000;

/// Copies all rows of `array` to the start of `vector`.
///
/// # Errors
/// Returns an error if the type of the array is not supported, or if DuckDB has no memory.
///
/// # Safety
/// `vector` must be a flat vector with at least as many rows as `array`, and with the type that
/// [`logical`](crate::types::logical) returns for the type of `array`.
pub(crate) unsafe fn write(vector: duckdb_vector, array: &ArrayRef) -> Result<(), String> {
    // SAFETY: the vector has the type of the array in each arm, and enough rows.
    unsafe {
        downcast_primitive_array!(
            array => numbers(vector, array),
            DataType::Boolean => copy(vector, array.as_boolean().values().iter()),
            DataType::Utf8 => texts(vector, array.as_string::<i32>().iter().map(|t| t.map(str::as_bytes))),
            DataType::Binary => texts(vector, array.as_binary::<i32>().iter()),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                lists(vector, list.values(), offsets.iter().map(|at| usize::try_from(*at).unwrap_or(0)))?;
            }
            DataType::FixedSizeList(_, len) if *len <= MAX_ARRAY_LEN => {
                write(duckdb_array_vector_get_child(vector), array.as_fixed_size_list().values())?;
            }
            DataType::FixedSizeList(_, len) => {
                let len = usize::try_from(*len).unwrap_or(0);
                let list = array.as_fixed_size_list();
                lists(vector, list.values(), (0..=list.len()).map(|row| row * len))?;
            }
            DataType::Struct(_) => {
                for (number, column) in (0..).zip(array.as_struct().columns()) {
                    write(duckdb_struct_vector_get_child(vector, number), column)?;
                }
            }
            other => return Err(format!("columns of type {other} are not supported")),
        );
        // Nulls are set last, because a null struct or array also makes its members null.
        if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
            let mut writer = VectorWriter::from_vector(vector);
            for row in (0..array.len()).filter(|row| nulls.is_null(*row)) {
                writer.set_null(row);
            }
        }
    }
    Ok(())
}

/// Copies the values of a column of numbers or times.
///
/// # Safety
/// See [`write`].
unsafe fn numbers<T: ArrowPrimitiveType>(vector: duckdb_vector, array: &PrimitiveArray<T>) {
    // SAFETY: the data of the vector are numbers of this type, one for each row. DuckDB has
    // allocated them, so they do not overlap with the array.
    unsafe {
        let nanos = match T::DATA_TYPE {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
            DataType::Timestamp(TimeUnit::Microsecond, _) => 1000,
            _ => {
                let data = duckdb_vector_get_data(vector).cast::<T::Native>();
                return std::ptr::copy_nonoverlapping(array.values().as_ptr(), data, array.len());
            }
        };
        times(vector, array.iter().map(|time| time?.to_i64()?.checked_mul(nanos)));
    }
}

/// Copies values to the rows of a vector.
///
/// # Safety
/// The vector must store values of type `T`, and have a row for each value.
unsafe fn copy<T>(vector: duckdb_vector, values: impl Iterator<Item = T>) {
    // SAFETY: the caller guarantees the type and the number of rows.
    unsafe {
        let data = duckdb_vector_get_data(vector).cast::<T>();
        for (row, value) in values.enumerate() {
            data.add(row).write(value);
        }
    }
}

/// Copies times in nanoseconds. A time that DuckDB cannot represent becomes null. For the column
/// `time`, the column `t_ns` has the value.
///
/// # Safety
/// See [`write`].
unsafe fn times(vector: duckdb_vector, times: impl Iterator<Item = Option<i64>>) {
    // SAFETY: the vector stores times as 64-bit integers.
    unsafe {
        let data = duckdb_vector_get_data(vector).cast::<i64>();
        let mut writer = VectorWriter::from_vector(vector);
        for (row, time) in times.enumerate() {
            match time.filter(|nanos| (MIN_NANOS..i64::MAX).contains(nanos)) {
                Some(nanos) => data.add(row).write(nanos),
                None => writer.set_null(row),
            }
        }
    }
}

/// Copies texts or bytes. Rows without a value are skipped.
///
/// # Safety
/// See [`write`].
unsafe fn texts<'a>(vector: duckdb_vector, texts: impl Iterator<Item = Option<&'a [u8]>>) {
    for (row, text) in (0..).zip(texts) {
        if let Some(text) = text {
            // SAFETY: DuckDB copies the bytes.
            unsafe {
                duckdb_vector_assign_string_element_len(
                    vector,
                    row,
                    text.as_ptr().cast(),
                    text.len() as idx_t,
                );
            }
        }
    }
}

/// Copies lists. `offsets` are the starts of the lists in `values`, followed by the end of the last
/// list.
///
/// # Safety
/// See [`write`].
unsafe fn lists(
    vector: duckdb_vector,
    values: &ArrayRef,
    mut offsets: impl Iterator<Item = usize>,
) -> Result<(), String> {
    let first = offsets.next().unwrap_or(0);
    let mut end = first;
    // SAFETY: the vector stores a position for each list. The rows of its child exist after they
    // have been reserved, and only then the child is requested, because reserving moves its data.
    unsafe {
        let entries = duckdb_vector_get_data(vector).cast::<duckdb_list_entry>();
        for (row, next) in offsets.enumerate() {
            let (offset, length) = ((end - first) as u64, (next - end) as u64);
            entries.add(row).write(duckdb_list_entry { offset, length });
            end = next;
        }
        let len = end - first;
        let reserved = duckdb_list_vector_reserve(vector, len as idx_t);
        if reserved != libduckdb_sys::DuckDBSuccess
            || duckdb_list_vector_set_size(vector, len as idx_t) != libduckdb_sys::DuckDBSuccess
        {
            return Err(format!("DuckDB has no memory for {len} elements of lists"));
        }
        write(duckdb_list_vector_get_child(vector), &values.slice(first, len))
    }
}
