//! Names of topics, and the fields of message types as text.

use std::fmt::Write as _;

use rovelog_core::{Field, FieldType, Schema};

use crate::message::{Kind, text};

/// Maximum length in characters of a sensor name in the name of a topic. Longer sensor names are
/// shortened.
const NAME_LIMIT: usize = 120;

/// Returns the schema of a message type whose fields are unknown. Its only field contains the data
/// as bytes.
pub(crate) fn raw_schema(name: &str) -> Schema {
    let data = Field::new("data", FieldType::Bytes, "unsigned char[]");
    Schema { name: name.to_owned(), fields: vec![data] }
}

/// Returns the name of the topic for laser scans of a sensor. It contains the name of the sensor,
/// which is shortened if it is long.
pub(crate) fn laser_topic(name: &[u8]) -> String {
    let name = text(name);
    if name.is_empty() {
        return Kind::Laser.name().to_owned();
    }
    let short: String = name.chars().take(NAME_LIMIT).collect();
    let cut = if short.len() < name.len() { "..." } else { "" };
    format!("{}/{short}{cut}", Kind::Laser.name())
}

/// Returns the name of the topic for a message type whose fields are unknown.
pub(crate) fn raw_topic(type_id: u32, version: i32) -> String {
    match Kind::of_id(type_id) {
        Some(kind) => format!("{}@{version}", kind.name()),
        None => format!("0x{type_id:08X}"),
    }
}

/// Returns the name of a message type for use in diagnostics.
pub(crate) fn type_name(type_id: u32) -> String {
    Kind::of_id(type_id).map_or_else(|| format!("0x{type_id:08X}"), |kind| kind.name().to_owned())
}

/// Returns the fields of a message type in the form of a declaration. The data types have the names
/// in section 2 of the VEL specification.
pub(crate) fn definition(schema: &Schema) -> String {
    schema.fields.iter().fold(format!("message {}\n", schema.name), |mut text, field| {
        let unit = field.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        let (ty, len) = field.source_type.split_once('[').unwrap_or((&field.source_type, ""));
        let bracket = if len.is_empty() { "" } else { "[" };
        let _ = writeln!(text, "  {ty} {}{bracket}{len}{unit}", field.name);
        text
    })
}
