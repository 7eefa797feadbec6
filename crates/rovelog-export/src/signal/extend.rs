//! Appends computed signals to the batches of a topic, one column for each signal.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use rovelog::core::internal::columns::new_batch;
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, Topic};

use super::find::{Operand, Signal};
use super::program::{Columns, Program};
use crate::ExportError;
use crate::leaf::free_name;

/// Computes signals for the batches of a topic and appends them as columns.
///
/// Functions that depend on earlier rows, such as `derivative`, require batches in row order.
pub struct Extended {
    programs: Vec<Program>,
    schema: SchemaRef,
    /// Number of columns that come from the log. The columns of the signals follow them.
    own: usize,
}

impl Extended {
    /// Returns `select` with all fields that `signals` need.
    pub fn reads(signals: &[Signal], select: &Select) -> Select {
        match &select.fields {
            Some(fields) => {
                let more = signals.iter().flat_map(Signal::fields).map(field_path);
                select.clone().with_fields(fields.iter().map(str::to_owned).chain(more))
            }
            // A selection without a list of fields already includes all fields.
            None => select.clone(),
        }
    }

    /// Prepares the columns that `select` names and one column for each signal. Signals that use
    /// other topics are ignored. Batches passed to [`extend`](Self::extend) must be read with the
    /// selection that [`reads`](Self::reads) returns.
    ///
    /// # Errors
    /// Returns an error if the topic has no columns.
    pub fn new(
        log: &dyn LogReader,
        topic: &Topic,
        signals: &[Signal],
        select: &Select,
    ) -> Result<Self, ExportError> {
        let schema = |select: &Select| {
            Ok::<_, ExportError>(arrow_array::RecordBatchReader::schema(&log.own(topic)?.columns(select)?))
        };
        let (own, read) = (schema(select)?, schema(&Self::reads(signals, select))?);
        let mine = signals.iter().filter(|signal| is_of(signal, topic));
        let column = |signal: &Signal| signal.name_in(&topic.name).to_owned();
        Ok(Self::of(&own, &read, mine, column, |operand| operand.field.clone()))
    }

    /// Prepares the output columns: first the columns of the schema `own`, then one column for each
    /// signal.
    ///
    /// `read` is the schema of the input batches. `column` returns the output column name for a
    /// signal, and `field` returns the input column name for an operand.
    pub(super) fn of<'s>(
        own: &Schema,
        read: &Schema,
        signals: impl Iterator<Item = &'s Signal>,
        column: impl Fn(&Signal) -> String,
        field: impl Fn(&Operand) -> String,
    ) -> Self {
        let mut fields: Vec<FieldRef> = own.fields().to_vec();
        let mut taken: BTreeSet<String> = fields.iter().map(|field| field.name().clone()).collect();
        let (columns, mut programs) = (Columns::of(read), Vec::new());
        for signal in signals {
            let Some(program) = Program::new(signal, &columns, &field) else { continue };
            let unit = signal.unit().map(|unit| ("unit".to_owned(), unit.to_owned()));
            let metadata: HashMap<String, String> = unit.into_iter().collect();
            let name = free_name(&mut taken, &column(signal));
            fields.push(Arc::new(Field::new(name, DataType::Float64, true).with_metadata(metadata)));
            programs.push(program);
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, own.metadata().clone()));
        Self { programs, schema, own: own.fields().len() }
    }

    /// Returns the schema of the extended batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the names of the computed columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.schema.fields()[self.own..].iter().map(|field| field.name().as_str())
    }

    /// Appends the computed columns to a batch. A missing value becomes null.
    ///
    /// # Errors
    /// Returns an error if the batch lacks a column.
    pub fn extend(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ExportError> {
        let fields = self.schema.fields()[..self.own].iter();
        let mut columns = fields.map(|field| part(batch, field)).collect::<Result<Vec<_>, _>>()?;
        for program in &mut self.programs {
            let values = program.values(batch).into_iter().map(|value| (!value.is_nan()).then_some(value));
            columns.push(Arc::new(values.collect::<Float64Array>()));
        }
        Ok(new_batch(Arc::clone(&self.schema), columns, batch.num_rows())?)
    }
}

/// Returns whether a signal only uses fields of `topic`.
fn is_of(signal: &Signal, topic: &Topic) -> bool {
    signal.topics().iter().all(|name| topic.name == **name)
}

/// Returns a column of the batch. If the column is a struct, only the members in `field` are kept.
fn part(batch: &RecordBatch, field: &FieldRef) -> Result<ArrayRef, ExportError> {
    // The signals may need columns and members that the user did not select. They were read for the
    // signals, and are removed again here.
    let missing = || ExportError::Format(format!("column {} does not exist", field.name()));
    Ok(narrowed(batch.column_by_name(field.name()).ok_or_else(missing)?, field.data_type()))
}

/// Reduces a struct array to the members of the struct type `wanted`, at all levels of nesting.
fn narrowed(array: &ArrayRef, wanted: &DataType) -> ArrayRef {
    let DataType::Struct(fields) = wanted else { return Arc::clone(array) };
    let from = array.as_struct();
    let member = |field: &FieldRef| Some(narrowed(from.column_by_name(field.name())?, field.data_type()));
    let columns = fields.iter().filter_map(member);
    Arc::new(StructArray::new(fields.clone(), columns.collect(), from.nulls().cloned()))
}
