//! Conversion of records to Arrow columns. The columns are derived from the
//! [`Layout`](crate::internal::layout::Layout) of the records.
//!
//! - [`FixedBuilder`] is for layouts whose records all have the same size. Each value is at the
//!   same offset in every record, so each column is filled by a loop of copies.
//! - [`VariableBuilder`] is for all other layouts. It decodes one record after the other, and
//!   appends each value to its column.
//!
//! Both builders create the same schema for the same layout. For example, a layout with the fields
//! `float x` and `uint8 flags[2]` has records of 6 bytes. The schema has the columns `x` and
//! `flags`. The values of `flags` are lists of 2 elements. For 100 records, [`FixedBuilder`] copies
//! 4 bytes at offset 0 of each record to `x`, then 2 bytes at offset 4 of each record to `flags`.

// The bytes of values are copied to Arrow buffers without conversion. Logs are little-endian, and
// Arrow uses the byte order of the machine.
#[cfg(target_endian = "big")]
compile_error!("the feature `arrow` needs a little-endian machine; records can be read without it");

mod copy;
mod fixed;
mod variable;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};

pub use fixed::{FixedBuilder, Plan, Times};
pub use variable::VariableBuilder;

use crate::{Scalar, TopicId};

/// Name of the time column. It contains integer nanoseconds on the log's clock.
pub const TIME_COLUMN: &str = "t_ns";

/// Returns the Arrow type for a scalar type of a schema.
pub fn arrow_type(scalar: Scalar) -> DataType {
    match scalar {
        Scalar::Bool => DataType::Boolean,
        Scalar::Int8 => DataType::Int8,
        Scalar::UInt8 => DataType::UInt8,
        Scalar::Int16 => DataType::Int16,
        Scalar::UInt16 => DataType::UInt16,
        Scalar::Int32 => DataType::Int32,
        Scalar::UInt32 => DataType::UInt32,
        Scalar::Int64 => DataType::Int64,
        Scalar::UInt64 => DataType::UInt64,
        Scalar::Float32 => DataType::Float32,
        Scalar::Float64 => DataType::Float64,
    }
}

/// Creates a batch of `rows` rows. If a batch has no columns, Arrow cannot infer this number.
///
/// # Errors
/// Returns an error if the columns do not match the schema.
pub fn new_batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
}

/// Converts pairs to the metadata of an Arrow schema or field.
pub fn metadata<'a, V: Into<String>>(
    pairs: impl IntoIterator<Item = (&'a str, V)>,
) -> HashMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// Converts an iterator over (topic, batch) pairs to a record batch reader. All batches must belong
/// to the same topic.
#[derive(Debug)]
pub struct OneTopic<I> {
    /// Schema that all batches have.
    schema: SchemaRef,
    /// Iterator over pairs of a topic and a batch.
    batches: I,
}

impl<I> OneTopic<I> {
    /// Wraps `batches`. All of them must have the schema `schema` and belong to the same topic.
    pub fn new(schema: SchemaRef, batches: I) -> Self {
        Self { schema, batches }
    }
}

impl<I: Iterator<Item = Result<(TopicId, RecordBatch), ArrowError>>> Iterator for OneTopic<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map(|(_, batch)| batch))
    }
}

impl<I: Iterator<Item = Result<(TopicId, RecordBatch), ArrowError>>> RecordBatchReader for OneTopic<I> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Creates the Arrow field for a field of the schema. The metadata of the Arrow field contains the
/// type as spelled in the log, the unit, and the names of values, such as `0=Manual|1=Altitude`.
fn column(field: &crate::Field, data_type: DataType) -> Arc<Field> {
    let mut pairs = metadata([("source_type", field.source_type.as_str())]);
    pairs.extend(field.unit.iter().map(|unit| ("unit".to_owned(), unit.clone())));
    let names = field.names.map(|names| names.iter().map(|(value, name)| format!("{value}={name}")));
    pairs.extend(names.map(|names| ("values".to_owned(), names.collect::<Vec<_>>().join("|"))));
    Arc::new(Field::new(&*field.name, data_type, false).with_metadata(pairs))
}

/// Returns the path of a field inside the struct at `path`, as used in selections.
fn path_of(path: &str, field: &crate::Field) -> String {
    if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) }
}

/// Creates an array from the bytes of little-endian numbers.
pub fn numbers(scalar: Scalar, buffer: Buffer) -> ArrayRef {
    macro_rules! array {
        ($ty:ty) => {
            Arc::new(PrimitiveArray::<$ty>::new(ScalarBuffer::from(buffer), None))
        };
    }
    match scalar {
        Scalar::Int8 => array!(Int8Type),
        // For Booleans, the builders do not call this function, because they store Booleans as
        // bits.
        Scalar::UInt8 | Scalar::Bool => array!(UInt8Type),
        Scalar::Int16 => array!(Int16Type),
        Scalar::UInt16 => array!(UInt16Type),
        Scalar::Int32 => array!(Int32Type),
        Scalar::UInt32 => array!(UInt32Type),
        Scalar::Int64 => array!(Int64Type),
        Scalar::UInt64 => array!(UInt64Type),
        Scalar::Float32 => array!(Float32Type),
        Scalar::Float64 => array!(Float64Type),
    }
}
