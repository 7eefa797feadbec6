//! The leaves of a batch: every number and text of a row under its flat name (`pos.x`, `q[0]`),
//! without copies.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};
use rovelog::FieldType;

/// Naming scheme for array elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// `q[0]`, as pyulog and PlotJuggler do.
    #[default]
    Bracket,
    /// `q.0`, as `mcap` does.
    Dot,
}

impl Names {
    fn element(self, path: &str, i: usize) -> String {
        match self {
            Self::Bracket => format!("{path}[{i}]"),
            Self::Dot => format!("{path}.{i}"),
        }
    }
}

/// A step from a column to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Child(usize),
    /// The number of elements, and the index of the selected one.
    Element(usize, usize),
}

/// One leaf of the rows with a schema.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Flat name.
    pub(crate) name: String,
    /// Field that contains the leaf, with its metadata.
    pub(crate) field: Arc<Field>,
    /// Data type of the leaf.
    pub(crate) data_type: DataType,
    column: usize,
    steps: Vec<Step>,
}

/// Returns the number of leaves of records with `schema`. With `flat`, each element of an array of
/// numbers is one; otherwise the array is.
pub(crate) fn count(schema: &rovelog::Schema, flat: bool) -> usize {
    fn of(ty: &FieldType, flat: bool) -> usize {
        match ty {
            FieldType::Struct(schema) => count(schema, flat),
            FieldType::Array(element, len) => of(element, flat).saturating_mul(if flat { *len } else { 1 }),
            FieldType::Time | FieldType::Duration => 2,
            _ => 1,
        }
    }
    schema.fields.iter().map(|field| of(&field.ty, flat)).fold(0, usize::saturating_add)
}

/// Returns all leaves of rows with `schema`, in field order. A list without a fixed length is one
/// leaf.
pub(crate) fn leaves(schema: &Schema, names: Names) -> Vec<Leaf> {
    let mut found = Vec::new();
    for (column, field) in schema.fields().iter().enumerate() {
        let start = Leaf {
            name: field.name().clone(),
            field: Arc::clone(field),
            data_type: field.data_type().clone(),
            column,
            steps: Vec::new(),
        };
        expand(start, names, &mut found);
    }
    found
}

fn expand(leaf: Leaf, names: Names, found: &mut Vec<Leaf>) {
    match leaf.data_type.clone() {
        DataType::Struct(fields) => children(&leaf, &fields, names, found),
        DataType::FixedSizeList(item, len) => {
            let len = usize::try_from(len).unwrap_or(0);
            for i in 0..len {
                let mut steps = leaf.steps.clone();
                steps.push(Step::Element(len, i));
                let element = Leaf {
                    name: names.element(&leaf.name, i),
                    data_type: item.data_type().clone(),
                    steps,
                    ..leaf.clone()
                };
                expand(element, names, found);
            }
        }
        _ => found.push(leaf),
    }
}

fn children(leaf: &Leaf, fields: &Fields, names: Names, found: &mut Vec<Leaf>) {
    for (i, field) in fields.iter().enumerate() {
        let mut steps = leaf.steps.clone();
        steps.push(Step::Child(i));
        let child = Leaf {
            name: format!("{}.{}", leaf.name, field.name()),
            field: Arc::clone(field),
            data_type: field.data_type().clone(),
            column: leaf.column,
            steps,
        };
        expand(child, names, found);
    }
}

/// Position of a leaf's values in one batch: the value of row `r` is at index `r * stride +
/// offset`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) array: ArrayRef,
    stride: usize,
    offset: usize,
    /// Nulls of the leaf and of each of its parents, with the stride and offset of each.
    masks: Vec<(NullBuffer, usize, usize)>,
}

impl Leaf {
    /// Returns the same leaf for a schema in which its column has another index.
    #[cfg(feature = "parquet")]
    pub(crate) fn in_column(mut self, column: usize) -> Self {
        self.column = column;
        self
    }

    /// Returns whether its values are numbers or truth values.
    pub(crate) fn is_number(&self) -> bool {
        self.data_type.is_integer() || self.data_type.is_floating() || self.data_type == DataType::Boolean
    }

    /// Returns its values as floats, one for each row; NaN if a row has none.
    pub(crate) fn numbers(&self, batch: &RecordBatch) -> Vec<f64> {
        let bound = self.bind(batch);
        // Only the values of this leaf are converted: an array of a thousand elements has a thousand
        // leaves.
        picked(&bound.array, (0..batch.num_rows()).map(|row| bound.at(row)))
    }

    /// Finds the leaf in `batch`, which has the schema that the leaf was made from.
    pub(crate) fn bind(&self, batch: &RecordBatch) -> Bound {
        let mut array = Arc::clone(batch.column(self.column));
        let (mut stride, mut offset) = (1, 0);
        let mut masks = Vec::new();
        let mut mask = |array: &ArrayRef, stride, offset| {
            if let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) {
                masks.push((nulls.clone(), stride, offset));
            }
        };
        for step in &self.steps {
            mask(&array, stride, offset);
            array = match *step {
                Step::Child(i) => Arc::clone(array.as_struct().column(i)),
                Step::Element(len, i) => {
                    (stride, offset) = (stride * len, offset * len + i);
                    Arc::clone(array.as_fixed_size_list().values())
                }
            };
        }
        mask(&array, stride, offset);
        Bound { array, stride, offset, masks }
    }
}

impl Bound {
    /// Returns the index of a row's value in the array; `None` if it is null.
    #[inline]
    pub(crate) fn at(&self, row: usize) -> Option<usize> {
        let there = self.masks.iter().all(|(nulls, stride, offset)| nulls.is_valid(row * stride + offset));
        there.then_some(row * self.stride + self.offset)
    }
}

/// Returns `name` with a `_` appended for each column that already has the name.
pub fn free_name(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Returns the numeric and boolean values of a leaf; NaN for others.
pub(crate) fn numbers(array: &ArrayRef) -> Cow<'_, [f64]> {
    match array.data_type() {
        DataType::Float64 => Cow::Borrowed(array.as_primitive::<Float64Type>().values()),
        _ => picked(array, (0..array.len()).map(Some)).into(),
    }
}

/// Returns the numeric and boolean values at these places of an array; NaN for others, and where
/// there is no place.
fn picked(array: &ArrayRef, places: impl Iterator<Item = Option<usize>>) -> Vec<f64> {
    macro_rules! wide {
        ($ty:ty, $value:ident => $wide:expr) => {{
            let values = array.as_primitive::<$ty>().values();
            let wide = |place: usize| {
                let $value = values[place];
                $wide
            };
            places.map(|place| place.map_or(f64::NAN, wide)).collect()
        }};
    }
    match array.data_type() {
        DataType::Float64 => wide!(Float64Type, value => value),
        DataType::Float32 => wide!(Float32Type, value => f64::from(value)),
        DataType::Int8 => wide!(Int8Type, value => f64::from(value)),
        DataType::Int16 => wide!(Int16Type, value => f64::from(value)),
        DataType::Int32 => wide!(Int32Type, value => f64::from(value)),
        DataType::Int64 => wide!(Int64Type, value => value as f64),
        DataType::UInt8 => wide!(UInt8Type, value => f64::from(value)),
        DataType::UInt16 => wide!(UInt16Type, value => f64::from(value)),
        DataType::UInt32 => wide!(UInt32Type, value => f64::from(value)),
        DataType::UInt64 => wide!(UInt64Type, value => value as f64),
        DataType::Boolean => {
            let bits = array.as_boolean().values();
            places
                .map(|place| place.map_or(f64::NAN, |place| f64::from(u8::from(bits.value(place)))))
                .collect()
        }
        _ => places.map(|_| f64::NAN).collect(),
    }
}
