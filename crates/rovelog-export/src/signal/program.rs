//! Evaluates signals over record batches.

use std::collections::HashMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::Schema;

use super::expression::{Memory, Rows};
use super::find::{Operand, Signal};
use super::unit::Unit;
use crate::leaf::{Leaf, Names, leaves};

/// The numeric columns of a schema, by their flat name such as `q[0]`.
///
/// A topic may have tens of thousands of columns, so the map is built once and used for all signals
/// of the topic.
pub(crate) struct Columns(HashMap<String, Leaf>);

impl Columns {
    pub(crate) fn of(schema: &Schema) -> Self {
        let leaves = leaves(schema, Names::Bracket).into_iter().filter(Leaf::is_number);
        Self(leaves.map(|leaf| (leaf.name.clone(), leaf)).collect())
    }
}

/// A signal whose operands have been located in the columns of record batches.
pub(crate) struct Program {
    signal: Signal,
    /// Unit of each operand, if known.
    units: Vec<Option<Unit>>,
    /// Column that contains the values of each operand.
    fields: Vec<Leaf>,
    /// State of the functions whose result depends on earlier rows.
    memory: Vec<Memory>,
}

impl Program {
    /// Locates the operands of a signal in the columns of record batches. `name` returns the column
    /// name of an operand. Returns `None` if `columns` lacks an operand.
    pub(crate) fn new(signal: &Signal, columns: &Columns, name: impl Fn(&Operand) -> String) -> Option<Self> {
        let fields = signal.operands.iter().map(|operand| columns.0.get(&name(operand)).cloned());
        Some(Self {
            fields: fields.collect::<Option<_>>()?,
            units: signal.units(),
            memory: vec![Memory::default(); signal.memory_count],
            signal: signal.clone(),
        })
    }

    /// Returns the column of the signal if the signal is a single field. Returns `None` if it is an
    /// expression.
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        self.signal.field().and(self.fields.first())
    }

    /// Evaluates the signal for the next batch. Returns one value for each row. The value is NaN if
    /// the row has no value.
    pub(crate) fn values(&mut self, batch: &RecordBatch) -> Vec<f64> {
        let mut fields: Vec<Vec<f64>> = self.fields.iter().map(|leaf| leaf.numbers(batch)).collect();
        // Most signals are single fields, whose values need no evaluation.
        if self.signal.field().is_some() {
            return fields.pop().unwrap_or_default();
        }
        let times = batch.column(0).as_primitive::<Int64Type>();
        let rows = Rows { times, fields: &fields, units: &self.units };
        rows.values(&self.signal.node, &mut self.memory)
    }
}

/// Calls `visit` with the time and value of each row that has a time.
pub(crate) fn timed(batch: &RecordBatch, values: &[f64], mut visit: impl FnMut(i64, f64)) {
    let times = batch.column(0).as_primitive::<Int64Type>();
    for (row, value) in values.iter().enumerate() {
        if times.is_valid(row) {
            visit(times.value(row), *value);
        }
    }
}
