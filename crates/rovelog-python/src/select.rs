//! Parts of columns by name: `pos`, `pos.x`, `q[0]`, `esc[3].esc_rpm`.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use rovelog::core::select::Names;
use rovelog_export::TimeBase;
use rovelog_export::signal::{Extended, Pattern};

/// Name of the column with Unix times.
const TIME: &str = "time";

/// Conversion of a format's columns for Python.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Names of fields or of parts of them; `None` selects everything.
    paths: Option<Vec<String>>,
    /// How times are placed on UTC; `None` without UTC.
    utc: Option<TimeBase>,
}

/// One step into a column or a record.
pub(crate) enum Step<'a> {
    Field(&'a str),
    Element(usize),
}

/// Returns the steps of a path; `None` for an invalid step.
pub(crate) fn steps(path: &str) -> impl Iterator<Item = Option<Step<'_>>> {
    path.split('.').flat_map(|piece| {
        let (name, elements) = piece.split_at(piece.find('[').unwrap_or(piece.len()));
        let element = |text: &str| Some(Step::Element(text.strip_suffix(']')?.parse().ok()?));
        std::iter::once(Some(Step::Field(name))).chain(elements.split('[').skip(1).map(element))
    })
}

impl Shape {
    pub(crate) fn new(paths: Option<Vec<String>>, base: TimeBase) -> Self {
        let utc = Some(base).filter(|base| matches!(base, TimeBase::Utc(_)));
        Self { paths, utc }
    }

    /// Returns the shape with the columns of signals after the selected fields.
    pub(crate) fn with(mut self, further: Option<&Extended>) -> Self {
        if let (Some(paths), Some(further)) = (&mut self.paths, further) {
            paths.extend(further.names().map(str::to_owned));
        }
        self
    }

    /// Returns the names that the format's reader must decode: those of the paths, without
    /// elements.
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

    /// Returns the schema of converted batches of `schema`.
    pub(crate) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef, ArrowError> {
        Ok(self.apply(&RecordBatch::new_empty(Arc::clone(schema)))?.schema())
    }

    /// Returns `t_ns`, Unix times if known, then the fields.
    pub(crate) fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let schema = batch.schema();
        let mut fields: Vec<FieldRef> = vec![Arc::clone(&schema.fields()[0])];
        let mut columns: Vec<ArrayRef> = vec![Arc::clone(batch.column(0))];
        let taken = schema.column_with_name(TIME).is_some();
        if let Some(base) = self.utc.as_ref().filter(|_| !taken) {
            let time = wall(batch.column(0), base);
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
                    let (field, column) = part(batch, path)?;
                    fields.push(field);
                    columns.push(column);
                }
            }
        }
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)
    }
}

/// Returns the fields of `schema` and the parts of them that a pattern matches, each whole; `topic` may be
/// before their names.
pub(crate) fn matching(schema: &Schema, topic: &str, pattern: &Pattern) -> Vec<String> {
    let mut found = Vec::new();
    for field in schema.fields().iter().skip(1) {
        matching_in(field.name(), field.data_type(), topic, pattern, &mut found);
    }
    found
}

fn matching_in(path: &str, ty: &DataType, topic: &str, pattern: &Pattern, found: &mut Vec<String>) {
    if pattern.matches(path) || pattern.matches(&format!("{topic}.{path}")) {
        return found.push(path.to_owned());
    }
    match ty {
        DataType::Struct(fields) => {
            for field in fields {
                let path = format!("{path}.{}", field.name());
                matching_in(&path, field.data_type(), topic, pattern, found);
            }
        }
        DataType::FixedSizeList(item, size) => {
            for element in 0..*size {
                matching_in(&format!("{path}[{element}]"), item.data_type(), topic, pattern, found);
            }
        }
        _ => {}
    }
}

/// Returns the Unix times of rows; null beyond the range of nanoseconds.
fn wall(t_ns: &ArrayRef, base: &TimeBase) -> ArrayRef {
    let unix = base.place_all(t_ns.as_primitive::<Int64Type>());
    let zone = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    arrow_array::make_array(
        unix.into_data().into_builder().data_type(zone).build().expect("timestamps are integers of 64 bits"),
    )
}

/// Returns the part of a batch at `path`, with the path as its name.
fn part(batch: &RecordBatch, path: &str) -> Result<(FieldRef, ArrayRef), ArrowError> {
    let missing = || ArrowError::InvalidArgumentError(format!("there is no field {path}"));
    let schema = batch.schema();
    // The column of a signal may have any name.
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
                let rows = column.len() as u64;
                let places: UInt64Array = (0..rows).map(|row| row * size + element).collect();
                let taken = arrow_select::take::take(column.as_fixed_size_list().values(), &places, None)?;
                let metadata = field.metadata().clone();
                (Arc::new(Field::clone(&item).with_metadata(metadata)), taken)
            }
            // `esc.esc_rpm`: the field of each element.
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
