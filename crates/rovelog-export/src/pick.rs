//! Rows of several arrays or batches as one, in another order. `arrow-select` has the same for more
//! cases; it takes a tenth of the time of a first build.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, SchemaRef};

/// Consecutive rows of an array, by its number; or a number of nulls.
enum Run {
    Rows(usize, Range<usize>),
    Nulls(usize),
}

/// Rows of several arrays: `(array, row)`, or `None` for null.
pub(crate) struct Picks {
    runs: Vec<Run>,
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
    /// All rows of arrays of these lengths, one array after the other.
    fn all(lens: impl Iterator<Item = usize>) -> Self {
        let mut picks = Self { runs: Vec::new(), len: 0 };
        for (array, len) in lens.enumerate() {
            picks.len += len;
            picks.runs.push(Run::Rows(array, 0..len));
        }
        picks
    }

    /// Returns the rows of arrays of one type, of which there is at least one.
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

    /// Returns the rows of batches with these columns.
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
        let options = RecordBatchOptions::new().with_row_count(Some(self.len));
        RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
    }
}

/// Returns arrays of one type, of which there is at least one, as one.
pub(crate) fn concat(arrays: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    match arrays {
        [one] => Ok(Arc::clone(one)),
        several => {
            let picks = Picks::all(several.iter().map(Array::len));
            picks.of(&several.iter().collect::<Vec<_>>())
        }
    }
}

/// Returns batches as one.
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
