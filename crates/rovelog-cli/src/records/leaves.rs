//! The leaves of a value, in the order of [`crate::select::leaves`]: a list of any length is one.

use std::fmt::Write as _;

use rovelog::{FieldType, Schema, Value};

/// Leaves in `value`: values without parts, and lists that have another length in each record.
pub(super) fn count(value: &Value, schema: Option<&Schema>) -> usize {
    let mut leaves = 0;
    cells(value, schema, &mut |_| {
        leaves += 1;
        Ok::<(), std::convert::Infallible>(())
    })
    .unwrap_or_default();
    leaves
}

/// The leaves of a value, without the cost of their names.
pub(super) fn cells<E>(
    value: &Value,
    schema: Option<&Schema>,
    visit: &mut dyn FnMut(&Value) -> Result<(), E>,
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
    visit: &mut dyn FnMut(&Value) -> Result<(), E>,
) -> Result<(), E> {
    match (value, ty) {
        (list, Some(FieldType::List(_))) => visit(list),
        (Value::Struct(_), Some(FieldType::Struct(schema))) => cells(value, Some(schema), visit),
        (Value::Struct(fields), _) => fields.iter().try_for_each(|(_, value)| cells_of(value, None, visit)),
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            items.iter().try_for_each(|value| cells_of(value, element, visit))
        }
        (leaf, _) => visit(leaf),
    }
}

/// The leaves of a value with their flat names.
pub(super) fn flatten(value: &Value, schema: Option<&Schema>, visit: &mut dyn FnMut(&str, &Value)) {
    let Value::Struct(fields) = value else { return value.flatten(visit) };
    for (number, (name, value)) in fields.iter().enumerate() {
        let ty = schema.and_then(|schema| schema.fields.get(number)).map(|field| &field.ty);
        flatten_under(&mut name.to_string(), value, ty, visit);
    }
}

/// The leaves of what lies at `path`, a value of this type, with their flat names.
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
