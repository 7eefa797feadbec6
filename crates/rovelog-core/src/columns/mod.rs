//! Records as Arrow columns, by their [`Layout`](crate::layout::Layout).
//!
//! [`FixedBuilder`] is for records of one size: they are copied column by column.
//! [`VariableBuilder`] is for records of any size, which come one by one. Both give the same schema
//! for the same layout.

// The bytes of a log become those of a column; Arrow has them in the order of the machine.
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
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};

pub use fixed::{FixedBuilder, Plan, Times};
pub use variable::VariableBuilder;

use crate::{Scalar, TopicId};

/// The name of the column of times: nanoseconds of the log's clock, exact.
pub const TIME_COLUMN: &str = "t_ns";

/// Returns the Arrow type of a scalar.
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

/// Returns pairs as the metadata of a schema or a field.
pub fn metadata<'a, V: Into<String>>(
    pairs: impl IntoIterator<Item = (&'a str, V)>,
) -> HashMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

/// Record batches of one topic, out of batches that are all of it.
#[derive(Debug)]
pub struct OneTopic<I> {
    schema: SchemaRef,
    batches: I,
}

impl<I> OneTopic<I> {
    /// Wraps the `batches` of one topic, whose schema is `schema`.
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

/// Returns a field as a column: how the log spells its type, its unit and the names of its values
/// (`0=Manual|1=Altitude`) are kept as metadata.
fn column(field: &crate::Field, data_type: DataType) -> Arc<Field> {
    let mut pairs = metadata([("source_type", field.source_type.as_str())]);
    pairs.extend(field.unit.iter().map(|unit| ("unit".to_owned(), unit.clone())));
    let names = field.names.map(|names| names.iter().map(|(value, name)| format!("{value}={name}")));
    pairs.extend(names.map(|names| ("values".to_owned(), names.collect::<Vec<_>>().join("|"))));
    Arc::new(Field::new(&*field.name, data_type, false).with_metadata(pairs))
}

/// Returns the path of a field under `path`, by which it is selected.
fn path_of(path: &str, field: &crate::Field) -> String {
    if path.is_empty() { field.name.to_string() } else { format!("{path}.{}", field.name) }
}

/// Returns the array of the little-endian numbers in `buffer`.
pub fn numbers(scalar: Scalar, buffer: Buffer) -> ArrayRef {
    macro_rules! array {
        ($ty:ty) => {
            Arc::new(PrimitiveArray::<$ty>::new(ScalarBuffer::from(buffer), None))
        };
    }
    match scalar {
        Scalar::Int8 => array!(Int8Type),
        // Truth values have stores of their own.
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
