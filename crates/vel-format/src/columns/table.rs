//! A record batch under construction, to which columns are added one by one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use rovelog_core::Select;
use rovelog_core::internal::columns::new_batch;

/// Names of the columns whose values can be null.
const MAY_BE_NULL: &[&str] = &["jpeg_width", "jpeg_height"];

/// Columns of a record batch that is being built.
pub(super) struct Table {
    pub(super) select: Select,
    pub(super) fields: Vec<Arc<Field>>,
    arrays: Vec<ArrayRef>,
}

impl Table {
    pub(super) fn new(select: &Select) -> Self {
        Self { select: select.clone(), fields: Vec::new(), arrays: Vec::new() }
    }

    /// Adds a column if the selection contains its name.
    pub(super) fn column(&mut self, name: &str, unit: &str, array: impl FnOnce() -> ArrayRef) {
        if self.select.keeps_field(name) {
            self.always(name, unit, array());
        }
    }

    /// Adds a column, even if the selection does not contain its name.
    pub(super) fn always(&mut self, name: &str, unit: &str, array: ArrayRef) {
        let mut metadata = HashMap::new();
        if !unit.is_empty() {
            metadata.insert("unit".to_owned(), unit.to_owned());
        }
        let field = Field::new(name, array.data_type().clone(), array.is_nullable());
        self.fields.push(Arc::new(field.with_metadata(metadata)));
        self.arrays.push(array);
    }

    /// Adds all columns of `batch` except the first column, which is the time.
    pub(super) fn extend(&mut self, batch: &RecordBatch) {
        self.fields.extend(batch.schema_ref().fields().iter().skip(1).cloned());
        self.arrays.extend(batch.columns().iter().skip(1).cloned());
    }

    /// Sets the unit of a column. It replaces the unit that the message type declares.
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
        // All batches must have the same schema. So a column can be nullable even if this batch has
        // no nulls in this column.
        let nullable = |field: &Arc<Field>| {
            let may = MAY_BE_NULL.contains(&field.name().as_str());
            Arc::new(field.as_ref().clone().with_nullable(may))
        };
        let fields: Vec<_> = self.fields.iter().map(nullable).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        new_batch(schema, self.arrays, rows)
    }
}

/// Returns the metadata of a topic's schema.
pub(super) fn metadata(topic: &str, type_name: &str) -> HashMap<String, String> {
    let pairs =
        [("rovelog.format", crate::wire::INFO.id), ("rovelog.topic", topic), ("rovelog.type", type_name)];
    rovelog_core::internal::columns::metadata(pairs)
}
