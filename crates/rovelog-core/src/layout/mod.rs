//! What a record looks like, as data: one description from which its schema, its values, single
//! fields, its length, its bytes and its Arrow columns are made.
//!
//! A format describes a type with a [`Builder`]: ULog out of its format definitions, bags out of
//! message definitions, VEL out of its declarations. Nothing else knows how the bytes of a record
//! become values.

mod encode;
mod measure;
mod plan;
mod row;
mod scalar;
mod text;
mod typed;
#[cfg(test)]
mod typed_tests;
mod types;
mod value;

pub use encode::Misfit;
pub use measure::Fit;
#[doc(hidden)]
pub use plan::{At, Leaf, Plan, Plans, Visit};
pub use row::{Place, Row};
pub use scalar::{Number, encode_scalar, scalar_of, scalar_value};
pub use text::{EscapedTexts, TextDecoder, TextDecoding, TextEncoding};
pub use typed::{TypedError, TypedReader};
pub use types::{Builder, Declared, DeclaredField, Element, Layout, Len, Slot};
pub use value::{DecodeError, MAX_VALUES};

/// Types and records of them, for the tests of this module.
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

    /// Returns a type of these fields.
    pub(super) fn type_of(fields: &[(&'static str, Element, Len)]) -> Arc<Layout> {
        let mut builder = Layout::builder("t");
        add(&mut builder, fields);
        Arc::new(builder.finish())
    }

    /// Returns a struct of six bytes: two numbers, and padding before and behind the second one.
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

    /// Returns a struct that is as long as its text.
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

    /// Returns fields of all kinds, of the same number of bytes in each record, and their values.
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

    /// Returns the same with fields whose number of bytes is in the record; those of `linked` have
    /// as many elements as the first field says.
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

    /// Returns the bytes of a record with these values.
    pub(super) fn record(layout: &Layout, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        layout.encode(value, &mut bytes).unwrap();
        bytes
    }
}
