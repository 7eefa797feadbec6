//! Combines the columns of many logs into one schema. Each column gets a type that can represent its
//! values in all logs.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, Int8Array, ListArray, RecordBatch, StructArray, new_null_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use rovelog::core::internal::columns::new_batch;

use crate::ScaleError;

/// Returns `true` if two names are the same for a query engine, which ignores the case of names.
pub(crate) fn same_name(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b) || (!a.is_ascii() && a.to_lowercase() == b.to_lowercase())
}

/// Finds the column of `others` that corresponds to the column `name` of `own`. The same name wins.
/// Otherwise, the case is ignored, but only if `own` has no column with the exact other name.
///
/// Logs of different firmware have fields such as `voltage5V_v` and `voltage5v_v`, which are the
/// same column. If a log has both, they are different columns.
fn counterpart(name: &str, own: &[FieldRef], others: &[FieldRef]) -> Option<usize> {
    let has = |fields: &[FieldRef], name: &str| fields.iter().position(|field| field.name() == name);
    has(others, name).or_else(|| {
        others.iter().position(|other| same_name(other.name(), name) && has(own, other.name()).is_none())
    })
}

/// Returns a schema with the columns of both schemas. A column that both schemas have gets a type
/// that can represent the values of both.
///
/// - Two signed or two unsigned integers, or two floats, get the wider type.
/// - A signed and an unsigned integer get a signed type. `UInt64` has none, so this is an error.
/// - An integer and a float get a float. If the integer has 64 bits, `Float64` rounds it above 2^53.
/// - A Boolean counts as `Int8`.
/// - Arrays of different types become lists. Structs get the fields of both.
///
/// # Errors
/// Returns an error with the name of a column if no type can represent the values of both, for
/// example text and numbers.
pub(crate) fn union(a: &Schema, b: &Schema) -> Result<Schema, String> {
    Ok(Schema::new(fields(a.fields(), b.fields(), "")?))
}

/// Combines two lists of fields. `within` is the path of the struct that contains the fields.
fn fields(a: &[FieldRef], b: &[FieldRef], within: &str) -> Result<Vec<FieldRef>, String> {
    let mut all: Vec<FieldRef> = a.to_vec();
    for field in b {
        let known = counterpart(field.name(), b, &all).and_then(|index| all.get_mut(index));
        match known {
            None => all.push(Arc::clone(field)),
            Some(known) if known.data_type() == field.data_type() => {}
            Some(known) => {
                let path = format!("{within}{}", field.name());
                let both = wider(known.data_type(), field.data_type(), &path)?;
                *known = Arc::new(Field::new(known.name(), both, true));
            }
        }
    }
    Ok(all)
}

/// Returns the narrowest type that can represent the values of both types. `path` is the name of
/// the column, for use in the error message.
pub(crate) fn wider(a: &DataType, b: &DataType, path: &str) -> Result<DataType, String> {
    use DataType::{
        Boolean, FixedSizeList, Float32, Float64, Int8, Int16, Int32, Int64, List, Struct, UInt8, UInt16,
        UInt32, UInt64,
    };
    let order = |data_type: &DataType| {
        [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64].iter().position(|known| known == data_type)
    };
    Ok(match (a, b) {
        _ if a == b => a.clone(),
        // Arrays of different lengths become lists.
        (List(a) | FixedSizeList(a, _), List(b) | FixedSizeList(b, _)) => {
            let element = wider(a.data_type(), b.data_type(), &format!("{path}[]"))?;
            List(Arc::new(Field::new("element", element, true)))
        }
        (Struct(a), Struct(b)) => Struct(fields(a, b, &format!("{path}."))?.into()),
        // A `Float32` represents all integers up to 2^24 exactly, so it also represents all 16-bit
        // integers.
        (Int8 | Int16, Float32) | (Float32, Int8 | Int16) => Float32,
        // A Boolean is converted to the number 0 or 1.
        (Boolean, number @ (Int8 | Int16 | Int32 | Int64 | Float32 | Float64))
        | (number @ (Int8 | Int16 | Int32 | Int64 | Float32 | Float64), Boolean) => number.clone(),
        // Integers above 2^53 are rounded, because no type can represent both floats and all 64-bit
        // integers.
        (Int8 | Int16 | Int32 | Int64 | Float32, Float64)
        | (Float64, Int8 | Int16 | Int32 | Int64 | Float32)
        | (Int32 | Int64, Float32)
        | (Float32, Int32 | Int64)
        | (UInt64, Float32 | Float64)
        | (Float32 | Float64, UInt64) => Float64,
        _ => match (order(a), order(b)) {
            // Both types are signed, or both are unsigned.
            (Some(first), Some(second)) if (first < 4) == (second < 4) => {
                if first > second {
                    a.clone()
                } else {
                    b.clone()
                }
            }
            // An unsigned integer is treated like the next wider signed integer. For 64 bits, there
            // is no wider type.
            _ if signed(a).is_some() || signed(b).is_some() => {
                return wider(&signed(a).unwrap_or(a.clone()), &signed(b).unwrap_or(b.clone()), path);
            }
            _ => return Err(format!("column {path} has type {a} in one log and type {b} in another")),
        },
    })
}

/// Returns the signed integer type that represents all values of an unsigned integer type. Returns
/// `None` if there is no such type.
fn signed(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        _ => return None,
    })
}

/// Converts a batch to `schema`, which must contain all columns of the batch. Columns of the schema
/// that the batch does not have become null.
///
/// # Errors
/// Returns an error if the schema lacks a column of the batch, or has this column with a narrower
/// type.
pub(crate) fn fit(batch: &RecordBatch, schema: &SchemaRef, uri: &str) -> Result<RecordBatch, ScaleError> {
    if batch.schema_ref().fields() == schema.fields() {
        return Ok(new_batch(Arc::clone(schema), batch.columns().to_vec(), batch.num_rows())?);
    }
    let own = batch.schema();
    let lacks = |field: &&FieldRef| counterpart(field.name(), own.fields(), schema.fields()).is_none();
    let unknown = own.fields().iter().find(lacks);
    if let Some(field) = unknown {
        return Err(ScaleError::Columns(format!(
            "{uri}: column {} is not in the schema; create the schema from all logs, or select fields",
            field.name()
        )));
    }
    let column = |field: &FieldRef| match counterpart(field.name(), schema.fields(), own.fields()) {
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        Some(index) => widened(batch.column(index), field.data_type()).ok_or_else(|| {
            let (name, have, want) = (field.name(), batch.column(index).data_type(), field.data_type());
            ScaleError::Columns(format!(
                "{uri}: column {name} has type {have}, but the schema has type {want}"
            ))
        }),
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Ok(new_batch(Arc::clone(schema), columns, batch.num_rows())?)
}

/// Converts values to the wider type `to`, for example 16-bit integers to 32-bit integers. Returns
/// `None` if `to` cannot represent the values, that is, if [`wider`] never returns `to` for the
/// type of `array`.
fn widened(array: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    use DataType::{
        Boolean, FixedSizeList, Float32, Float64, Int8, Int16, Int32, Int64, List, Struct, UInt8, UInt16,
        UInt32, UInt64,
    };
    macro_rules! cast {
        ($from:ty => $to:ty as $rust:ty) => {
            Arc::new(array.as_primitive::<$from>().unary::<_, $to>(<$rust>::from)) as ArrayRef
        };
    }
    Some(match (array.data_type(), to) {
        (from, to) if from == to => Arc::clone(array),
        (Boolean, Int8) => {
            let values = array.as_boolean().iter().map(|value| value.map(i8::from));
            Arc::new(values.collect::<Int8Array>())
        }
        (Boolean, Int16 | Int32 | Int64 | Float32 | Float64) => widened(&widened(array, &Int8)?, to)?,
        (Int32, Float64) => cast!(Int32Type => Float64Type as f64),
        (Int16, Float32) => cast!(Int16Type => Float32Type as f32),
        (Int64, Float64) => {
            #[expect(clippy::cast_precision_loss, reason = "the rule rounds integers above 2^53")]
            let values = array.as_primitive::<Int64Type>().unary::<_, Float64Type>(|value| value as f64);
            Arc::new(values)
        }
        (UInt64, Float64) => {
            #[expect(clippy::cast_precision_loss, reason = "the rule rounds integers above 2^53")]
            let values = array.as_primitive::<UInt64Type>().unary::<_, Float64Type>(|value| value as f64);
            Arc::new(values)
        }
        // Other integers are widened to the next wider type first. Each step keeps the values.
        (UInt8, UInt16 | UInt32 | UInt64) => widened(&cast!(UInt8Type => UInt16Type as u16), to)?,
        (UInt16, UInt32 | UInt64) => widened(&cast!(UInt16Type => UInt32Type as u32), to)?,
        (UInt32, UInt64) => cast!(UInt32Type => UInt64Type as u64),
        (UInt8, _) => widened(&cast!(UInt8Type => Int16Type as i16), to)?,
        (UInt16, _) => widened(&cast!(UInt16Type => Int32Type as i32), to)?,
        (UInt32, _) => widened(&cast!(UInt32Type => Int64Type as i64), to)?,
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64) => {
            widened(&cast!(Int8Type => Int16Type as i16), to)?
        }
        (Int16, Int32 | Int64 | Float64) => widened(&cast!(Int16Type => Int32Type as i32), to)?,
        (Int32, Int64) => cast!(Int32Type => Int64Type as i64),
        (FixedSizeList(element, size), List(_)) => {
            let list = array.as_fixed_size_list();
            let offsets = OffsetBuffer::from_lengths(vec![usize::try_from(*size).ok()?; list.len()]);
            let (values, nulls) = (Arc::clone(list.values()), list.nulls().cloned());
            let list = ListArray::try_new(Arc::clone(element), offsets, values, nulls).ok()?;
            widened(&(Arc::new(list) as ArrayRef), to)?
        }
        (Float32, Float64) => cast!(Float32Type => Float64Type as f64),
        (List(_), List(element)) => {
            let list = array.as_list::<i32>();
            let values = widened(list.values(), element.data_type())?;
            let nulls = list.nulls().cloned();
            Arc::new(ListArray::try_new(Arc::clone(element), list.offsets().clone(), values, nulls).ok()?)
        }
        (Struct(_), Struct(fields)) => {
            let values = array.as_struct();
            let column = |field: &FieldRef| match counterpart(field.name(), fields, values.fields()) {
                None => Some(new_null_array(field.data_type(), array.len())),
                Some(index) => widened(values.column(index), field.data_type()),
            };
            let columns = fields.iter().map(column).collect::<Option<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, values.nulls().cloned()).ok()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeListArray, Float32Array, Int16Array, Int64Array};

    use super::*;

    fn schema(fields: &[(&str, DataType)]) -> Schema {
        Schema::new(fields.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect::<Vec<_>>())
    }

    #[test]
    fn types_become_wider_and_columns_are_added() {
        let a = schema(&[("x", DataType::Int16), ("y", DataType::Float32)]);
        let b = schema(&[("x", DataType::Float32), ("z", DataType::Utf8)]);
        let both = union(&a, &b).unwrap();
        assert_eq!(
            both,
            schema(&[("x", DataType::Float32), ("y", DataType::Float32), ("z", DataType::Utf8)])
        );
        let batch = RecordBatch::try_new(
            Arc::new(a.clone()),
            vec![Arc::new(Int16Array::from(vec![7])), Arc::new(Float32Array::from(vec![0.5]))],
        )
        .unwrap();
        let fitted = fit(&batch, &Arc::new(both), "a.ulg").unwrap();
        assert_eq!(fitted.column(0).as_primitive::<Float32Type>().value(0).to_bits(), 7_f32.to_bits());
        assert_eq!(fitted.column(2).null_count(), 1);
        let narrow = fit(&batch, &Arc::new(schema(&[("x", DataType::Int16)])), "a.ulg");
        assert!(narrow.unwrap_err().to_string().contains("column y is not in the schema"));
    }

    #[test]
    fn names_that_differ_in_case_are_one_column() {
        let (a, b) =
            (schema(&[("voltage5V_v", DataType::Int16)]), schema(&[("voltage5v_v", DataType::Int32)]));
        let both = union(&a, &b).unwrap();
        assert_eq!(both, schema(&[("voltage5V_v", DataType::Int32)]));
        let batch = RecordBatch::try_new(Arc::new(a), vec![Arc::new(Int16Array::from(vec![7]))]).unwrap();
        let fitted = fit(&batch, &Arc::new(both), "a.ulg").unwrap();
        assert_eq!(fitted.column(0).as_primitive::<Int32Type>().value(0), 7);
    }

    #[test]
    fn names_of_one_log_that_differ_in_case_are_two_columns() {
        let one = schema(&[("x", DataType::Int16)]);
        let two = schema(&[("X", DataType::Int16), ("x", DataType::Int16)]);
        for both in [union(&one, &two).unwrap(), union(&two, &one).unwrap()] {
            let both = Arc::new(both);
            let batch = |schema: &Schema, values: &[i16]| {
                let columns = values.iter().map(|value| Arc::new(Int16Array::from(vec![*value])) as ArrayRef);
                let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns.collect()).unwrap();
                let fitted = fit(&batch, &both, "a.ulg").unwrap();
                let value = |name: &str| fitted[name].as_primitive::<Int16Type>().iter().next().flatten();
                [value("X"), value("x")]
            };
            assert_eq!(batch(&one, &[7]), [None, Some(7)]);
            assert_eq!(batch(&two, &[8, 9]), [Some(8), Some(9)]);
        }
    }

    #[test]
    fn errors_name_the_column_that_no_type_can_represent() {
        let a = schema(&[("x", DataType::Int64)]);
        let clash = union(&a, &schema(&[("x", DataType::Utf8)])).unwrap_err();
        assert_eq!(clash, "column x has type Int64 in one log and type Utf8 in another");
        let batch = RecordBatch::try_new(Arc::new(a), vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
        let fitted = fit(&batch, &Arc::new(schema(&[("x", DataType::Utf8)])), "a.ulg");
        assert!(fitted.unwrap_err().to_string().contains("the schema has type Utf8"));
    }

    #[test]
    fn native_types_that_differ_become_types_for_both() {
        use DataType::{FixedSizeList, Float64, Int16, Int64, List, UInt8, UInt16, UInt64};
        let array = |size| FixedSizeList(Arc::new(Field::new("element", UInt8, true)), size);
        let list = List(Arc::new(Field::new("element", UInt8, true)));
        for (a, b, both) in [
            (UInt8, UInt16, UInt16),
            (UInt16, DataType::Int8, DataType::Int32),
            (DataType::Boolean, UInt8, Int16),
            (UInt64, DataType::Float32, Float64),
            (array(2), array(3), list.clone()),
            (array(2), list.clone(), list),
        ] {
            assert_eq!(wider(&a, &b, "x").unwrap(), both);
            for own in [a, b] {
                assert_eq!(widened(&new_null_array(&own, 3), &both).unwrap().data_type(), &both);
            }
        }
        let clash = wider(&UInt64, &Int64, "x").unwrap_err();
        assert_eq!(clash, "column x has type UInt64 in one log and type Int64 in another");
        let array = FixedSizeListArray::from_iter_primitive::<UInt8Type, _, _>(
            [Some(vec![Some(1), Some(255)]), None, Some(vec![Some(3), None])],
            2,
        );
        let list = widened(
            &(Arc::new(array.slice(1, 2)) as ArrayRef),
            &wider(array.data_type(), &List(Arc::new(Field::new("element", Int16, true))), "x").unwrap(),
        )
        .unwrap();
        let list = list.as_list::<i32>();
        assert!(list.is_null(0));
        assert_eq!(list.value(1).as_primitive::<Int16Type>().iter().collect::<Vec<_>>(), [Some(3), None]);
    }

    #[test]
    fn integers_of_64_bits_and_floats_become_doubles() {
        let a = schema(&[("x", DataType::Int64)]);
        for float in [DataType::Float32, DataType::Float64] {
            let both = union(&a, &schema(&[("x", float)])).unwrap();
            assert_eq!(both, schema(&[("x", DataType::Float64)]));
        }
        let batch = RecordBatch::try_new(Arc::new(a), vec![Arc::new(Int64Array::from(vec![-7]))]).unwrap();
        let fitted = fit(&batch, &Arc::new(schema(&[("x", DataType::Float64)])), "a.ulg").unwrap();
        assert_eq!(fitted.column(0).as_primitive::<Float64Type>().value(0).to_bits(), (-7_f64).to_bits());
    }
}
