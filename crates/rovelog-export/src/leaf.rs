//! The leaves of a batch: every number and text of a row under its flat name, `pos.x`, `q[0]`, without copies.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema};

/// How elements of arrays are named.
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

/// A step from a column towards a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Child(usize),
    /// The number of elements, and which one.
    Element(usize, usize),
}

/// One leaf of the rows with a schema.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// Its flat name.
    pub(crate) name: String,
    /// The field it lies in, with its metadata.
    pub(crate) field: Arc<Field>,
    /// Its type.
    pub(crate) data_type: DataType,
    column: usize,
    steps: Vec<Step>,
}

/// All leaves of rows with `schema`, in the order of the fields. A list without a fixed length is one leaf.
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

/// Where the values of a leaf lie in one batch: that of row `r` at `r * stride + offset`.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) array: ArrayRef,
    stride: usize,
    offset: usize,
    /// What may be null, the leaf itself and what contains it: its nulls, stride and offset.
    masks: Vec<(NullBuffer, usize, usize)>,
}

impl Leaf {
    /// The same leaf where its column stands at another place.
    pub(crate) fn in_column(mut self, column: usize) -> Self {
        self.column = column;
        self
    }

    /// Finds the leaf in `batch`, which has the schema that the leaf was made of.
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
    /// Where the value of a row lies in the array; `None` where there is none.
    #[inline]
    pub(crate) fn at(&self, row: usize) -> Option<usize> {
        let there = self.masks.iter().all(|(nulls, stride, offset)| nulls.is_valid(row * stride + offset));
        there.then_some(row * self.stride + self.offset)
    }
}

/// Returns `name`, with a `_` behind it for each column that has it already.
pub fn free_name(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.push('_');
    }
    name
}
