//! Layouts: descriptions of how the bytes of a record become values.
//!
//! A format creates a [`Layout`] for each record type with a [`Builder`]: ULog from its format
//! definitions, bags from message definitions, VEL from its declarations. All other code does not
//! depend on the format. The schema, the values, single fields, the size of a record, its bytes and
//! its Arrow columns are all derived from the layout.
//!
//! For example, a type has a field `uint16 n`, one byte of padding and a field `string name`. Its
//! layout has two slots:
//!
//! | field | padding before | offset | element | length |
//! |--------|----------------|--------|--------------------|--------|
//! | `n` | 0 | 0 | scalar of 16 bits | one |
//! | `name` | 1 | 3 | text with a count | one |
//!
//! The record `05 00 | ff | 02 00 00 00 61 62` has this layout:
//!
//! - [`Layout::value`] returns the struct `{"n":5,"name":"ab"}`.
//! - [`Layout::visit`] passes `n` and `name` to a consumer such as a JSON writer. [`Layout::value`]
//!   uses this function, too.
//! - [`Layout::fit`] skips 3 bytes, reads the count 2, skips 2 bytes and arrives at the end of the
//!   record, so it returns [`Fit::Exact`].
//! - [`Layout::place`] finds `n` at offset 0, and [`Row::read`] reads the number there.
//! - [`Layout::encode`] writes the value with a zero as padding.

mod encode;
mod measure;
mod row;
mod scalar;
mod structs;
mod text;
mod typed;
#[cfg(test)]
mod typed_tests;
mod types;
mod value;
mod visit;

pub use encode::Misfit;
pub use measure::Fit;
pub use row::{Place, Row};
pub use scalar::{Number, encode_scalar, scalar_of, scalar_value};
pub use structs::StructVisitor;
pub use text::{EscapedTexts, TextDecoder, TextDecoding, TextEncoding};
pub use typed::{TypedError, TypedReader};
pub use types::{Builder, Declared, DeclaredField, Element, Layout, Len, Slot};
pub use value::Values;
pub use visit::{At, DecodeError, FieldKeys, KeyCache, KeyTable, Keys, Leaf, MAX_VALUES, Visit};

/// Sample record types and records for the tests of the module `layout`.
#[cfg(test)]
mod samples {
    use std::sync::Arc;

    use super::{Builder, Element, Layout, Len, TextDecoder};
    use crate::{Scalar, Value};

    fn add(builder: &mut Builder, fields: &[(&'static str, Element, Len)]) {
        for (name, element, len) in fields {
            builder.field(*name, element.clone(), *len, "type".to_owned());
        }
    }

    /// Returns a record type that has these fields.
    pub(super) fn type_of(fields: &[(&'static str, Element, Len)]) -> Arc<Layout> {
        let mut builder = Layout::builder("t");
        add(&mut builder, fields);
        Arc::new(builder.finish())
    }

    /// Returns a struct of six bytes: a number, a byte of padding, a Boolean and two bytes of
    /// padding.
    pub(super) fn point() -> Arc<Layout> {
        let mut builder = Layout::builder("point");
        add(&mut builder, &[("a", Element::Scalar(Scalar::UInt16), Len::One)]);
        builder.padding(1);
        add(&mut builder, &[("b", Element::Scalar(Scalar::Bool), Len::One)]);
        builder.padding(2);
        Arc::new(builder.finish())
    }

    pub(super) fn point_of(a: u64) -> Value {
        Value::record([("a", Value::UInt(a, 16)), ("b", Value::Bool(true))])
    }

    /// Returns a struct whose size depends on the length of its text.
    pub(super) fn named() -> Arc<Layout> {
        let mut builder = Layout::builder("named");
        add(&mut builder, &[("name", Element::Text(TextDecoder::LATIN1), Len::One)]);
        builder.padding(1);
        add(&mut builder, &[("n", Element::Byte, Len::One)]);
        builder.padding(1);
        Arc::new(builder.finish())
    }

    pub(super) fn named_of(name: &str) -> Value {
        Value::record([("name", text(name)), ("n", Value::UInt(7, 8))])
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn pair(sec: Value, nsec: Value) -> Value {
        Value::record([("sec", sec), ("nsec", nsec)])
    }

    /// Returns fields of all kinds that have the same size in each record, together with their
    /// values.
    pub(super) fn fixed() -> (Builder, Vec<(&'static str, Value)>) {
        let mut builder = Layout::builder("all");
        add(&mut builder, &[("n", Element::Scalar(Scalar::UInt16), Len::One)]);
        builder.padding(3);
        add(
            &mut builder,
            &[
                ("wide", Element::WideBool, Len::One),
                ("wides", Element::WideBool, Len::Fixed(2)),
                ("byte", Element::Byte, Len::One),
                ("bytes", Element::Byte, Len::Fixed(3)),
                ("packed", Element::Packed(2), Len::One),
                ("packs", Element::Packed(2), Len::Fixed(3)),
                ("label", Element::Char(TextDecoder::UTF8), Len::Fixed(4)),
                ("letter", Element::Char(TextDecoder::UTF8), Len::One),
                ("time", Element::Time, Len::One),
                ("duration", Element::Duration, Len::One),
                ("x", Element::Scalar(Scalar::Float32), Len::One),
                ("xs", Element::Scalar(Scalar::Float64), Len::Fixed(3)),
                ("point", Element::Struct(point()), Len::One),
                ("points", Element::Struct(point()), Len::Fixed(2)),
            ],
        );
        let values = vec![
            ("n", Value::UInt(2, 16)),
            ("wide", Value::Bool(true)),
            ("wides", Value::List(vec![Value::Bool(false), Value::Bool(true)])),
            ("byte", Value::UInt(200, 8)),
            ("bytes", Value::Bytes(vec![1, 0, 3])),
            ("packed", Value::Bytes(vec![4, 5])),
            ("packs", Value::Bytes(vec![6, 7, 8, 9, 10, 11])),
            ("label", text("ab")),
            ("letter", text("z")),
            ("time", pair(Value::UInt(1, 32), Value::UInt(2, 32))),
            ("duration", pair(Value::Int(-3, 32), Value::Int(4, 32))),
            ("x", Value::F32(1.5)),
            ("xs", Value::List([2.5, 3.5, 4.5].map(Value::F64).into())),
            ("point", point_of(13)),
            ("points", Value::List(vec![point_of(14), point_of(15)])),
        ];
        (builder, values)
    }

    /// Returns the fields of [`fixed`] and additional fields of variable size. If `linked` is true,
    /// the number of elements of some fields is the value of the first field.
    pub(super) fn variable(linked: bool) -> (Arc<Layout>, Value) {
        let (mut builder, mut values) = fixed();
        let latin1 = Element::Text(TextDecoder::LATIN1);
        let utf8 = Element::Text(TextDecoder::UTF8);
        add(
            &mut builder,
            &[
                ("text", latin1.clone(), Len::One),
                ("texts", utf8, Len::Counted),
                ("no_texts", latin1.clone(), Len::Fixed(0)),
                ("two_texts", latin1, Len::Fixed(2)),
                ("list", Element::Scalar(Scalar::Int16), Len::Counted),
                ("floats", Element::Scalar(Scalar::Float32), Len::Counted),
                ("flags", Element::WideBool, Len::Counted),
                ("chunks", Element::Packed(2), Len::Counted),
                ("blob", Element::Byte, Len::Counted),
                ("times", Element::Time, Len::Counted),
                ("named", Element::Struct(named()), Len::One),
                ("names", Element::Struct(named()), Len::Counted),
                ("two_names", Element::Struct(named()), Len::Fixed(2)),
            ],
        );
        values.extend([
            ("text", text("größe")),
            ("texts", Value::List(vec![text("a"), text("größe"), text("")])),
            ("no_texts", Value::List(vec![])),
            ("two_texts", Value::List(vec![text("bc"), text("d")])),
            ("list", Value::List([-1, 2, -3].map(|n| Value::Int(n, 16)).into())),
            ("floats", Value::List([5.5, 6.5].map(Value::F32).into())),
            ("flags", Value::List(vec![Value::Bool(true), Value::Bool(false)])),
            ("chunks", Value::Bytes(vec![1, 2, 3, 4, 5, 6])),
            ("blob", Value::Bytes(vec![9; 5])),
            ("times", Value::List(vec![pair(Value::UInt(7, 32), Value::UInt(8, 32)); 2])),
            ("named", named_of("e")),
            ("names", Value::List(vec![named_of("fg"), named_of(""), named_of("h")])),
            ("two_names", Value::List(vec![named_of("i"), named_of("jkl")])),
        ]);
        if linked {
            builder.padding(2);
            add(
                &mut builder,
                &[
                    ("some", Element::Scalar(Scalar::UInt16), Len::Field(0)),
                    ("words", Element::Text(TextDecoder::UTF8), Len::Field(0)),
                    ("some_names", Element::Struct(named()), Len::Field(0)),
                ],
            );
            values.extend([
                ("some", Value::List([20, 30].map(|n| Value::UInt(n, 16)).into())),
                ("words", Value::List(vec![text("m"), text("no")])),
                ("some_names", Value::List(vec![named_of("p"), named_of("qr")])),
            ]);
        }
        (Arc::new(builder.finish()), Value::record(values))
    }

    /// Encodes a record that has this value.
    pub(super) fn record(layout: &Layout, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        layout.encode(value, &mut bytes).unwrap();
        bytes
    }
}
