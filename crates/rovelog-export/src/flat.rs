//! Batches in which each column has one number or text per row, for programs without nested types.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{DurationNanosecondType, Int64Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use rovelog::core::internal::columns::new_batch;

use crate::leaf::{Leaf, Names, free_name, leaves};
use crate::pick::Picks;

/// Maximum number of columns that one field becomes. Programs that show each column by its name
/// cannot handle more.
const MAX_LEAVES: usize = 1000;

/// Conversion of batches of a topic to flat columns.
///
/// A struct `pos` becomes the columns `pos.x` and `pos.y`, and an array `q` becomes the columns
/// `q[0]` to `q[3]`. Times and durations become integers in nanoseconds.
#[derive(Debug)]
pub struct FlatColumns {
    schema: SchemaRef,
    leaves: Vec<Leaf>,
    /// Names of fields that have no flat columns.
    omitted: Vec<String>,
}

impl FlatColumns {
    /// Prepares the conversion of batches with the schema `read`.
    pub fn new(read: &Schema) -> Self {
        let (mut fields, mut kept, mut omitted) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken = BTreeSet::new();
        for (i, field) in read.fields().iter().enumerate() {
            let inside = leaves(&Schema::new(vec![Arc::clone(field)]), Names::Bracket);
            if inside.len() > MAX_LEAVES {
                omitted.push(field.name().clone());
                continue;
            }
            for leaf in inside {
                let Some(data_type) = flat_type(&leaf) else {
                    omitted.push(leaf.name);
                    continue;
                };
                fields.push(Field::new(free_name(&mut taken, &leaf.name), data_type, true));
                kept.push(leaf.in_column(i));
            }
        }
        Self { schema: Arc::new(Schema::new(fields)), leaves: kept, omitted }
    }

    /// Returns the schema of the converted batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the names of the fields that have no flat columns: raw bytes, lists of variable
    /// length, and fields with more than 1000 values per row.
    pub fn omitted(&self) -> &[String] {
        &self.omitted
    }

    /// Converts a batch.
    ///
    /// # Errors
    /// Returns an error if the batch does not have the schema that was passed to [`Self::new`].
    pub fn convert(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let value = |leaf: &Leaf| -> Result<ArrayRef, ArrowError> {
            let bound = leaf.bind(batch);
            if let Some(array) = bound.consecutive(rows).or_else(|| bound.strided(rows)) {
                return Ok(integers(array));
            }
            let picks: Picks = (0..rows).map(|row| bound.at(row).map(|at| (0, at))).collect();
            Ok(integers(picks.of(&[&bound.array])?))
        };
        let columns = self.leaves.iter().map(value).collect::<Result<_, _>>()?;
        new_batch(Arc::clone(&self.schema), columns, rows)
    }
}

/// Returns the type of the column for a leaf, or `None` if it has no single number or text per row.
fn flat_type(leaf: &Leaf) -> Option<DataType> {
    match &leaf.data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Duration(TimeUnit::Nanosecond) => {
            Some(DataType::Int64)
        }
        DataType::Utf8 => Some(DataType::Utf8),
        data_type if leaf.is_number() => Some(data_type.clone()),
        _ => None,
    }
}

/// Converts times and durations to integers. Other values stay the same.
pub(crate) fn integers(array: ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Timestamp(..) => {
            Arc::new(array.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>())
        }
        DataType::Duration(_) => {
            Arc::new(array.as_primitive::<DurationNanosecondType>().reinterpret_cast::<Int64Type>())
        }
        _ => array,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{
        FixedSizeListArray, Int64Array, ListArray, StringArray, StructArray, TimestampNanosecondArray,
    };

    use super::*;

    #[test]
    fn nested_columns_become_columns_of_numbers_and_texts() {
        let q = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
            [Some([Some(1), Some(2)]), None, Some([Some(5), None])],
            2,
        );
        let stamp: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![7, 8, 9]));
        let name: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
        let header = StructArray::from(vec![
            (Arc::new(Field::new("stamp", stamp.data_type().clone(), false)), stamp),
            (Arc::new(Field::new("name", DataType::Utf8, false)), name),
        ]);
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)]), None, None]);
        let columns: [(&str, ArrayRef); 4] = [
            ("t_ns", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("q", Arc::new(q)),
            ("header", Arc::new(header)),
            ("list", Arc::new(list)),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("the columns have one length");
        let flat = FlatColumns::new(&batch.schema());
        let names: Vec<_> = flat.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["t_ns", "q[0]", "q[1]", "header.stamp", "header.name"]);
        assert_eq!(flat.omitted(), ["list"]);
        let converted = flat.convert(&batch).expect("the batch has the schema");
        let integers = |i: usize| converted.column(i).as_primitive::<Int32Type>().iter().collect::<Vec<_>>();
        assert_eq!(integers(1), [Some(1), None, Some(5)]);
        assert_eq!(integers(2), [Some(2), None, None]);
        assert_eq!(converted.column(3).as_primitive::<Int64Type>().values(), &[7, 8, 9]);
        assert_eq!(converted.column(4).as_string::<i32>().value(2), "c");
    }

    #[test]
    fn elements_of_arrays_without_nulls_are_copied() {
        // The rows 1 and 2 of a batch with three rows: {3, 4} and {5, 6}.
        let q = (0..3).map(|row| Some([Some(2 * row + 1), Some(2 * row + 2)]));
        let q: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(q, 2));
        let batch = RecordBatch::try_from_iter([("q", q)]).expect("one column").slice(1, 2);
        let converted = FlatColumns::new(&batch.schema()).convert(&batch).expect("the batch has the schema");
        let values = |i: usize| converted.column(i).as_primitive::<Int32Type>().values().to_vec();
        assert_eq!((values(0), values(1)), (vec![3, 5], vec![4, 6]));
    }
}
