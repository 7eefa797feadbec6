//! The leaves of a record: its numbers, texts and other values without parts.
//!
//! For example, a record has the fields `t` (a number), `pos` (a struct of x and y), `q` (an array
//! of 2) and `ranges` (a list of variable length). Its leaves are `t`, `pos.x`, `pos.y`, `q[0]`,
//! `q[1]` and `ranges`. A list of variable length is a single leaf, so that all records of a topic
//! have the same leaves. A ROS time or duration has two leaves, its seconds and its nanoseconds,
//! but is a single CSV column.

use std::sync::Arc;

use rovelog::{Field, FieldType, Schema, Value};

use super::Keep;

/// A record together with the selection of its leaves.
#[derive(Clone, Copy)]
pub struct Selected<'a> {
    /// Fields of the record.
    pub fields: &'a [(Arc<str>, Value)],
    /// Schema of the record, if it has one. The record may have more fields than the schema.
    pub schema: Option<&'a Schema>,
    /// Selects the leaves that are shown.
    pub keep: &'a Keep,
    /// Flat names of the leaves in the schema.
    pub names: &'a [String],
}

impl<'a> Selected<'a> {
    /// Returns the name, the value and the schema field of each field in the record.
    fn all(&self) -> impl Iterator<Item = (&'a str, &'a Value, Option<&'a Field>)> + use<'a> {
        let schema = self.schema;
        let field = move |number| schema.and_then(|schema| schema.fields.get(number));
        self.fields.iter().enumerate().map(move |(number, (name, value))| (&**name, value, field(number)))
    }

    /// Calls `visit` with the selected parts of the record. If all leaves are selected, these are
    /// the fields of the record. Otherwise, they are single leaves. If `join` is true, a field
    /// whose leaves are all selected is passed as a whole.
    pub(super) fn entries(&self, join: bool, visit: &mut dyn FnMut(&str, &'a Value, Option<&'a Field>)) {
        let mut place = 0;
        for (name, value, field) in self.all() {
            if *self.keep == Keep::All {
                visit(name, value, field);
                continue;
            }
            let mut leaves = Vec::new();
            for_each(value, field.map(|field| &field.ty), &mut |leaf, _| match leaf {
                Value::Struct(parts) => leaves.extend(parts.iter().map(|(_, part)| part)),
                leaf => leaves.push(leaf),
            });
            let inside = place..place + leaves.len();
            place = inside.end;
            if join && !leaves.is_empty() && inside.clone().all(|place| self.keep.leaf(place)) {
                visit(name, value, field);
                continue;
            }
            for (place, leaf) in inside.zip(leaves).filter(|(place, _)| self.keep.leaf(*place)) {
                let flat = self.names.get(place).map_or(name, |name| name);
                visit(flat, leaf, field.filter(|_| flat == name));
            }
        }
    }
}

/// Calls `visit` with the leaves of a value. A time or duration is passed as a whole.
fn for_each<'a>(
    value: &'a Value,
    ty: Option<&'a FieldType>,
    visit: &mut dyn FnMut(&'a Value, Option<&'a FieldType>),
) {
    match (value, ty) {
        (value, Some(FieldType::List(_) | FieldType::Time | FieldType::Duration)) => visit(value, ty),
        (Value::Struct(fields), ty) => {
            let schema = if let Some(FieldType::Struct(schema)) = ty { Some(schema) } else { None };
            for (number, (_, value)) in fields.iter().enumerate() {
                let field = schema.and_then(|schema| schema.fields.get(number));
                for_each(value, field.map(|field| &field.ty), visit);
            }
        }
        (Value::List(items), ty) => {
            let element = if let Some(FieldType::Array(element, _)) = ty { Some(&**element) } else { None };
            for item in items {
                for_each(item, element, visit);
            }
        }
        (leaf, ty) => visit(leaf, ty),
    }
}

/// Returns the names of the CSV columns for the selected leaves. A ROS time or duration is a single
/// column, which is selected if its seconds or nanoseconds are selected.
pub fn columns(schema: &Schema, keep: &Keep) -> Vec<String> {
    let (mut columns, mut place) = (Vec::new(), 0);
    schema.for_each_leaf(&mut |name, ty| {
        // A time or duration has two leaves, its seconds and its nanoseconds.
        let leaves = place..place + if let FieldType::Time | FieldType::Duration = ty { 2 } else { 1 };
        place = leaves.end;
        if leaves.into_iter().any(|place| keep.leaf(place)) {
            columns.push(name.to_owned());
        }
    });
    columns
}

/// Returns the flat names of all leaves, such as `pos.x` or `q[0]`, in the order of a record's
/// values.
pub fn names(schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    schema.for_each_leaf(&mut |name, ty| match ty {
        FieldType::Time | FieldType::Duration => {
            names.extend(["sec", "nsec"].map(|part| format!("{name}.{part}")));
        }
        _ => names.push(name.to_owned()),
    });
    names
}
