//! Definitions of the ROS message types in the output: standard types, and types that are generated
//! from the schemas of a log.
//!
//! For example, a ULog schema `esc_status` with the fields `uint64 timestamp` and `esc_report[8]
//! esc` becomes the type `ulog_msgs/EscStatus` with this text:
//!
//! ```text
//! uint64 timestamp  # us
//! ulog_msgs/EscReport[8] esc
//! ```

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::sync::LazyLock;

use rovelog::core::internal::layout::{At, Leaf, Visit};
use rovelog::rosbag12::msg::{FullText, Types, known};
use rovelog::{Field, FieldType, Scalar, Schema};

use crate::ros::names::{Names, is_field_name, snake_case, type_word};

/// Maximum nesting depth of a type.
const MAX_DEPTH: usize = 64;

/// Standard types that the catalogue of rosbag12 does not have.
static EXTRA: LazyLock<FullText<'static>> = LazyLock::new(|| FullText::split(include_bytes!("extra.msg")));

/// The generated types of a log.
#[derive(Default)]
pub(super) struct GeneratedTypes {
    /// Package of the types.
    package: &'static str,
    /// Text of each type by its full name.
    texts: HashMap<String, String>,
    /// Full name of each type by the name that was requested for it and its text.
    names: HashMap<String, String>,
    /// For each requested name, the number at the end of the last name that was derived from it.
    numbers: HashMap<String, u32>,
    /// Full name of the type of each nested schema, by the address of the schema, which the log
    /// keeps. Without it, a few nested types could describe millions of fields.
    nested: HashMap<usize, String>,
}

impl GeneratedTypes {
    pub(super) fn new(package: &'static str) -> Self {
        Self { package, ..Self::default() }
    }

    /// Returns the type with the full name `name`, and all types that it needs. The type is a
    /// standard type or a generated type.
    pub(super) fn resolve(&self, name: &str) -> Option<Types> {
        let text = |name: &str| {
            let standard = EXTRA.section(name).or_else(|| known(name).map(str::as_bytes));
            self.texts.get(name).map(String::as_bytes).or(standard).map(<[u8]>::to_vec)
        };
        Types::resolve(name, &text(name)?, MAX_DEPTH, &text).ok()
    }

    /// Generates the type for a schema, and returns its full name. Returns `None` if ROS cannot
    /// express the schema, for example because of nested lists.
    pub(super) fn add(&mut self, schema: &Schema, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut text = String::new();
        let mut names = Names::new(schema.fields.iter().map(|field| &*field.name), is_field_name);
        for field in &schema.fields {
            let (element, array) = match &field.ty {
                // ROS 2 forbids arrays without elements. They have no bytes.
                FieldType::Array(_, 0) => continue,
                FieldType::Array(element, len) => (&**element, format!("[{len}]")),
                FieldType::List(element) => (&**element, "[]".to_owned()),
                FieldType::Bytes => (&FieldType::Scalar(Scalar::UInt8), "[]".to_owned()),
                single => (single, String::new()),
            };
            let nested;
            let word = match element {
                FieldType::Scalar(scalar) => scalar.name(),
                FieldType::Text => "string",
                FieldType::Struct(schema) => {
                    let key = std::ptr::from_ref::<Schema>(schema).addr();
                    nested = match self.nested.get(&key) {
                        Some(known) => known.clone(),
                        None => self.add(schema, depth + 1)?,
                    };
                    self.nested.insert(key, nested.clone());
                    &nested
                }
                FieldType::Time => "time",
                FieldType::Duration => "duration",
                _ => return None,
            };
            let _ = write!(text, "{word}{array} {}", names.next(&field.name, snake_case));
            if let Some(unit) = field.unit.as_deref().filter(|unit| !unit.contains(['\n', '\r'])) {
                let _ = write!(text, "  # {unit}");
            }
            text.push('\n');
        }
        // Two schemas may have the same name, for example in a ULog that was appended to another.
        let base = format!("{}/{}", self.package, type_word(&schema.name));
        let known = self.names.entry(format!("{base}\n{text}"));
        let Entry::Vacant(free) = known else { return Some(known.or_default().clone()) };
        let mut name = base.clone();
        while self.texts.contains_key(&name) {
            let number = self.numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            name = format!("{base}{number}");
        }
        self.texts.insert(name.clone(), text);
        Some(free.insert(name).clone())
    }
}

/// Writes a record as a ROS 1 message of its generated type.
#[derive(Default)]
pub(super) struct RecordWriter {
    pub(super) payload: Vec<u8>,
    /// True if a value is missing, which ROS cannot express.
    pub(super) has_null: bool,
}

impl RecordWriter {
    /// Writes the number of elements, if the field has a variable number of elements.
    fn len(&mut self, field: &Field, len: usize) {
        if matches!(field.ty, FieldType::List(_)) {
            self.prefix(len);
        }
    }

    fn prefix(&mut self, len: usize) {
        // No log has a record of 4 GiB.
        self.payload.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    }
}

impl Visit<Field> for RecordWriter {
    fn scalar(&mut self, _: &Field, _: Scalar, bytes: &[u8]) {
        self.payload.extend_from_slice(bytes);
    }

    fn scalars(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        self.len(field, bytes.len() / scalar.size());
        self.payload.extend_from_slice(bytes);
    }

    fn leaf(&mut self, _: &Field, _: At, leaf: Leaf<'_>) {
        let bytes = match &leaf {
            Leaf::Text(text) => text.as_bytes(),
            Leaf::Bytes(bytes) => bytes,
            Leaf::Pair(_, words) => return self.payload.extend_from_slice(&words[..]),
            Leaf::Null => {
                self.has_null = true;
                return;
            }
        };
        self.prefix(bytes.len());
        self.payload.extend_from_slice(bytes);
    }

    fn list(&mut self, field: &Field, len: usize) {
        self.len(field, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_types_have_the_sums_of_ros() {
        let types = GeneratedTypes::new("test_msgs");
        for (name, sum) in [
            ("diagnostic_msgs/KeyValue", "cf57fdc6617a881a88c16e768132149c"),
            ("sensor_msgs/BatteryState", "4ddae7f048e32fda22cac764685e3974"),
            ("sensor_msgs/NavSatFix", "2d3a8cd499b9b4a0249fb98fd05cfa48"),
            ("velodyne_msgs/VelodynePacket", "ae4f90a23256f44e82baa08dd45c3456"),
            ("velodyne_msgs/VelodyneScan", "50804fc9533a0e579e6322c04ae70566"),
            ("sensor_msgs/CompressedImage", "8f7a12909da2c9d3332d540a0977563f"),
        ] {
            assert_eq!(types.resolve(name).unwrap().sum_v2().0, sum, "{name}");
        }
        assert!(types.resolve("rcl_interfaces/Log").is_some());
    }

    #[test]
    fn schemas_of_the_same_name_get_different_types() {
        let schema = |ty: Scalar| Schema {
            name: "my_type".to_owned(),
            fields: vec![Field::new("Value", FieldType::Scalar(ty), "")],
        };
        let mut types = GeneratedTypes::new("test_msgs");
        let mut add = |ty| types.add(&schema(ty), 0).unwrap();
        assert_eq!(add(Scalar::Bool), "test_msgs/MyType");
        assert_eq!(add(Scalar::Int8), "test_msgs/MyType2");
        assert_eq!(add(Scalar::Int8), "test_msgs/MyType2");
        let int8 = types.resolve("test_msgs/MyType2").unwrap();
        assert_eq!(int8.full_text(), b"int8 value\n");
    }
}
