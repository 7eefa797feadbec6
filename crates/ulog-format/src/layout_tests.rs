//! Tests of layouts.

use super::*;

fn formats(texts: &[&str]) -> Formats {
    let mut formats = Formats::default();
    for text in texts {
        formats.define(&FormatText::parse(text.as_bytes()).unwrap(), text.as_bytes());
    }
    formats
}

fn layout(texts: &[&str], name: &str) -> Result<Arc<Layout>, Undecodable> {
    formats(texts).layout(name, &Limits::default())
}

#[test]
fn padding_counts_toward_sizes_but_is_not_a_field() {
    let texts = ["t:uint8_t a;uint32_t _padding0;e v;uint8_t[4] _padding1;", "e:float x;uint8_t _padding0;"];
    let t = layout(&texts, "t").unwrap();
    // The padding at the end of the nested type remains. Only the padding at the end of a row is
    // removed.
    assert_eq!((t.full_len, t.trimmed_len), (14, 10));
    assert_eq!(t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(), ["a", "v"]);
    assert_eq!(t.record.slots()[1].offset, Some(5));
}

#[test]
fn types_may_be_defined_in_any_order_but_not_circularly() {
    assert_eq!(layout(&["a:b x;", "b:a x;"], "a").unwrap_err(), Undecodable::Circular("a".into()));
    assert_eq!(layout(&["a:nope x;"], "a").unwrap_err(), Undecodable::Missing("nope".into()));
    assert_eq!(layout(&["a:b x;", "b:float y;"], "a").unwrap().full_len, 4);
}

#[test]
fn levels_are_limited() {
    let chain = |n: usize| -> Vec<String> {
        (0..n)
            .map(|i| if i + 1 == n { format!("f{i}:float x;") } else { format!("f{i}:f{} x;", i + 1) })
            .collect()
    };
    for (n, ok) in [(65, true), (66, false)] {
        let texts = chain(n);
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        assert_eq!(layout(&texts, "f0").is_ok(), ok);
        // The limit of nesting is the same if the layouts of the inner types were computed before.
        let mut formats = formats(&texts);
        formats.layout("f1", &Limits::default()).unwrap();
        assert_eq!(formats.layout("f0", &Limits::default()).is_ok(), ok);
    }
}

#[test]
fn doubling_levels_end_at_a_limit() {
    let texts: Vec<_> = (0..60)
        .map(|i| if i == 59 { format!("f{i}:char[0] x;") } else { format!("f{i}:f{0} x;f{0} y;", i + 1) })
        .collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    assert_eq!(layout(&texts, "f0").unwrap_err(), Undecodable::TooLarge("too many fields"));
}

fn leaf_limit(leaves: usize) -> Limits {
    let mut limits = Limits::default();
    limits.leaves = leaves;
    limits
}

#[test]
fn leaves_are_counted_through_arrays_of_types() {
    let texts = ["t:e[4] x;float y;", "e:float a;float b;float c;"];
    let with = |leaves| formats(&texts).layout("t", &leaf_limit(leaves));
    assert!(with(13).is_ok());
    assert_eq!(with(12).unwrap_err(), Undecodable::TooLarge("too many fields"));
}

#[test]
fn a_row_is_no_longer_than_a_message() {
    let long = Err(Undecodable::TooLarge("a row longer than a message can be"));
    let len = |text: &str| layout(&[text], "t").map(|layout| (layout.trimmed_len, layout.full_len));
    assert_eq!(len("t:char[65533] x;char[0] y;"), Ok((65_533, 65_533)));
    assert_eq!(len("t:char[65533] x;char y;"), long);
    assert_eq!(len("t:char[65533] x;char[65535] _padding0;"), Ok((65_533, 131_068)));
    // Padding at the end of a row is not stored, so a row with padding may be longer than a
    // message. Its size must fit into 32 bits.
    let padded = |t: &str| {
        let texts = [t, "e:char[65535] _padding0;char _padding1;"];
        formats(&texts).layout("t", &leaf_limit(1 << 20)).map(|layout| (layout.trimmed_len, layout.full_len))
    };
    assert_eq!(padded("t:char[0] x;e[65535] _padding0;char[65535] _padding1;"), Ok((0, 0xFFFF_FFFF)));
    assert_eq!(padded("t:char[0] x;e[65535] _padding0;e _padding1;"), long);
}

#[test]
fn resolving_is_limited_by_the_length_of_the_definitions() {
    let mut formats = Formats { budget: 0, ..formats(&[]) };
    let text = b"t:float x;";
    formats.define(&FormatText::parse(text).unwrap(), text);
    let mut resolve = || {
        formats.layouts.clear();
        formats.failed.clear();
        formats.layout("t", &Limits::default()).map(|layout| layout.full_len)
    };
    for _ in 0..4 * text.len() {
        assert_eq!(resolve(), Ok(4));
    }
    assert_eq!(resolve(), Err(Undecodable::TooLarge("too many redefinitions")));
}

#[test]
fn a_layout_stays_the_same_until_a_nested_type_changes() {
    let mut formats = formats(&["t:e x;", "e:float y;"]);
    let first = formats.layout("t", &Limits::default());
    let mut still = |text: &str| {
        formats.define(&FormatText::parse(text.as_bytes()).unwrap(), text.as_bytes());
        formats.has_same_layout("t", &first, &Limits::default())
    };
    assert_eq!(
        ["u:float y;", "u:double y;", "e:int32_t y;", "e:float y;"].map(&mut still),
        [true, true, false, true]
    );
    // A format without a layout equals any other format without a layout.
    let missing = Err(Undecodable::Missing("e".to_owned()));
    assert!(!formats.has_same_layout("t", &missing, &Limits::default()));
    assert!(formats.has_same_layout("v", &missing, &Limits::default()));
}

#[test]
fn units_and_value_names_depend_on_the_release_of_px4() {
    let text = "vehicle_status:uint64_t timestamp;uint8_t arming_state;uint8_t nav_state;";
    let battery = "battery_status:float voltage_v;float[14] voltage_cell_v;";
    let of = |infos: &[(&[u8], &[u8])]| {
        let mut formats = formats(&[text, battery]);
        for (key, value) in infos {
            formats.detect_px4(Info { key, value });
        }
        let mut fields = |name| {
            let layout = formats.layout(name, &Limits::default()).unwrap();
            layout.record.schema().fields.clone()
        };
        let (status, battery) = (fields("vehicle_status"), fields("battery_status"));
        let units: Vec<_> = battery.iter().map(|field| field.unit.clone()).collect();
        (status[0].unit.clone(), status[1].name_of(1), status[2].name_of(5), units)
    };
    let px4: (&[u8], &[u8]) = (b"char[3] sys_name", b"PX4");
    let volts = || vec![Some("V".to_owned()), Some("V".to_owned())];
    let us = Some("us".to_owned());
    assert_eq!(of(&[px4]), (us.clone(), Some("Disarmed"), Some("Return"), volts()));
    let release: (&[u8], &[u8]) = (b"uint32_t ver_sw_release", &[0xff, 2, 14, 1]);
    assert_eq!(of(&[px4, release]), (us.clone(), Some("Standby"), Some("Return"), volts()));
    assert_eq!(of(&[(b"char[3] sys_name", b"XYZ")]), (us, None, None, vec![None, None]));
}

#[test]
fn names_of_flight_modes_depend_on_the_fields_of_the_format() {
    let mode = |text: &str| {
        let mut formats = formats(&[text]);
        formats.detect_px4(Info { key: b"char[3] sys_name", value: b"PX4" });
        let layout = formats.layout("vehicle_status", &Limits::default()).unwrap();
        layout.record.schema().fields[0].name_of(8)
    };
    assert_eq!(mode("vehicle_status:uint8_t nav_state;"), Some("Land on engine failure"));
    let later = "vehicle_status:uint8_t nav_state;uint8_t nav_state_user_intention;";
    assert_eq!(mode(later), Some("Altitude cruise"));
}

#[test]
fn a_field_name_used_twice_is_numbered() {
    let t = layout(&["t:float x;float x;double x;"], "t").unwrap();
    assert_eq!(t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(), ["x", "x#2", "x#3"]);
    // Adding numbers to thousands of identical field names takes linear time.
    let many = (2..6000).map(|n| format!("char x#{n};")).collect::<Vec<_>>().concat();
    let t = layout(&[&format!("t:char x;{many}{}", "char x;".repeat(6000))], "t").unwrap();
    assert_eq!(t.record.schema().fields.last().map(|f| &*f.name), Some("x#11999"));
    // If the log itself contains a name such as `x#2`, this number is skipped.
    let t = layout(&["t:float x;float x#2;float x#3;float x;float x;"], "t").unwrap();
    assert_eq!(
        t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(),
        ["x", "x#2", "x#3", "x#4", "x#5"]
    );
}

#[test]
fn a_redefinition_changes_the_types_that_contain_it() {
    let mut formats = formats(&["t:e x;", "e:float y;"]);
    assert_eq!(formats.layout("t", &Limits::default()).unwrap().full_len, 4);
    let text = b"e:double y;";
    assert_eq!(formats.define(&FormatText::parse(text).unwrap(), text), Defined::Redefined);
    assert_eq!(formats.layout("t", &Limits::default()).unwrap().full_len, 8);
}
