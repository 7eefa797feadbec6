//! Conversion of columns to types that every query engine supports.
//!
//! Spark, Delta and most SQL engines have no unsigned integers, no nanoseconds, no arrays of fixed
//! length, and no dictionaries. So integers become signed and wide enough, and arrays become lists.
//! A time becomes a column of microseconds in UTC, and a column `<name>_ns` with all digits.
//!
//! DuckDB supports all of these types except dictionaries, so its columns keep the types of the log
//! ([`Rules::native`]).

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    DurationNanosecondType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, FixedSizeListArray, ListArray, PrimitiveArray, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, TimeUnit};
use arrow_select::take::take;

/// A column of values, with its name and type.
pub(crate) type Column = (FieldRef, ArrayRef);

/// Rules that determine which columns a table has, and their types.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// True if columns with raw bytes are included.
    pub(crate) blobs: bool,
    /// True if unsigned integers, nanoseconds and arrays of fixed length keep their types.
    pub(crate) native: bool,
}

/// The columns of a table. The names of any two columns differ even if case is ignored, because
/// engines such as Spark ignore case.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) all: Vec<Column>,
    /// Names in lower case that are already used or are reserved.
    names: HashSet<String>,
    rules: Rules,
    /// Number of values that were replaced by null, because no column type can represent them.
    pub(crate) lost: u64,
}

impl Columns {
    pub(crate) fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Reserves a name. If a column has this name, it is renamed.
    pub(crate) fn reserve(&mut self, name: &str) {
        self.names.insert(name.to_lowercase());
    }

    /// Adds a column without converting it.
    pub(crate) fn push(&mut self, name: &str, array: ArrayRef) {
        let mut name = name.to_owned();
        while !self.names.insert(name.to_lowercase()) {
            name.push('_');
        }
        let field = Field::new(name, array.data_type().clone(), true);
        self.all.push((Arc::new(field), array));
    }

    /// Converts a column of a reader, and adds the result to the table.
    ///
    /// A time becomes two columns, unless [`Rules::native`] is set. Structs without fields are
    /// dropped. Columns with raw bytes are dropped unless [`Rules::blobs`] is set.
    pub(crate) fn convert(&mut self, name: &str, array: &ArrayRef) -> Result<(), ArrowError> {
        match array.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) if !self.rules.native => {
                let nanos = array.as_primitive::<TimestampNanosecondType>().reinterpret_cast::<Int64Type>();
                self.push(name, Arc::new(micros(&nanos)));
                self.push(&format!("{name}_ns"), Arc::new(nanos));
            }
            DataType::Struct(fields) => {
                let values = array.as_struct();
                let mut inside = Self::new(self.rules);
                for (field, column) in fields.iter().zip(values.columns()) {
                    inside.convert(field.name(), column)?;
                }
                self.lost += inside.lost;
                // A struct without fields is dropped, because query engines cannot store it.
                if !inside.all.is_empty() {
                    let (fields, columns): (Vec<_>, Vec<_>) = inside.all.into_iter().unzip();
                    let values = StructArray::try_new(fields.into(), columns, values.nulls().cloned())?;
                    self.push(name, Arc::new(values));
                }
            }
            DataType::FixedSizeList(_, size) if self.rules.native => {
                let list = array.as_fixed_size_list();
                if *size > 0
                    && let Some((element, values)) = self.elements(list.values())?
                {
                    let list = FixedSizeListArray::try_new(element, *size, values, list.nulls().cloned())?;
                    self.push(name, Arc::new(list));
                }
            }
            DataType::FixedSizeList(_, size) => {
                let values = array.as_fixed_size_list();
                let size = usize::try_from(*size).unwrap_or(0);
                let offsets: Vec<i32> = (0..=array.len())
                    .map(|row| i32::try_from(row * size))
                    .collect::<Result<_, _>>()
                    .map_err(|_| too_long(name))?;
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                // If arrays have no elements, they contain no values, so the column is dropped.
                if size > 0 {
                    self.list(name, offsets, values.values(), array)?;
                }
            }
            DataType::List(_) => {
                let values = array.as_list::<i32>();
                self.list(name, values.offsets().clone(), values.values(), array)?;
            }
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
                if !self.rules.blobs => {}
            _ => {
                let column = self.plain(array)?;
                self.push(name, column);
            }
        }
        Ok(())
    }

    /// Adds a column of lists. The elements of the lists are converted like the values of a column.
    /// If the elements are times, the lists contain only the nanoseconds.
    fn list(
        &mut self,
        name: &str,
        offsets: OffsetBuffer<i32>,
        values: &ArrayRef,
        rows: &ArrayRef,
    ) -> Result<(), ArrowError> {
        let Some((element, values)) = self.elements(values)? else { return Ok(()) };
        let list = ListArray::try_new(element, offsets, values, rows.nulls().cloned())?;
        self.push(name, Arc::new(list));
        Ok(())
    }

    /// Converts the elements of lists. Returns `None` if the elements are dropped, for example
    /// because they are raw bytes.
    fn elements(&mut self, values: &ArrayRef) -> Result<Option<Column>, ArrowError> {
        let mut inside = Self::new(self.rules);
        inside.convert("element", values)?;
        self.lost += inside.lost;
        // If the elements are times, `convert` has added the microseconds first and then the
        // nanoseconds. The last column is used.
        let column = inside.all.pop();
        Ok(column.map(|(field, values)| (Arc::new(Field::clone(&field).with_name("element")), values)))
    }

    /// Converts a column whose type has neither fields nor elements.
    fn plain(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        Ok(match array.data_type() {
            DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Timestamp(TimeUnit::Nanosecond, _)
                if self.rules.native =>
            {
                Arc::clone(array)
            }
            DataType::Duration(TimeUnit::Nanosecond) => {
                Arc::new(array.as_primitive::<DurationNanosecondType>().reinterpret_cast::<Int64Type>())
            }
            DataType::UInt8 => Arc::new(array.as_primitive::<UInt8Type>().unary::<_, Int16Type>(i16::from)),
            DataType::UInt16 => Arc::new(array.as_primitive::<UInt16Type>().unary::<_, Int32Type>(i32::from)),
            DataType::UInt32 => Arc::new(array.as_primitive::<UInt32Type>().unary::<_, Int64Type>(i64::from)),
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                // Query engines have no wider integer type. So a number of 2^63 or above becomes
                // null and is counted. It must not become negative.
                let signed: PrimitiveArray<Int64Type> = values.unary_opt(|value| i64::try_from(value).ok());
                self.lost += (signed.null_count() - values.null_count()) as u64;
                Arc::new(signed)
            }
            DataType::FixedSizeBinary(_) => {
                Arc::new(array.as_fixed_size_binary().iter().collect::<BinaryArray>())
            }
            DataType::Dictionary(key, _) if **key == DataType::Int8 => {
                let values = array.as_dictionary::<Int8Type>();
                take(values.values(), values.keys(), None)?
            }
            DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Float32
            | DataType::Float64
            | DataType::Utf8
            | DataType::Binary => Arc::clone(array),
            other => {
                return Err(ArrowError::NotYetImplemented(format!(
                    "columns of type {other} are not supported"
                )));
            }
        })
    }
}

fn too_long(name: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("column {name} has more than 2^31 elements in one batch"))
}

/// Converts nanoseconds to UTC times in microseconds, rounded down.
pub(crate) fn micros(nanos: &PrimitiveArray<Int64Type>) -> PrimitiveArray<TimestampMicrosecondType> {
    let micros: PrimitiveArray<TimestampMicrosecondType> = nanos.unary(|nanos| nanos.div_euclid(1000));
    micros.with_timezone("UTC")
}

/// Returns the name and type of each column.
pub(crate) fn fields(columns: &[Column]) -> Fields {
    columns.iter().map(|(field, _)| Arc::clone(field)).collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{FixedSizeListBuilder, UInt8Builder};
    use arrow_array::{Int32Array, TimestampNanosecondArray, UInt64Array};

    use super::*;

    fn described(columns: &Columns) -> Vec<String> {
        columns.all.iter().map(|(field, _)| format!("{} {}", field.name(), field.data_type())).collect()
    }

    #[test]
    fn every_type_becomes_one_that_engines_support() {
        let mut columns = Columns::new(Rules::default());
        let mut list = FixedSizeListBuilder::new(UInt8Builder::new(), 2);
        list.values().append_slice(&[1, 255]);
        list.append(true);
        let at: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![-1]));
        let inner = StructArray::from(vec![(
            Arc::new(Field::new("at", at.data_type().clone(), false)),
            Arc::clone(&at),
        )]);
        let pieces: [(&str, ArrayRef); 6] = [
            ("big", Arc::new(UInt64Array::from(vec![u64::MAX]))),
            ("BIG", Arc::new(Int32Array::from(vec![1]))),
            ("list", Arc::new(list.finish())),
            ("at", at),
            ("header", Arc::new(inner)),
            ("bytes", Arc::new(BinaryArray::from(vec![&b"x"[..]]))),
        ];
        for (name, array) in &pieces {
            columns.convert(name, array).unwrap();
        }
        assert_eq!(
            described(&columns),
            [
                "big Int64",
                "BIG_ Int32",
                "list List(Int16, field: 'element')",
                "at Timestamp(µs, \"UTC\")",
                "at_ns Int64",
                "header Struct(\"at\": Timestamp(µs, \"UTC\"), \"at_ns\": Int64)",
            ]
        );
        assert_eq!(columns.lost, 1, "the value above the range of 64 bits");
        assert_eq!(columns.all[3].1.as_primitive::<TimestampMicrosecondType>().value(0), -1, "rounded down");
        let mut with_bytes = Columns::new(Rules { blobs: true, native: false });
        with_bytes.convert("bytes", &pieces[5].1).unwrap();
        assert_eq!(described(&with_bytes), ["bytes Binary"]);
        let mut native = Columns::new(Rules { blobs: false, native: true });
        for (name, array) in &pieces {
            native.convert(name, array).unwrap();
        }
        assert_eq!(
            described(&native),
            [
                "big UInt64",
                "BIG_ Int32",
                "list FixedSizeList(2 x UInt8, field: 'element')",
                "at Timestamp(ns)",
                "header Struct(\"at\": Timestamp(ns))",
            ]
        );
        assert_eq!(native.lost, 0);
    }
}
