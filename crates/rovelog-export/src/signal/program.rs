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

/// A signal bound to the columns that its rows come in.
pub(crate) struct Program {
    signal: Signal,
    units: Vec<Option<Unit>>,
    fields: Vec<Leaf>,
    memory: Vec<Memory>,
}

impl Program {
    /// Binds a signal to batches with `schema`; `name` gives the flat name of a field in them.
    /// Returns `None` if one of its fields is not there.
    pub(crate) fn new(signal: &Signal, schema: &Schema, name: impl Fn(&Operand) -> String) -> Option<Self> {
        let leaves = leaves(schema, Names::Bracket).into_iter().filter(Leaf::is_number);
        let leaves: HashMap<String, Leaf> = leaves.map(|leaf| (leaf.name.clone(), leaf)).collect();
        let fields = signal.operands.iter().map(|operand| leaves.get(&name(operand)).cloned());
        Some(Self {
            fields: fields.collect::<Option<_>>()?,
            units: signal.units(),
            memory: vec![Memory::default(); signal.memories],
            signal: signal.clone(),
        })
    }

    /// Returns the field that the signal is, if it is one.
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        self.signal.field().and(self.fields.first())
    }

    /// Returns the values of the next rows; NaN for those without one.
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

/// Calls `visit` with the time of each row that has one, and its value.
pub(crate) fn timed(batch: &RecordBatch, values: &[f64], mut visit: impl FnMut(i64, f64)) {
    let times = batch.column(0).as_primitive::<Int64Type>();
    for (row, value) in values.iter().enumerate() {
        if times.is_valid(row) {
            visit(times.value(row), *value);
        }
    }
}
