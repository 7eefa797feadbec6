//! One vocabulary of columns: names, types, units and metadata, independent of the log format.
//!
//! A table starts with `t_ns`, the log's own clock in nanoseconds, and `time`, the same in UTC if
//! the log has it. Then come the fields. A field of the log named `time` gets a `_` appended.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt64Type,
};
use arrow_array::{
    Array as _, ArrayRef, Int64Array, PrimitiveArray, RecordBatch, RecordBatchOptions, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit as ArrowUnit};
use arrow_select::take::take;
use rovelog::core::text::count;

use super::options::{Kind, TimeUnit};
use super::sink::Job;
use crate::leaf::{Leaf, leaves};
use crate::provenance::of_table;
use crate::{ExportError, Loss, TimeBase};

/// Source of a column.
enum Source {
    /// The column with this index.
    Column(usize),
    /// Times of the log, in the time base of the table.
    Time,
    /// A leaf of a nested column.
    Leaf(Leaf),
}

/// Conversion of the values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// Nanoseconds to microseconds, rounded down.
    Micros,
    /// Nanoseconds as plain integers.
    Integers,
    /// Unsigned to signed; values that do not fit become null and are counted.
    Signed,
}

struct Column {
    source: Source,
    change: Change,
    /// Number of values that became null.
    lost: u64,
}

/// Conversion from batches of a reader to batches of a table.
pub(super) struct Vocabulary {
    schema: SchemaRef,
    columns: Vec<Column>,
    base: TimeBase,
    /// Losses that are known from the schema alone.
    losses: Vec<Loss>,
    topic: String,
}

/// Options that decide the types of a table.
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the caller")]
struct Rules<'a> {
    parquet: bool,
    micros: bool,
    spark: bool,
    blobs: bool,
    kind: Kind,
    topic: &'a str,
}

impl Vocabulary {
    pub(super) fn new(job: &Job<'_>, kind: Kind, read: &Schema) -> Self {
        let options = job.options;
        let parquet = kind == Kind::Parquet;
        let base = TimeBase::of(job.log);
        let rules = Rules {
            parquet,
            micros: parquet && options.time_unit == TimeUnit::Microseconds,
            spark: parquet && options.spark,
            blobs: options.blobs || !parquet,
            kind,
            topic: &job.topic.name,
        };
        let mut made = Made::default();
        let times = read.field(0);
        made.push(times.clone().with_metadata(unit("ns")), Source::Column(0), Change::None);
        let zone = matches!(base, TimeBase::Utc(_)).then(|| "UTC".into());
        let time_unit = if rules.micros { ArrowUnit::Microsecond } else { ArrowUnit::Nanosecond };
        let time = Field::new("time", DataType::Timestamp(time_unit, zone), true);
        made.push(time, Source::Time, if rules.micros { Change::Micros } else { Change::None });
        for (i, field) in read.fields().iter().enumerate().skip(1) {
            let inside = || {
                let fields = Fields::from(vec![Arc::clone(field)]);
                leaves(&Schema::new(fields), options.names)
            };
            let flat = options.flatten || depth(field.data_type()) > DEPTH;
            if flat && field.data_type().is_nested() {
                for leaf in inside() {
                    let field = Field::new(&leaf.name, leaf.data_type.clone(), true)
                        .with_metadata(leaf.field.metadata().clone());
                    made.field(field, Source::Leaf(leaf.in_column(i)), &rules);
                }
            } else {
                made.field(field.as_ref().clone(), Source::Column(i), &rules);
            }
        }
        let of_all = job.metadata.iter().map(|(key, value)| (key.clone(), value.clone()));
        let metadata: HashMap<_, _> = of_all.chain(of_table(job.topic)).collect();
        let schema = Schema::new_with_metadata(made.fields, metadata);
        Self {
            schema: Arc::new(schema),
            columns: made.columns,
            base,
            losses: made.losses,
            topic: job.topic.name.clone(),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Converts a batch to one of the table.
    pub(super) fn convert(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ExportError> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            let array = match &column.source {
                Source::Column(i) => Arc::clone(batch.column(*i)),
                Source::Time => {
                    Arc::new(self.base.place_all(batch.column(0).as_primitive::<Int64Type>())) as ArrayRef
                }
                Source::Leaf(leaf) => leaf_values(leaf, batch)?,
            };
            arrays.push(change(array, column.change, field.data_type(), &mut column.lost));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?)
    }

    /// Adds the values that could not be carried to `losses`.
    pub(super) fn finish(self, losses: &mut Vec<Loss>) {
        losses.extend(self.losses);
        for (column, field) in self.columns.iter().zip(self.schema.fields()) {
            if column.lost > 0 {
                let why = format!("{} above the range of int64 became null", count(column.lost, "value"));
                losses.push(Loss::new(&self.topic, field.name(), why));
            }
        }
    }
}

/// Returns the values of a leaf as a separate column.
fn leaf_values(leaf: &Leaf, batch: &RecordBatch) -> Result<ArrayRef, ExportError> {
    let bound = leaf.bind(batch);
    let rows: UInt64Array = (0..batch.num_rows()).map(|row| bound.at(row).map(|at| at as u64)).collect();
    Ok(take(&bound.array, &rows, None)?)
}

fn change(array: ArrayRef, change: Change, to: &DataType, lost: &mut u64) -> ArrayRef {
    match change {
        // The column of times is already made of plain integers.
        Change::None => match (array.data_type(), to) {
            (DataType::Int64, DataType::Timestamp(_, zone)) => Arc::new(
                array
                    .as_primitive::<Int64Type>()
                    .reinterpret_cast::<TimestampNanosecondType>()
                    .with_timezone_opt(zone.clone()),
            ),
            _ => array,
        },
        Change::Micros => {
            let DataType::Timestamp(_, zone) = to else { return array };
            let nanos: Int64Array = match array.data_type() {
                DataType::Int64 => array.as_primitive::<Int64Type>().clone(),
                _ => array.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>(),
            };
            let micros: PrimitiveArray<TimestampMicrosecondType> =
                nanos.unary(|nanos| nanos.div_euclid(1000));
            Arc::new(micros.with_timezone_opt(zone.clone()))
        }
        Change::Integers => match array.data_type() {
            DataType::Duration(_) => {
                Arc::new(array.as_primitive::<DurationNanosecondType>().reinterpret_cast::<Int64Type>())
            }
            _ => Arc::new(array.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>()),
        },
        Change::Signed => {
            let signed: Int64Array =
                array.as_primitive::<UInt64Type>().unary_opt(|value| i64::try_from(value).ok());
            *lost += (signed.null_count() - array.null_count()) as u64;
            Arc::new(signed)
        }
    }
}

fn unit(unit: &str) -> HashMap<String, String> {
    HashMap::from([("unit".to_owned(), unit.to_owned())])
}

/// The columns made so far, with distinct names.
#[derive(Default)]
struct Made {
    fields: Vec<Arc<Field>>,
    columns: Vec<Column>,
    losses: Vec<Loss>,
    names: HashSet<String>,
}

impl Made {
    fn push(&mut self, field: Field, source: Source, change: Change) {
        // Readers of Parquet and Arrow fail at two columns of one name, some even if only the case
        // differs.
        let mut name = field.name().clone();
        while !self.names.insert(name.to_lowercase()) {
            name.push('_');
        }
        self.fields.push(Arc::new(field.with_name(name)));
        self.columns.push(Column { source, change, lost: 0 });
    }

    fn field(&mut self, field: Field, source: Source, rules: &Rules<'_>) {
        let lost = |why: String| Loss::new(rules.topic, field.name(), why);
        if !rules.blobs && holds_bytes(field.data_type()) {
            self.losses
                .push(lost(format!("raw bytes, not written to {} (--blobs writes them)", rules.kind.name())));
            return;
        }
        if rules.parquet && holds_nothing(field.data_type()) {
            // Parquet has no structs without fields and no lists of 0 elements; they hold no values
            // either.
            return;
        }
        let name = field.name().clone();
        match field.data_type() {
            DataType::Timestamp(ArrowUnit::Nanosecond, zone) if rules.micros => {
                let micros = DataType::Timestamp(ArrowUnit::Microsecond, zone.clone());
                let Source::Column(i) = source else {
                    return self.push(field.with_data_type(micros), source, Change::Micros);
                };
                let exact = Field::new(format!("{name}_ns"), DataType::Int64, field.is_nullable());
                self.push(field.with_data_type(micros), Source::Column(i), Change::Micros);
                self.push(exact.with_metadata(unit("ns")), Source::Column(i), Change::Integers);
            }
            DataType::Duration(ArrowUnit::Nanosecond) if rules.parquet => {
                let mut metadata = field.metadata().clone();
                metadata.extend(unit("ns"));
                let field = field.with_data_type(DataType::Int64).with_metadata(metadata);
                self.push(field, source, Change::Integers);
            }
            DataType::UInt64 if rules.spark => {
                let field = field.with_data_type(DataType::Int64).with_nullable(true);
                self.push(field, source, Change::Signed);
            }
            _ => self.push(field, source, Change::None),
        }
    }
}

/// Maximum nesting depth that Arrow readers reliably support; deeper types become flat columns.
const DEPTH: usize = 24;

fn depth(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => {
            1 + fields.iter().map(|field| depth(field.data_type())).max().unwrap_or(0)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            1 + depth(item.data_type())
        }
        _ => 0,
    }
}

fn holds_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            true
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_bytes(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| holds_bytes(field.data_type())),
        _ => false,
    }
}

/// Returns whether a type has no values: an empty struct, or an array of 0 elements.
fn holds_nothing(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, len) => *len == 0 || holds_nothing(item.data_type()),
        DataType::List(item) => holds_nothing(item.data_type()),
        DataType::Struct(fields) => {
            fields.is_empty() || fields.iter().all(|field| holds_nothing(field.data_type()))
        }
        _ => false,
    }
}
