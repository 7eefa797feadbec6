//! Converts batches from a log reader to batches of a Parquet or Arrow table. The columns of these
//! tables have the same names, types, units and metadata for all log formats.
//!
//! The first columns are `t_ns`, the time on the log's own clock in nanoseconds, and `time`, the
//! same time in UTC if the log allows the conversion. The fields follow. If a field of the log is
//! named `time`, its column is named `time_`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, TimestampMicrosecondType, TimestampNanosecondType, UInt64Type};
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, Int64Array, ListArray, PrimitiveArray, RecordBatch,
    StructArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit as ArrowUnit};
use arrow_select::take::take;
use rovelog::Topic;
use rovelog::core::internal::columns::new_batch;
use rovelog::core::internal::text::count;

use super::options::{Kind, TimeUnit};
use super::sink::Job;
use crate::flat::integers;
use crate::leaf::{Leaf, leaves};
use crate::provenance::name_and_instance;
use crate::{ExportError, Loss, TimeBase};

/// Source of the values of a column.
#[derive(Clone)]
enum Source {
    /// An input column, given by its index.
    Column(usize),
    /// The times of the rows, converted to UTC if the log allows it.
    Time,
    /// A leaf of a nested input column.
    Leaf(Leaf),
}

/// Conversion of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conversion {
    None,
    /// Converts nanoseconds to microseconds, rounded down.
    Micros,
    /// Converts times and durations to integers. The unit stays nanoseconds.
    Integers,
    /// Converts unsigned integers to signed integers. Values that do not fit become null and are
    /// counted.
    Signed,
    /// Converts the members of a nested column, as [`spark_field`] describes.
    Nested,
}

/// A column of the table.
struct Column {
    source: Source,
    conversion: Conversion,
    /// Number of values that became null, because the type of the column cannot represent them.
    lost_count: u64,
}

/// Converts batches from a log reader to batches of a table.
pub(super) struct BatchConverter {
    schema: SchemaRef,
    columns: Vec<Column>,
    base: TimeBase,
    /// Columns whose types cannot be represented. They are known before any row is read.
    losses: Vec<Loss>,
    /// Name of the topic that the table contains.
    topic: String,
}

/// Options that determine the types of the columns.
struct Rules<'a> {
    /// Format of the table: Parquet or Arrow.
    kind: Kind,
    /// True if times are converted to microseconds.
    micros: bool,
    /// True if Spark must be able to read all types.
    spark: bool,
    /// True if columns of raw bytes are included.
    blobs: bool,
    /// Name of the topic that the table contains.
    topic: &'a str,
}

impl BatchConverter {
    pub(super) fn new(job: &Job<'_>, kind: Kind, read: &Schema) -> Self {
        let options = job.options;
        let is_parquet = kind == Kind::Parquet;
        let base = TimeBase::of(job.log);
        let rules = Rules {
            kind,
            micros: is_parquet && options.time_unit == TimeUnit::Microseconds,
            spark: is_parquet && options.spark,
            blobs: options.blobs || !is_parquet,
            topic: &job.topic.name,
        };
        let mut builder = ColumnBuilder::default();
        builder.push(in_nanoseconds(read.field(0)), Source::Column(0), Conversion::None);
        let zone = matches!(base, TimeBase::Utc(_)).then(|| "UTC".into());
        let time_unit = if rules.micros { ArrowUnit::Microsecond } else { ArrowUnit::Nanosecond };
        let time = Field::new("time", DataType::Timestamp(time_unit, zone), true);
        builder.push(time, Source::Time, if rules.micros { Conversion::Micros } else { Conversion::None });
        for (i, field) in read.fields().iter().enumerate().skip(1) {
            let is_flat = options.flatten || depth(field.data_type()) > MAX_DEPTH;
            if is_flat && field.data_type().is_nested() {
                // Each leaf is found in a schema that only has this field, so the index of its
                // column is set here.
                for leaf in leaves(&Schema::new(vec![Arc::clone(field)]), options.names) {
                    let field = Field::new(&leaf.name, leaf.data_type.clone(), true)
                        .with_metadata(leaf.field.metadata().clone());
                    builder.field(field, Source::Leaf(leaf.in_column(i)), &rules);
                }
            } else {
                builder.field(field.as_ref().clone(), Source::Column(i), &rules);
            }
        }
        let of_all = job.metadata.iter().map(|(key, value)| (key.clone(), value.clone()));
        let metadata: HashMap<_, _> = of_all.chain(of_table(job.topic)).collect();
        let schema = Schema::new_with_metadata(builder.fields, metadata);
        Self {
            schema: Arc::new(schema),
            columns: builder.columns,
            base,
            losses: builder.losses,
            topic: job.topic.name.clone(),
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Converts a batch from the log reader to a batch of the table.
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
            let (conversion, lost_count) = (column.conversion, &mut column.lost_count);
            arrays.push(apply_conversion(array, conversion, field.data_type(), lost_count));
        }
        Ok(new_batch(Arc::clone(&self.schema), arrays, batch.num_rows())?)
    }

    /// Adds the values that the table cannot represent to `losses`.
    pub(super) fn finish(self, losses: &mut Vec<Loss>) {
        losses.extend(self.losses);
        for (column, field) in self.columns.iter().zip(self.schema.fields()) {
            if column.lost_count > 0 {
                let why = format!(
                    "{} above the range of int64, written as null",
                    count(column.lost_count, "value")
                );
                losses.push(Loss::new(&self.topic, field.name(), why));
            }
        }
    }
}

/// Copies the values of a leaf to an array that has one value for each row.
fn leaf_values(leaf: &Leaf, batch: &RecordBatch) -> Result<ArrayRef, ExportError> {
    let bound = leaf.bind(batch);
    let rows: UInt64Array = (0..batch.num_rows()).map(|row| bound.at(row).map(|at| at as u64)).collect();
    Ok(take(&bound.array, &rows, None)?)
}

/// Converts the values of a column to the type `to`. The number of lost values is added to
/// `lost_count`.
fn apply_conversion(
    array: ArrayRef,
    conversion: Conversion,
    to: &DataType,
    lost_count: &mut u64,
) -> ArrayRef {
    match conversion {
        // The column `time` has the type `Timestamp`, but its values are computed as integers.
        Conversion::None => match (array.data_type(), to) {
            (DataType::Int64, DataType::Timestamp(_, zone)) => Arc::new(
                array
                    .as_primitive::<Int64Type>()
                    .reinterpret_cast::<TimestampNanosecondType>()
                    .with_timezone_opt(zone.clone()),
            ),
            _ => array,
        },
        Conversion::Micros => {
            let DataType::Timestamp(_, zone) = to else { return array };
            let micros: PrimitiveArray<TimestampMicrosecondType> =
                integers(array).as_primitive::<Int64Type>().unary(|nanos| nanos.div_euclid(1000));
            Arc::new(micros.with_timezone_opt(zone.clone()))
        }
        Conversion::Integers => integers(array),
        Conversion::Signed => {
            let signed: Int64Array =
                array.as_primitive::<UInt64Type>().unary_opt(|value| i64::try_from(value).ok());
            *lost_count += (signed.null_count() - array.null_count()) as u64;
            Arc::new(signed)
        }
        Conversion::Nested => nested_for_spark(array, to, lost_count),
    }
}

/// Returns a field with a type that Spark can read. Unsigned 64-bit integers become signed
/// integers. Times and durations become signed integers in nanoseconds. Members of nested types are
/// converted in the same way.
fn spark_field(field: &Field) -> Field {
    let inner = |field: &Arc<Field>| Arc::new(spark_field(field));
    let data_type = match field.data_type() {
        DataType::UInt64 => return field.clone().with_data_type(DataType::Int64).with_nullable(true),
        DataType::Timestamp(..) | DataType::Duration(_) => return in_nanoseconds(field),
        DataType::List(item) => DataType::List(inner(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(inner(item), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(inner).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// Converts a column, or a member of a nested column, to the type `to` of [`spark_field`].
fn nested_for_spark(array: ArrayRef, to: &DataType, lost_count: &mut u64) -> ArrayRef {
    let nulls = array.nulls().cloned();
    match (array.data_type(), to) {
        (from, to) if from == to => array,
        (DataType::UInt64, _) => apply_conversion(array, Conversion::Signed, to, lost_count),
        (DataType::Timestamp(..) | DataType::Duration(_), _) => {
            apply_conversion(array, Conversion::Integers, to, lost_count)
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = nested_for_spark(Arc::clone(list.values()), item.data_type(), lost_count);
            Arc::new(ListArray::new(Arc::clone(item), list.offsets().clone(), values, nulls))
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, len)) => {
            let values = Arc::clone(array.as_fixed_size_list().values());
            let values = nested_for_spark(values, item.data_type(), lost_count);
            Arc::new(FixedSizeListArray::new(Arc::clone(item), *len, values, nulls))
        }
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let members = array.as_struct().columns().iter().zip(fields);
            let member = |(member, field): (&ArrayRef, &Arc<Field>)| {
                nested_for_spark(Arc::clone(member), field.data_type(), lost_count)
            };
            Arc::new(StructArray::new(fields.clone(), members.map(member).collect(), nulls))
        }
        _ => array,
    }
}

/// Returns the metadata that is specific to the table of `topic`.
fn of_table(topic: &Topic) -> impl Iterator<Item = (String, String)> {
    let (name, instance) = name_and_instance(&topic.name);
    let pairs = [
        ("rovelog.topic", Some(name)),
        ("rovelog.instance", instance),
        ("rovelog.type", Some(&*topic.type_name)),
    ];
    pairs.map(|(key, value)| Some((key.to_owned(), value?.to_owned()))).into_iter().flatten()
}

/// Returns a copy of `field` with the type int64 and the unit nanoseconds.
fn in_nanoseconds(field: &Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert("unit".to_owned(), "ns".to_owned());
    field.clone().with_data_type(DataType::Int64).with_metadata(metadata)
}

/// Collects the columns of a table.
#[derive(Default)]
struct ColumnBuilder {
    fields: Vec<Arc<Field>>,
    columns: Vec<Column>,
    losses: Vec<Loss>,
    /// Names of all columns so far, in lowercase.
    names: HashSet<String>,
}

impl ColumnBuilder {
    /// Adds a column. If its name is already used, `_` is appended to it.
    fn push(&mut self, field: Field, source: Source, conversion: Conversion) {
        // Readers of Parquet and Arrow fail if two columns have the same name. Some readers, such
        // as Spark, also fail if two names differ only in case.
        let mut name = field.name().clone();
        while !self.names.insert(name.to_lowercase()) {
            name.push('_');
        }
        self.fields.push(Arc::new(field.with_name(name)));
        self.columns.push(Column { source, conversion, lost_count: 0 });
    }

    /// Adds the columns for a field of the log. If the type of the field cannot be represented, the
    /// field is recorded as a loss.
    fn field(&mut self, field: Field, source: Source, rules: &Rules<'_>) {
        let lost = |why: String| Loss::new(rules.topic, field.name(), why);
        if !rules.blobs && contains_bytes(field.data_type()) {
            self.losses.push(lost(format!(
                "the field contains raw bytes, which are not written to {} (--blobs writes them)",
                rules.kind.name()
            )));
            return;
        }
        if rules.kind == Kind::Parquet && is_empty_type(field.data_type()) {
            // Parquet supports neither structs without members nor arrays of length 0. Such a field
            // has no values, so nothing is lost without it.
            return;
        }
        let name = field.name().clone();
        match field.data_type() {
            DataType::Timestamp(ArrowUnit::Nanosecond, zone) if rules.micros => {
                let micros = DataType::Timestamp(ArrowUnit::Microsecond, zone.clone());
                // Microseconds have fewer digits, so a second column contains the exact time. The
                // times of the rows need no second column, because `t_ns` contains them.
                if !matches!(source, Source::Time) {
                    let exact = Field::new(format!("{name}_ns"), DataType::Int64, field.is_nullable());
                    self.push(field.with_data_type(micros), source.clone(), Conversion::Micros);
                    return self.push(in_nanoseconds(&exact), source, Conversion::Integers);
                }
                self.push(field.with_data_type(micros), source, Conversion::Micros);
            }
            DataType::Duration(ArrowUnit::Nanosecond) if rules.kind == Kind::Parquet => {
                self.push(in_nanoseconds(&field), source, Conversion::Integers);
            }
            DataType::UInt64 if rules.spark => {
                let field = field.with_data_type(DataType::Int64).with_nullable(true);
                self.push(field, source, Conversion::Signed);
            }
            ty if rules.spark && ty.is_nested() => {
                self.push(spark_field(&field), source, Conversion::Nested);
            }
            _ => self.push(field, source, Conversion::None),
        }
    }
}

/// Maximum nesting depth of a column. Not all Arrow readers support deeper types. If a column is
/// deeper, its leaves become separate columns.
const MAX_DEPTH: usize = 24;

/// Returns the nesting depth of a type. The depth of a number or text is 0.
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

/// Returns whether a type is or contains raw bytes.
fn contains_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            true
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            contains_bytes(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| contains_bytes(field.data_type())),
        _ => false,
    }
}

/// Returns whether a type cannot have values, because it is an empty struct or an array of length
/// 0.
fn is_empty_type(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeList(item, len) => *len == 0 || is_empty_type(item.data_type()),
        DataType::List(item) => is_empty_type(item.data_type()),
        DataType::Struct(fields) => {
            fields.is_empty() || fields.iter().all(|field| is_empty_type(field.data_type()))
        }
        _ => false,
    }
}
