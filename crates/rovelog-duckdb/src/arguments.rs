//! Arguments of the table functions.

use quack_rs::types::TypeId;
use quack_rs::value::Value;
use rovelog_scale::Wanted;

/// Names of the optional arguments of `read_log`.
pub(crate) const NAMED: [&str; 5] = ["topic", "fields", "start", "stop", "blobs"];

/// Returns a text, or all texts of a list. DuckDB passes the argument `files` as either of them.
///
/// # Errors
/// Returns an error if the value has another type, is null or is an empty list.
pub(crate) fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    let as_text = |value: &Value| match value.type_id() {
        Some(TypeId::Varchar) if !value.is_sql_null() => value.as_str().ok(),
        _ => None,
    };
    let list = match value.type_id() {
        Some(TypeId::List) => value.list_items().iter().map(as_text).collect(),
        _ => as_text(value).map(|text| vec![text]),
    };
    list.filter(|list: &Vec<String>| !list.is_empty()).ok_or_else(|| {
        format!(
            "{name} must be a text, such as 'a', or a list of texts that is not empty, such as ['a', 'b']"
        )
    })
}

/// Returns the selection for the optional arguments of `read_log`. `argument` returns the argument
/// with a name.
///
/// # Errors
/// Returns an error if an argument has the wrong type.
pub(crate) fn wanted(argument: impl Fn(&str) -> Value) -> Result<Wanted, String> {
    let mut wanted = Wanted { native: true, ..Wanted::default() };
    for name in NAMED {
        let value = argument(name);
        // The handle is null if the query does not have the argument.
        if value.is_null() || value.is_sql_null() {
            continue;
        }
        match name {
            "topic" => wanted.topics = Some(texts(&value, name)?),
            "fields" => wanted.fields = Some(texts(&value, name)?),
            "start" => (wanted.start_ns, wanted.start_us) = time(&value, name)?,
            "stop" => (wanted.end_ns, wanted.end_us) = time(&value, name)?,
            _ => wanted.blobs = value.as_bool_or(false),
        }
    }
    Ok(wanted)
}

/// Returns a time on the clock of the log in nanoseconds, or a time in UTC in microseconds.
fn time(value: &Value, name: &str) -> Result<(Option<i64>, Option<i64>), String> {
    use TypeId::{
        Boolean, Date, Decimal, Double, Float, List, Timestamp, TimestampMs, TimestampNs, TimestampS,
        TimestampTz, Varchar,
    };
    let time = match value.type_id() {
        Some(TimestampTz) => (None, value.as_timestamp_tz()),
        Some(Varchar | Date | Timestamp | TimestampS | TimestampMs | TimestampNs) => {
            (None, value.as_timestamp())
        }
        // DuckDB would convert these to integers, and round fractions.
        None | Some(Boolean | Float | Double | Decimal | List) => (None, None),
        Some(_) => (value.as_i64(), None),
    };
    if time == (None, None) {
        return Err(format!(
            "{name} must be nanoseconds on the clock of the log, as in the column t_ns, or a time in UTC, \
             such as TIMESTAMP '2026-05-01 12:00:00'"
        ));
    }
    Ok(time)
}
