//! The leaves of a value, in the order of [`names`]; a list of variable length is one leaf.

use std::fmt::Write as _;

use rovelog::{FieldType, Schema, Value};

use super::Keep;

/// A cell of CSV.
#[derive(Clone, Copy)]
pub(super) enum Cell<'a> {
    Value(&'a Value),
    /// A ROS time in nanoseconds: two leaves (seconds and nanoseconds) in one cell.
    Time(i64),
    /// A ROS duration in the same form.
    Duration(i64),
}

/// Returns the names of the CSV columns for the selected leaves. A ROS time or duration is one
/// column, selected if one of its leaves is.
pub fn columns(schema: &Schema, keep: &Keep) -> Vec<String> {
    fn add(path: &str, ty: &FieldType, place: &mut usize, keep: &Keep, names: &mut Vec<String>) {
        match ty {
            FieldType::Struct(schema) => {
                for field in &schema.fields {
                    add(&format!("{path}.{}", field.name), &field.ty, place, keep, names);
                }
            }
            FieldType::Array(element, len) => {
                (0..*len).for_each(|i| add(&format!("{path}[{i}]"), element, place, keep, names));
            }
            leaf => {
                let width = if matches!(leaf, FieldType::Time | FieldType::Duration) { 2 } else { 1 };
                if (*place..*place + width).any(|place| keep.leaf(place)) {
                    names.push(path.to_owned());
                }
                *place += width;
            }
        }
    }
    let (mut names, mut place) = (Vec::new(), 0);
    for field in &schema.fields {
        add(&field.name, &field.ty, &mut place, keep, &mut names);
    }
    names
}

/// Returns the number of leaves in `value`: values without parts, and lists of variable length.
pub fn count(value: &Value, schema: Option<&Schema>) -> usize {
    let mut leaves = 0;
    cells(value, schema, &mut |_, width| {
        leaves += width;
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap_or_default();
    leaves
}

/// Calls `visit` with the cells of a value and their number of leaves, without making names.
pub(super) fn cells<E>(
    value: &Value,
    schema: Option<&Schema>,
    visit: &mut dyn FnMut(Cell<'_>, usize) -> Result<(), E>,
) -> Result<(), E> {
    match (value, schema) {
        (Value::Struct(fields), Some(schema)) if fields.len() == schema.fields.len() => fields
            .iter()
            .zip(&schema.fields)
            .try_for_each(|((_, value), field)| cells_of(value, Some(&field.ty), visit)),
        _ => cells_of(value, None, visit),
    }
}

fn cells_of<E>(
    value: &Value,
    ty: Option<&FieldType>,
    visit: &mut dyn FnMut(Cell<'_>, usize) -> Result<(), E>,
) -> Result<(), E> {
    match (value, ty) {
        (list, Some(FieldType::List(_))) => visit(Cell::Value(list), 1),
        (Value::Struct(fields), Some(FieldType::Time)) if fields.len() == 2 => {
            visit(Cell::Time(nanos(fields)), 2)
        }
        (Value::Struct(fields), Some(FieldType::Duration)) if fields.len() == 2 => {
            visit(Cell::Duration(nanos(fields)), 2)
        }
        (Value::Struct(_), Some(FieldType::Struct(schema))) => cells(value, Some(schema), visit),
        (Value::Struct(fields), _) => fields.iter().try_for_each(|(_, value)| cells_of(value, None, visit)),
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            items.iter().try_for_each(|value| cells_of(value, element, visit))
        }
        (leaf, _) => visit(Cell::Value(leaf), 1),
    }
}

/// Returns seconds and nanoseconds as nanoseconds.
fn nanos(fields: &[(std::sync::Arc<str>, Value)]) -> i64 {
    let part = |number: usize| match fields[number].1 {
        Value::Int(value, _) => value,
        // 32 bits.
        Value::UInt(value, _) => i64::try_from(value).unwrap_or_default(),
        _ => 0,
    };
    part(0).saturating_mul(1_000_000_000).saturating_add(part(1))
}

/// Calls `visit` with the leaves of a value and their flat names.
pub(super) fn flatten(value: &Value, schema: Option<&Schema>, visit: &mut dyn FnMut(&str, &Value)) {
    let Value::Struct(fields) = value else { return value.flatten(visit) };
    for (number, (name, value)) in fields.iter().enumerate() {
        let ty = schema.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
        flatten_under(&mut name.to_string(), value, ty, visit);
    }
}

/// Calls `visit` with the leaves of a value at `path`, with their flat names.
pub(super) fn flatten_under(
    path: &mut String,
    value: &Value,
    ty: Option<&FieldType>,
    visit: &mut dyn FnMut(&str, &Value),
) {
    let len = path.len();
    match (value, ty) {
        (list, Some(FieldType::List(_))) => visit(path, list),
        (Value::Struct(fields), ty) => {
            let nested = if let Some(FieldType::Struct(schema)) = ty { Some(schema) } else { None };
            for (number, (name, value)) in fields.iter().enumerate() {
                let ty = nested.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
                path.push('.');
                path.push_str(name);
                flatten_under(path, value, ty, visit);
                path.truncate(len);
            }
        }
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            for (i, value) in items.iter().enumerate() {
                let _ = write!(path, "[{i}]");
                flatten_under(path, value, element, visit);
                path.truncate(len);
            }
        }
        (leaf, _) => visit(path, leaf),
    }
}

/// Returns the flat names of all leaves in the order of a record's values: `pos.x`, `q[0]`.
pub fn names(schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    for field in &schema.fields {
        names_of(&field.name, &field.ty, &mut names);
    }
    names
}

fn names_of(path: &str, ty: &FieldType, names: &mut Vec<String>) {
    match ty {
        FieldType::Struct(schema) => {
            for field in &schema.fields {
                names_of(&format!("{path}.{}", field.name), &field.ty, names);
            }
        }
        FieldType::Array(element, len) => {
            for i in 0..*len {
                names_of(&format!("{path}[{i}]"), element, names);
            }
        }
        FieldType::Time | FieldType::Duration => {
            names.extend(["sec", "nsec"].map(|part| format!("{path}.{part}")));
        }
        _ => names.push(path.to_owned()),
    }
}
