//! The leaves of nested columns. A leaf is one number or text of a row, identified by a flat name.
//!
//! For example, a column `pos` of structs with the members `x` and `y` has the leaves `pos.x` and
//! `pos.y`, and a column `q` of 4 numbers has the leaves `q[0]` to `q[3]`. The values of a leaf are
//! not copied, but stay in the arrays of the batch. For example, the values of the leaf `q[2]` are
//! the elements 2, 6, 10, ... of the array that holds the elements of all rows (see [`Bound`]).

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use rovelog::FieldType;

/// Naming scheme for the elements of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// Writes an array element as `q[0]`, as in pyulog and `PlotJuggler`.
    #[default]
    Bracket,
    /// Writes an array element as `q.0`, as in the MCAP libraries.
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

/// A step on the path from a column to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A step from a struct to the member with this index.
    Child(usize),
    /// A step from an array to one of its elements. The first number is the length of the array,
    /// and the second number is the index of the element.
    Element(usize, usize),
}

/// A leaf of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Flat name of the leaf, such as `q[0]`.
    pub(crate) name: String,
    /// Innermost field that contains the leaf. The metadata of this field has the unit.
    pub(crate) field: Arc<Field>,
    /// Data type of the leaf's values.
    pub(crate) data_type: DataType,
    /// Index of the column that contains the leaf.
    column: usize,
    /// Path from the column to the leaf.
    steps: Vec<Step>,
}

/// Returns the number of leaves of records with `schema`. If `flat` is true, each array element
/// counts as a leaf. If `flat` is false, an array counts as one leaf.
pub(crate) fn count(schema: &rovelog::Schema, flat: bool) -> usize {
    fn of(ty: &FieldType, flat: bool) -> usize {
        match ty {
            FieldType::Struct(schema) => count(schema, flat),
            FieldType::Array(element, len) => of(element, flat).saturating_mul(if flat { *len } else { 1 }),
            // A ROS time has two leaves: seconds and nanoseconds.
            FieldType::Time | FieldType::Duration => 2,
            _ => 1,
        }
    }
    schema.fields.iter().map(|field| of(&field.ty, flat)).fold(0, usize::saturating_add)
}

/// Returns all leaves of a schema in field order. A list of variable length is a single leaf.
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

/// Appends the leaves inside `leaf` to `found`. If `leaf` is neither a struct nor an array, it is
/// appended itself.
fn expand(leaf: Leaf, names: Names, found: &mut Vec<Leaf>) {
    let inside = |step: Step, name: String, field: &Arc<Field>, data_type: &DataType| {
        let steps = leaf.steps.iter().copied().chain([step]).collect();
        Leaf { name, field: Arc::clone(field), data_type: data_type.clone(), column: leaf.column, steps }
    };
    match leaf.data_type.clone() {
        DataType::Struct(fields) => {
            for (i, field) in fields.iter().enumerate() {
                let name = format!("{}.{}", leaf.name, field.name());
                expand(inside(Step::Child(i), name, field, field.data_type()), names, found);
            }
        }
        DataType::FixedSizeList(item, len) => {
            let len = usize::try_from(len).unwrap_or(0);
            for i in 0..len {
                let name = names.element(&leaf.name, i);
                expand(inside(Step::Element(len, i), name, &leaf.field, item.data_type()), names, found);
            }
        }
        _ => found.push(leaf),
    }
}

/// Positions of a leaf's values in one batch. The value of row `r` is the element
/// `r * stride + offset` of `array`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// Array that contains the values of this leaf, and possibly those of other leaves.
    pub(crate) array: ArrayRef,
    stride: usize,
    offset: usize,
    /// Validity bitmaps of the leaf and of its parents, each with its own stride and offset. A
    /// value is null if the value itself or any of its parents is null.
    masks: Vec<(NullBuffer, usize, usize)>,
}

impl Leaf {
    /// Returns the same leaf for another schema, in which the column of the leaf has the index
    /// `column`.
    pub(crate) fn in_column(mut self, column: usize) -> Self {
        self.column = column;
        self
    }

    /// Returns whether the values of the leaf are numbers or booleans.
    pub(crate) fn is_number(&self) -> bool {
        self.data_type.is_integer() || self.data_type.is_floating() || self.data_type == DataType::Boolean
    }

    /// Returns the value of the leaf in each row as a float. A row without a value gives NaN.
    pub(crate) fn numbers(&self, batch: &RecordBatch) -> Vec<f64> {
        self.bind(batch).numbers(0..batch.num_rows())
    }

    /// Locates the values of the leaf in a batch. The batch must have the schema from which
    /// [`leaves`] computed the leaf.
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
                    // The array holds the elements of all rows one after the other, `len` elements
                    // for each row.
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
    /// Returns the values of these rows as floats. A row without a value gives NaN.
    pub(crate) fn numbers(&self, rows: Range<usize>) -> Vec<f64> {
        // Only the values of this leaf are converted. An array of a thousand elements has a
        // thousand leaves, and converting the whole array for each of them would take quadratic
        // time.
        if self.masks.is_empty() {
            return picked(&self.array, rows.map(|row| Some(row * self.stride + self.offset)));
        }
        picked(&self.array, rows.map(|row| self.at(row)))
    }

    /// Returns the values of the first `rows` rows as an array, if they are consecutive and none of
    /// them is null.
    pub(crate) fn consecutive(&self, rows: usize) -> Option<ArrayRef> {
        (self.stride == 1 && self.masks.is_empty()).then(|| self.array.slice(self.offset, rows))
    }

    /// Returns the values of the first `rows` rows as an array, if they are numbers of whole bytes
    /// and none of them is null. Copying numbers this way is several times faster than picking
    /// single rows.
    pub(crate) fn strided(&self, rows: usize) -> Option<ArrayRef> {
        let data_type = self.array.data_type();
        let width = data_type.primitive_width().filter(|_| self.masks.is_empty())?;
        let data = self.array.to_data();
        let values = match width {
            1 => self.copied::<u8>(&data, rows),
            2 => self.copied::<u16>(&data, rows),
            4 => self.copied::<u32>(&data, rows),
            8 => self.copied::<u64>(&data, rows),
            _ => return None,
        };
        ArrayData::builder(data_type.clone()).len(rows).add_buffer(values).build().ok().map(make_array)
    }

    /// Copies the values of the first `rows` rows. `T` has as many bytes as a value.
    fn copied<T: ArrowNativeType>(&self, data: &ArrayData, rows: usize) -> Buffer {
        let values = data.buffer::<T>(0).iter().skip(self.offset).step_by(self.stride);
        Buffer::from_vec(values.take(rows).copied().collect())
    }

    /// Returns the index in the array at which the value of a row is stored, or `None` if the value
    /// is null.
    #[inline]
    pub(crate) fn at(&self, row: usize) -> Option<usize> {
        let there = self.masks.iter().all(|(nulls, stride, offset)| nulls.is_valid(row * stride + offset));
        there.then_some(row * self.stride + self.offset)
    }
}

/// Returns a name that is not in `taken`, and adds it to `taken`. The result is `name`, followed by
/// as many `_` as are needed to make it unique.
pub fn free_name(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}

/// Returns the values of an array as floats. Values that are neither numeric nor boolean become
/// NaN.
pub(crate) fn numbers(array: &ArrayRef) -> Cow<'_, [f64]> {
    match array.data_type() {
        DataType::Float64 => Cow::Borrowed(array.as_primitive::<Float64Type>().values()),
        _ => picked(array, (0..array.len()).map(Some)).into(),
    }
}

/// Returns the values of an array at the indices `places` as floats. The result is NaN for the
/// index `None`, and for values that are neither numeric nor boolean.
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
