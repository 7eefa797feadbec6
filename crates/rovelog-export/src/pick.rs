//! Copies rows from several arrays or batches to a new array or batch, in any order.
//!
//! The crate `arrow-select` offers more general functions, but compiling it takes a tenth of the
//! time of a first build. Rovelog therefore uses `arrow-select` only with the feature `parquet`.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, SchemaRef};
use rovelog::core::internal::columns::new_batch;

/// Consecutive rows of the result.
enum Run {
    /// Consecutive rows of one input array. The number is the index of the array.
    Rows(usize, Range<usize>),
    /// Consecutive rows that are null. The number is the count of these rows.
    Nulls(usize),
}

/// Selected rows of several arrays. Built from an iterator whose items are `(array index, row)`, or
/// `None` for a null. Consecutive rows of an array are merged into a run, because copying a whole
/// run is fast.
pub(crate) struct Picks {
    runs: Vec<Run>,
    /// Number of selected rows.
    len: usize,
}

impl FromIterator<Option<(usize, usize)>> for Picks {
    fn from_iter<I: IntoIterator<Item = Option<(usize, usize)>>>(rows: I) -> Self {
        let mut picks = Self { runs: Vec::new(), len: 0 };
        for row in rows {
            picks.len += 1;
            match (picks.runs.last_mut(), row) {
                (Some(Run::Nulls(len)), None) => *len += 1,
                (Some(Run::Rows(array, rows)), Some((next, row))) if *array == next && rows.end == row => {
                    rows.end += 1;
                }
                (_, None) => picks.runs.push(Run::Nulls(1)),
                (_, Some((array, row))) => picks.runs.push(Run::Rows(array, row..row + 1)),
            }
        }
        picks
    }
}

impl Picks {
    /// Selects all rows of all arrays, one array after the other. `lens` has the length of each
    /// array.
    fn all(lens: impl Iterator<Item = usize>) -> Self {
        let mut picks = Self { runs: Vec::new(), len: 0 };
        for (array, len) in lens.enumerate() {
            picks.len += len;
            picks.runs.push(Run::Rows(array, 0..len));
        }
        picks
    }

    /// Returns the selected rows of `arrays`, which must have the same type. At least one array is
    /// required.
    pub(crate) fn of(&self, arrays: &[&ArrayRef]) -> Result<ArrayRef, ArrowError> {
        let data: Vec<_> = arrays.iter().map(Array::to_data).collect();
        let has_nulls = self.runs.iter().any(|run| matches!(run, Run::Nulls(_)));
        let mut made = MutableArrayData::new(data.iter().collect(), has_nulls, self.len);
        for run in &self.runs {
            match run {
                Run::Rows(array, rows) => made.try_extend(*array, rows.start, rows.end)?,
                Run::Nulls(len) => made.try_extend_nulls(*len)?,
            }
        }
        Ok(make_array(made.freeze()))
    }

    /// Returns the selected rows of `batches`, which must have the schema `schema`.
    pub(crate) fn of_batches(
        &self,
        schema: &SchemaRef,
        batches: &[&RecordBatch],
    ) -> Result<RecordBatch, ArrowError> {
        if batches.is_empty() {
            return Ok(RecordBatch::new_empty(Arc::clone(schema)));
        }
        let columns = (0..schema.fields().len())
            .map(|i| self.of(&batches.iter().map(|batch| batch.column(i)).collect::<Vec<_>>()))
            .collect::<Result<_, _>>()?;
        new_batch(Arc::clone(schema), columns, self.len)
    }
}

/// Concatenates arrays of the same type. At least one array is required.
pub(crate) fn concat(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    match arrays {
        [one] => Ok(Arc::clone(one)),
        several => {
            let picks = Picks::all(several.iter().map(Array::len));
            picks.of(&several.iter().collect::<Vec<_>>())
        }
    }
}

/// Concatenates batches that have the schema `schema`.
pub(crate) fn concat_batches(
    schema: &SchemaRef,
    batches: &[&RecordBatch],
) -> Result<RecordBatch, ArrowError> {
    Picks::all(batches.iter().map(|batch| batch.num_rows())).of_batches(schema, batches)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_and_nulls_are_picked_from_several_arrays() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let b: ArrayRef = Arc::new(Int64Array::from(vec![4, 5]));
        let picks = [Some((1, 1)), Some((0, 0)), Some((0, 1)), None, None, Some((0, 2))];
        let rows = picks.into_iter().collect::<Picks>().of(&[&a, &b]).unwrap();
        let expected = Int64Array::from(vec![Some(5), Some(1), None, None, None, Some(3)]);
        assert_eq!(*rows, expected);
        assert_eq!(concat(&[a, b]).unwrap().len(), 5);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "", "yz"]));
        let turned: Picks = [2, 1, 0].map(|row| Some((0, row))).into_iter().collect();
        assert_eq!(*turned.of(&[&texts]).unwrap(), StringArray::from(vec!["yz", "", "x"]));
    }
}
