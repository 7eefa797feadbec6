//! A batch under construction, column by column.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema};
use rovelog_core::Select;

/// Names of the columns that can have nulls.
const MAY_BE_NULL: &[&str] = &["jpeg_width", "jpeg_height"];

/// The columns of a batch that is being built.
pub(super) struct Table {
    pub(super) select: Select,
    pub(super) fields: Vec<Arc<Field>>,
    arrays: Vec<ArrayRef>,
}

impl Table {
    pub(super) fn new(select: &Select) -> Self {
        Self { select: select.clone(), fields: Vec::new(), arrays: Vec::new() }
    }

    /// Adds a column, if it is selected.
    pub(super) fn column(&mut self, name: &str, unit: &str, array: impl FnOnce() -> ArrayRef) {
        if self.select.keeps_field(name) {
            self.always(name, unit, array());
        }
    }

    /// Adds a column regardless of the selection.
    pub(super) fn always(&mut self, name: &str, unit: &str, array: ArrayRef) {
        let mut metadata = HashMap::new();
        if !unit.is_empty() {
            metadata.insert("unit".to_owned(), unit.to_owned());
        }
        let field = Field::new(name, array.data_type().clone(), array.is_nullable());
        self.fields.push(Arc::new(field.with_metadata(metadata)));
        self.arrays.push(array);
    }

    /// Adds the columns of a batch, except the first, which is its time.
    pub(super) fn extend(&mut self, batch: &RecordBatch) {
        self.fields.extend(batch.schema_ref().fields().iter().skip(1).cloned());
        self.arrays.extend(batch.columns().iter().skip(1).cloned());
    }

    /// Sets the unit of a column, which replaces the one of the message type.
    pub(super) fn unit(&mut self, name: &str, unit: &str) {
        if let Some(field) = self.fields.iter_mut().find(|field| field.name() == name) {
            let mut metadata = field.metadata().clone();
            metadata.insert("unit".to_owned(), unit.to_owned());
            *field = Arc::new(field.as_ref().clone().with_metadata(metadata));
        }
    }

    pub(super) fn batch(
        self,
        rows: usize,
        metadata: HashMap<String, String>,
    ) -> Result<RecordBatch, ArrowError> {
        // The schema must be the same for all batches, so a field is nullable whether or not this
        // batch has nulls.
        let nullable = |field: &Arc<Field>| {
            let may = MAY_BE_NULL.contains(&field.name().as_str());
            Arc::new(field.as_ref().clone().with_nullable(may))
        };
        let fields: Vec<_> = self.fields.iter().map(nullable).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, self.arrays, &options)
    }
}

/// Returns the metadata of a topic's schema.
pub(super) fn metadata(topic: &str, type_name: &str) -> HashMap<String, String> {
    let pairs =
        [("rovelog.format", crate::wire::INFO.id), ("rovelog.topic", topic), ("rovelog.type", type_name)];
    rovelog_core::columns::metadata(pairs)
}
