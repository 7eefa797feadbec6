//! DuckDB types of Arrow columns.

use arrow_schema::{DataType, TimeUnit};
use quack_rs::types::{LogicalType, LogicalTypeError, TypeId};

/// Maximum length of the DuckDB type ARRAY. Longer arrays become lists.
pub(crate) const MAX_ARRAY_LEN: i32 = 100_000;

/// Returns the DuckDB type of a column.
///
/// # Errors
/// Returns an error if DuckDB has no such type.
pub(crate) fn logical(data_type: &DataType) -> Result<LogicalType, String> {
    let refused = |error: LogicalTypeError| format!("columns of type {data_type} are not supported: {error}");
    let plain = match data_type {
        DataType::Boolean => TypeId::Boolean,
        DataType::Int8 => TypeId::TinyInt,
        DataType::Int16 => TypeId::SmallInt,
        DataType::Int32 => TypeId::Integer,
        DataType::Int64 => TypeId::BigInt,
        DataType::UInt8 => TypeId::UTinyInt,
        DataType::UInt16 => TypeId::USmallInt,
        DataType::UInt32 => TypeId::UInteger,
        DataType::UInt64 => TypeId::UBigInt,
        DataType::Float32 => TypeId::Float,
        DataType::Float64 => TypeId::Double,
        DataType::Utf8 => TypeId::Varchar,
        DataType::Binary => TypeId::Blob,
        // DuckDB converts between times with and without a time zone by the zone of the session. So
        // all times have the same type, which has no zone.
        DataType::Timestamp(TimeUnit::Nanosecond | TimeUnit::Microsecond, _) => TypeId::TimestampNs,
        DataType::FixedSizeList(element, len) if *len <= MAX_ARRAY_LEN => {
            let len = u64::try_from(*len).unwrap_or(0);
            return LogicalType::try_array_from_logical(&logical(element.data_type())?, len).map_err(refused);
        }
        DataType::List(element) | DataType::FixedSizeList(element, _) => {
            return LogicalType::try_list_from_logical(&logical(element.data_type())?).map_err(refused);
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| Ok((field.name().as_str(), logical(field.data_type())?)));
            let fields = fields.collect::<Result<Vec<_>, String>>()?;
            return LogicalType::try_struct_type_from_logical(&fields).map_err(refused);
        }
        other => return Err(format!("columns of type {other} are not supported")),
    };
    LogicalType::try_new(plain).map_err(refused)
}
