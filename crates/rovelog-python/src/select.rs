//! Selection of columns and parts of columns by path, such as `pos`, `pos.x`, `q[0]` or
//! `esc[3].esc_rpm`.
//!
//! The reader of a log format decodes whole fields. [`Projection`] then extracts the selected parts
//! from the decoded batches. For example, a column `esc` has 8 structs for each row. The path
//! `esc[3].rpm` selects the elements 3, 11, 19, ... from the list of all structs, and then the
//! field `rpm` of each selected struct.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use rovelog::Topic;
use rovelog::core::internal::columns::new_batch;
use rovelog::core::select::Names;
use rovelog_export::TimeBase;
use rovelog_export::signal::{Extended, Pattern};

/// Name of the column with Unix times.
const TIME: &str = "time";

/// Projection from the columns that the reader of a log format decodes to the columns that Python
/// gets.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// Paths of the selected columns. `None` selects all columns.
    paths: Option<Vec<String>>,
    /// Conversion of times to UTC. `None` if no column with UTC is added.
    utc: Option<TimeBase>,
}

/// One step of a path to a part of a column.
pub(crate) enum Step<'a> {
    /// The step to a field of a struct, such as `.x`.
    Field(&'a str),
    /// The step to an element of an array, such as `[3]`.
    Element(usize),
}

/// Returns the steps of a path. An invalid step is `None`. For example, `esc[3].rpm` has the steps
/// `esc`, 3 and `rpm`.
pub(crate) fn steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    path.split('.').flat_map(|piece| {
        let (name, elements) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
        let element = |text: &str| Some(Step::Element(text.strip_suffix(']')?.parse().ok()?));
        std::iter::once(Some(Step::Field(name))).chain(elements.split('[').skip(1).map(element))
    })
}

impl Projection {
    pub(crate) fn new(paths: Option<Vec<String>>, base: TimeBase) -> Self {
        let utc = Some(base).filter(|base| matches!(base, TimeBase::Utc(_)));
        Self { paths, utc }
    }

    /// Omits the column `time` with UTC if the topic has a field with this name.
    ///
    /// Selections without this field omit the column too, so that `time` has the same content in all
    /// selections.
    pub(crate) fn for_topic(mut self, topic: &Topic) -> Self {
        let mut fields = topic.schema.iter().flat_map(|schema| &schema.fields);
        if fields.any(|field| &*field.name == TIME) {
            self.utc = None;
        }
        self
    }

    /// Adds the columns of signals after the columns of the selected fields.
    pub(crate) fn with_signals(mut self, signals: Option<&Extended>) -> Self {
        if let (Some(paths), Some(signals)) = (&mut self.paths, signals) {
            paths.extend(signals.names().map(str::to_owned));
        }
        self
    }

    /// Returns the fields that the reader of the log format must decode. Their names are the
    /// selected paths without array indices.
    pub(crate) fn fields(&self) -> Option<Names> {
        let plain = |path: &String| {
            let names = steps(path).filter_map(|step| match step? {
                Step::Field(name) => Some(name),
                Step::Element(_) => None,
            });
            names.collect::<Vec<_>>().join(".")
        };
        self.paths.as_ref().map(|paths| paths.iter().map(plain).collect())
    }

    /// Returns the schema that batches have after the projection. `schema` is their schema before
    /// the projection.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef, ArrowError> {
        // All batches get the same schema, so an empty batch is projected to find it.
        Ok(self.apply(&RecordBatch::new_empty(Arc::clone(schema)))?.schema())
    }

    /// Returns the columns for Python: `t_ns`, then `time` with UTC if the conversion to UTC is
    /// known, then the selected columns.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = batch.schema();
        let mut fields: Vec<FieldRef> = vec![Arc::clone(&schema.fields()[0])];
        let mut columns: Vec<ArrayRef> = vec![Arc::clone(batch.column(0))];
        // UTC is not added if a signal has the name `time`, because a column with this name then
        // already exists.
        let taken = schema.column_with_name(TIME).is_some();
        if let Some(base) = self.utc.as_ref().filter(|_| !taken) {
            let time = unix_times(batch.column(0), base);
            fields.push(Arc::new(Field::new(TIME, time.data_type().clone(), true)));
            columns.push(time);
        }
        match &self.paths {
            None => {
                fields.extend(schema.fields().iter().skip(1).cloned());
                columns.extend(batch.columns().iter().skip(1).cloned());
            }
            Some(paths) => {
                for path in paths {
                    let (field, column) = column_at(batch, path)?;
                    fields.push(field);
                    columns.push(column);
                }
            }
        }
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        new_batch(Arc::new(schema), columns, batch.num_rows())
    }
}

/// Returns the paths that a pattern matches. They are fields, and nested parts of fields such as
/// `pos.x`.
///
/// The pattern may start with the name of the topic. If a whole field matches, its parts are not
/// listed.
pub(crate) fn matching_paths(schema: &Schema, topic: &str, pattern: &Pattern) -> Vec<String> {
    let mut found = Vec::new();
    for field in schema.fields().iter().skip(1) {
        collect_matching(field.name(), field.data_type(), topic, pattern, &mut found);
    }
    found
}

/// If the pattern matches `path`, adds `path` to `found`. Otherwise adds all nested fields of
/// `path` that the pattern matches.
fn collect_matching(path: &str, ty: &DataType, topic: &str, pattern: &Pattern, found: &mut Vec<String>) {
    if pattern.matches(path) || pattern.matches(&format!("{topic}.{path}")) {
        return found.push(path.to_owned());
    }
    match ty {
        DataType::Struct(fields) => {
            for field in fields {
                let path = format!("{path}.{}", field.name());
                collect_matching(&path, field.data_type(), topic, pattern, found);
            }
        }
        DataType::FixedSizeList(item, size) => {
            for element in 0..*size {
                collect_matching(&format!("{path}[{element}]"), item.data_type(), topic, pattern, found);
            }
        }
        _ => {}
    }
}

/// Converts times on the log's clock to UTC. A time that does not fit into 64 bits becomes null.
fn unix_times(t_ns: &ArrayRef, base: &TimeBase) -> ArrayRef {
    let unix = base.place_all(t_ns.as_primitive::<Int64Type>());
    let zone = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    arrow_array::make_array(
        unix.into_data().into_builder().data_type(zone).build().expect("timestamps are integers of 64 bits"),
    )
}

/// Returns the column at a path. The new column has the path as its name.
fn column_at(batch: &RecordBatch, path: &str) -> Result<(FieldRef, ArrayRef), ArrowError> {
    let missing = || ArrowError::InvalidArgumentError(format!("the topic has no field {path}"));
    let schema = batch.schema();
    // The name of a signal may contain dots and brackets. So a column with this whole name is
    // searched before the path is divided into steps.
    if let Some((index, field)) = schema.column_with_name(path) {
        return Ok((Arc::new(field.clone()), Arc::clone(batch.column(index))));
    }
    let mut steps = steps(path);
    let Some(Some(Step::Field(name))) = steps.next() else { return Err(missing()) };
    let (index, field) = schema.column_with_name(name).ok_or_else(missing)?;
    let (mut field, mut column) = (Arc::new(field.clone()), Arc::clone(batch.column(index)));
    for step in steps {
        (field, column) = match (step.ok_or_else(missing)?, column.data_type().clone()) {
            (Step::Field(name), DataType::Struct(fields)) => {
                let (index, field) = fields.find(name).ok_or_else(missing)?;
                (Arc::clone(field), Arc::clone(column.as_struct().column(index)))
            }
            (Step::Element(element), DataType::FixedSizeList(item, size)) => {
                let size = u64::try_from(size).unwrap_or(0);
                let element = u64::try_from(element).ok().filter(|e| *e < size).ok_or_else(missing)?;
                // The elements of all rows form one flat list with `size` elements for each row.
                let rows = column.len() as u64;
                let indices: UInt64Array = (0..rows).map(|row| row * size + element).collect();
                let taken = arrow_select::take::take(column.as_fixed_size_list().values(), &indices, None)?;
                let metadata = field.metadata().clone();
                (Arc::new(Field::clone(&item).with_metadata(metadata)), taken)
            }
            // The path `esc.rpm` has no array index. It selects the field of every element, as an
            // array of the same length.
            (Step::Field(name), DataType::FixedSizeList(item, size)) => {
                let list = column.as_fixed_size_list();
                let DataType::Struct(fields) = item.data_type() else { return Err(missing()) };
                let (index, inner) = fields.find(name).ok_or_else(missing)?;
                let values = Arc::clone(list.values().as_struct().column(index));
                let item = Arc::new(Field::new_list_field(inner.data_type().clone(), inner.is_nullable()));
                let nulls = list.nulls().cloned();
                let lists = arrow_array::FixedSizeListArray::try_new(item, size, values, nulls)?;
                let lists: ArrayRef = Arc::new(lists);
                let field = Field::new(name.to_owned(), lists.data_type().clone(), false);
                (Arc::new(field.with_metadata(inner.metadata().clone())), lists)
            }
            _ => return Err(missing()),
        };
    }
    let named = Field::clone(&field).with_name(path);
    Ok((Arc::new(named), column))
}
