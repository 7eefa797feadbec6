//! The columns of message types that the user declared.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array, ListArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field;
use rovelog_core::{FieldType, Scalar, Value};

use super::table::Table;
use crate::declared::Declared;
use crate::message::Message;

/// One column for each field. A field that is named like a column of every topic has `_` behind its name.
pub(super) fn fill(table: &mut Table, declared: &Declared, messages: &[Message<'_>]) {
    // A message that ends before its content does is of no topic.
    let rows: Vec<Value> = messages.iter().filter_map(|message| declared.value(message.data)).collect();
    for field in &declared.schema().fields {
        let taken = table.fields.iter().any(|other| *other.name() == *field.name);
        let name = format!("{}{}", field.name, if taken { "_" } else { "" });
        let cells = || rows.iter().map(|row| row.get(&field.name).unwrap_or(&Value::Null));
        table.column(&name, field.unit.as_deref().unwrap_or_default(), || column(&field.ty, cells()));
    }
}

fn elements(cell: &Value) -> &[Value] {
    match cell {
        Value::List(elements) => elements,
        _ => &[],
    }
}

fn column<'a>(ty: &FieldType, cells: impl Iterator<Item = &'a Value> + Clone) -> ArrayRef {
    let (FieldType::Array(element, _) | FieldType::List(element)) = ty else { return flat(ty, cells) };
    let values = flat(element, cells.clone().flat_map(elements));
    let offsets = OffsetBuffer::from_lengths(cells.map(|cell| elements(cell).len()));
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(ListArray::new(item, offsets, values, None))
}

/// Values of a type without elements. Integers are as wide as the declaration says.
fn flat<'a>(ty: &FieldType, cells: impl Iterator<Item = &'a Value>) -> ArrayRef {
    macro_rules! numbers {
        ($array:ident, $variant:pat => $number:expr) => {
            Arc::new($array::from_iter_values(cells.map(|cell| match *cell {
                $variant => $number,
                _ => Default::default(),
            })))
        };
    }
    match ty {
        FieldType::Scalar(Scalar::Bool) => {
            Arc::new(cells.map(|cell| Some(*cell == Value::Bool(true))).collect::<BooleanArray>())
        }
        FieldType::Scalar(Scalar::Float32) => numbers!(Float32Array, Value::F32(n) => n),
        FieldType::Scalar(Scalar::Float64) => numbers!(Float64Array, Value::F64(n) => n),
        FieldType::Scalar(Scalar::UInt8) => {
            numbers!(UInt8Array, Value::UInt(n, _) => u8::try_from(n).unwrap_or(u8::MAX))
        }
        FieldType::Scalar(Scalar::UInt16) => {
            numbers!(UInt16Array, Value::UInt(n, _) => u16::try_from(n).unwrap_or(u16::MAX))
        }
        FieldType::Scalar(Scalar::UInt32) => {
            numbers!(UInt32Array, Value::UInt(n, _) => u32::try_from(n).unwrap_or(u32::MAX))
        }
        FieldType::Scalar(Scalar::Int32) => {
            numbers!(Int32Array, Value::Int(n, _) => i32::try_from(n).unwrap_or(i32::MAX))
        }
        // Section 2 has no other number.
        FieldType::Scalar(_) => numbers!(Int64Array, Value::Int(n, _) => n),
        FieldType::Bytes => {
            let mut builder = BinaryBuilder::new();
            cells.for_each(|cell| match cell {
                Value::Bytes(bytes) => builder.append_value(bytes),
                _ => builder.append_value([]),
            });
            Arc::new(builder.finish())
        }
        _ => {
            let mut builder = StringBuilder::new();
            cells.for_each(|cell| match cell {
                Value::Text(text) => builder.append_value(text),
                _ => builder.append_value(""),
            });
            Arc::new(builder.finish())
        }
    }
}
