//! Tests of deserializing records to structs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use serde_core::de::DeserializeOwned;

use super::samples::{fixed, point, record, type_of, variable};
use super::typed::{Content, FieldReader, TypedError};
use super::{Element, Layout, Len};
use crate::{Scalar, Value};

fn read<T: DeserializeOwned>(layout: &Arc<Layout>, bytes: &[u8]) -> Result<T, TypedError> {
    let element = Content::Struct(layout);
    T::deserialize(FieldReader { maps: &mut Vec::new(), element, count: None, bytes })
}

fn message<T: DeserializeOwned>(layout: &Arc<Layout>, bytes: &[u8]) -> String {
    read::<T>(layout, bytes).map(|_| ()).unwrap_err().to_string()
}

#[derive(Debug, Deserialize, PartialEq)]
struct Point {
    b: bool,
    a: u16,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Instant {
    sec: u32,
    nsec: u32,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Fixed {
    n: u64,
    wides: Vec<bool>,
    byte: u8,
    bytes: [u8; 3],
    label: String,
    letter: String,
    time: Instant,
    duration: i64,
    x: f64,
    xs: [f64; 3],
    points: Vec<Point>,
    missing: Option<f32>,
    #[serde(default)]
    other: u8,
}

#[test]
fn a_struct_receives_the_fields_that_it_has() {
    let expected = Fixed {
        n: 2,
        wides: vec![false, true],
        byte: 200,
        bytes: [1, 0, 3],
        label: "ab".to_owned(),
        letter: "z".to_owned(),
        time: Instant { sec: 1, nsec: 2 },
        duration: -2_999_999_996,
        x: 1.5,
        xs: [2.5, 3.5, 4.5],
        points: vec![Point { a: 14, b: true }, Point { a: 15, b: true }],
        missing: None,
        other: 0,
    };
    let (builder, values) = fixed();
    let mut types = vec![(Arc::new(builder.finish()), Value::record(values))];
    types.extend([variable(false), variable(true)]);
    for (layout, value) in types {
        assert_eq!(read::<Fixed>(&layout, &record(&layout, &value)).as_ref(), Ok(&expected));
    }
}

#[derive(Debug, Deserialize, PartialEq)]
struct Named {
    name: String,
    n: u8,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Variable {
    some: Vec<i32>,
    words: (String, String),
    some_names: Vec<Named>,
    names: Vec<Named>,
    text: String,
    times: Vec<u64>,
    list: Vec<i16>,
}

#[test]
fn fields_after_variable_lists_are_found() {
    let (layout, value) = variable(true);
    let named = |name: &str| Named { name: name.to_owned(), n: 7 };
    let bytes = record(&layout, &value);
    let expected = Variable {
        some: vec![20, 30],
        words: ("m".to_owned(), "no".to_owned()),
        some_names: vec![named("p"), named("qr")],
        names: vec![named("fg"), named(""), named("h")],
        text: "größe".to_owned(),
        times: vec![7_000_000_008; 2],
        list: vec![-1, 2, -3],
    };
    assert_eq!(read::<Variable>(&layout, &bytes), Ok(expected));
    for len in 0..bytes.len() - 1 {
        assert!(read::<Variable>(&layout, &bytes[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn a_map_receives_all_fields() {
    let layout = point();
    let fields: BTreeMap<String, serde_json::Value> = read(&layout, &[1, 1, 0, 1]).unwrap();
    assert_eq!(serde_json::to_string(&fields).unwrap(), r#"{"a":257,"b":true}"#);
}

#[test]
fn a_mismatch_states_the_field_and_both_types() {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the errors are of interest")]
    struct Wanted<T> {
        x: T,
    }
    let layout = |element, len| type_of(&[("x", element, len)]);
    let number = |scalar| layout(Element::Scalar(scalar), Len::One);
    let is = "field `x`, which is `type` in the log: ";
    let float = number(Scalar::Float64);
    assert_eq!(message::<Wanted<f32>>(&float, &[0; 8]), format!("{is}invalid type: float64, expected f32"));
    assert_eq!(
        message::<Wanted<u8>>(&number(Scalar::Int32), &[0, 1, 0, 0]),
        format!("{is}invalid value: integer `256`, expected u8")
    );
    assert_eq!(
        message::<Wanted<f64>>(&number(Scalar::UInt64), &[0; 8]),
        format!("{is}invalid type: uint64, expected f64")
    );
    let array = layout(Element::Scalar(Scalar::Float32), Len::Fixed(4));
    assert_eq!(
        message::<Wanted<[f32; 3]>>(&array, &[0; 16]),
        format!("{is}invalid length 4, expected 3 elements")
    );
    assert_eq!(message::<Wanted<f32>>(&array, &[0; 16]), format!("{is}invalid type: sequence, expected f32"));
    assert_eq!(message::<Wanted<u8>>(&type_of(&[]), &[]), "missing field `x`");
    let outer = layout(Element::Struct(float), Len::Fixed(2));
    assert_eq!(
        message::<Wanted<[Wanted<f32>; 2]>>(&outer, &[0; 16]),
        "field `x[0].x`, which is `type` in the log: invalid type: float64, expected f32"
    );
}

#[test]
fn a_list_with_too_large_a_count_is_rejected() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        x: Vec<u16>,
    }
    let list = type_of(&[("x", Element::Scalar(Scalar::UInt16), Len::Counted)]);
    assert!(message::<Wanted>(&list, &[0xff; 6]).contains("ends inside the field"));
    assert_eq!(read::<Wanted>(&list, &[1, 0, 0, 0, 7, 0]), Ok(Wanted { x: vec![7] }));
}

#[test]
fn a_missing_number_is_none() {
    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        a: u16,
        b: Option<bool>,
        c: Option<f64>,
    }
    let optional = |scalar| Element::Optional(scalar);
    let layout = type_of(&[
        ("a", optional(Scalar::UInt16), Len::One),
        ("b", optional(Scalar::Bool), Len::One),
        ("c", optional(Scalar::Float64), Len::One),
    ]);
    let value = Value::record([("a", Value::UInt(7, 16)), ("b", Value::Null), ("c", Value::F64(0.5))]);
    let bytes = record(&layout, &value);
    assert_eq!(layout.value(&bytes), Ok((value, bytes.len())));
    assert_eq!(read(&layout, &bytes), Ok(Wanted { a: 7, b: None, c: Some(0.5) }));
}
