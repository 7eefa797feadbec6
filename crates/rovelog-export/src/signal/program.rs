//! Signals evaluated over batches of rows.

use std::collections::HashMap;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::Schema;

use super::expression::{Memory, Rows};
use super::find::{Operand, Signal};
use super::unit::Unit;
use crate::leaf::{Leaf, Names, leaves};

/// The numeric leaves of a schema by their flat names. They are listed once for all signals of a
/// topic, because a topic may have tens of thousands.
pub(crate) struct Columns(HashMap<String, Leaf>);

impl Columns {
    pub(crate) fn of(schema: &Schema) -> Self {
        let leaves = leaves(schema, Names::Bracket).into_iter().filter(Leaf::is_number);
        Self(leaves.map(|leaf| (leaf.name.clone(), leaf)).collect())
    }
}

/// A signal bound to the columns of record batches.
pub(crate) struct Program {
    signal: Signal,
    units: Vec<Option<Unit>>,
    fields: Vec<Leaf>,
    memory: Vec<Memory>,
}

impl Program {
    /// Binds a signal to batches with these columns. `name` returns the column name of a field.
    /// Returns `None` if the columns lack a field of the signal.
    pub(crate) fn new(signal: &Signal, columns: &Columns, name: impl Fn(&Operand) -> String) -> Option<Self> {
        let fields = signal.operands.iter().map(|operand| columns.0.get(&name(operand)).cloned());
        Some(Self {
            fields: fields.collect::<Option<_>>()?,
            units: signal.units(),
            memory: vec![Memory::default(); signal.memories],
            signal: signal.clone(),
        })
    }

    /// Returns the column if the signal is a plain field, and `None` if it is an expression.
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        self.signal.field().and(self.fields.first())
    }

    /// Evaluates the signal for the next batch. A row without a value is NaN.
    pub(crate) fn values(&mut self, batch: &RecordBatch) -> Vec<f64> {
        let mut fields: Vec<Vec<f64>> = self.fields.iter().map(|leaf| leaf.numbers(batch)).collect();
        if self.signal.field().is_some() {
            return fields.pop().unwrap_or_default();
        }
        let times = batch.column(0).as_primitive::<Int64Type>();
        let rows = Rows { times, fields: &fields, units: &self.units };
        rows.values(&self.signal.node, &mut self.memory)
    }
}

/// Calls `visit` with time and value of each row that has a time.
pub(crate) fn timed(batch: &RecordBatch, values: &[f64], mut visit: impl FnMut(i64, f64)) {
    let times = batch.column(0).as_primitive::<Int64Type>();
    for (row, value) in values.iter().enumerate() {
        if times.is_valid(row) {
            visit(times.value(row), *value);
        }
    }
}
