//! Infos, infos in parts, parameters and their defaults.

use serde_json::json;

use super::log::{Keyed, Log};
use super::shape::{F32, F64, I8, I32, I64, Shape, Type, U8, U16, U32, U64, Value, nested, values};
use super::{START, plain, plain_log, plain_rows};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "info-of-all-types",
        "numbers of several widths, texts, arrays, a type nobody knows, no value at all",
        &["D26"],
        info_of_all_types,
    ),
    Case::ulog("info-in-data-section", "infos once data began", &["D6", "D26"], info_in_data_section),
    Case::ulog("info-repeated", "the last info of a name wins", &["D26"], info_repeated),
    Case::ulog(
        "info-length-disagrees",
        "the value is as long as the message says, not as [n] says",
        &["D26"],
        info_length_disagrees,
    ),
    Case::ulog(
        "info-of-custom-types",
        "values whose type is a format, an array of it, one defined later, and one of another size",
        &["D26"],
        info_of_custom_types,
    ),
    Case::ulog(
        "multi-info",
        "infos in parts: lists of lists, two keys mixed, in both sections",
        &["D26"],
        multi_info,
    ),
    Case::ulog(
        "multi-info+continued-without-first",
        "a continuation with nothing to continue begins a list",
        &["D26"],
        continued_without_first,
    ),
    Case::ulog(
        "parameters+changes",
        "first values, changes in flight, one set twice before data",
        &["D24"],
        parameters,
    ),
    Case::ulog(
        "parameter-of-other-types",
        "types the text does not allow: value kept",
        &["D23"],
        parameter_of_other_types,
    ),
    Case::ulog(
        "default-parameters",
        "defaults for all, for this setup, for both; never a value",
        &["D24"],
        default_parameters,
    ),
];

fn info_of_all_types() -> Made {
    let mut log = Log::new(START);
    log.info(&Keyed::text("sys_name", "PX4"));
    log.info(&Keyed::text("ver_hw", "PX4_FMU_V5"));
    log.info(&Keyed::text("empty", ""));
    log.info(&Keyed::scalar(&U32, "ver_sw_release", 0x0110_00FFu32));
    log.info(&Keyed::scalar(&I32, "time_ref_utc", -3600i32));
    log.info(&Keyed::scalar(&U8, "small", 200u8));
    log.info(&Keyed::scalar(&I8, "negative", -5i8));
    log.info(&Keyed::scalar(&U64, "big", u64::MAX));
    log.info(&Keyed::scalar(&I64, "big_negative", i64::MIN));
    log.info(&Keyed::scalar(&F32, "ratio", 0.5f32));
    log.info(&Keyed::scalar(&F64, "exact", 0.1f64));
    log.info(&Keyed::array("uint8_t[4]", "bytes", &[0xDE, 0xAD, 0, 1], json!([222, 173, 0, 1])));
    log.info(&Keyed::array("float[2]", "pair", &[0, 0, 0x80, 0x3F, 0, 0, 0, 0x40], json!([1.0, 2.0])));
    log.info(&Keyed::opaque("vendor_t", "custom", b"\x01\x02abc"));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.done()
}

fn info_of_custom_types() -> Made {
    let part = Shape::new("part_t").with("major", U8).with("minor", U16);
    let board =
        Shape::new("board_t").with("name", Type::Text(4)).with("part", nested(&part)).with("mass", F32);
    let parts = [values![1u8, 2u16], values![3u8, 4u16]];
    let custom = |type_name: &str, name: &str, bytes: Vec<u8>, json| Keyed {
        type_name: type_name.to_owned(),
        name: name.to_owned(),
        bytes,
        json,
    };
    let mut log = Log::new(START);
    log.format(&part);
    log.info(&custom("part_t", "frame", part.full_bytes(&parts[0]), part.data_json(&parts[0])));
    let two = parts.iter().flat_map(|part_of| part.full_bytes(part_of)).collect();
    let both = parts.iter().map(|part_of| part.data_json(part_of)).collect();
    log.info(&custom("part_t[2]", "wings", two, both));
    let row = values![Value::text(b"fmu", 4), Value::Struct(values![5u8, 6u16]), 0.5f32];
    log.info(&custom("board_t", "board", board.full_bytes(&row), board.data_json(&row)));
    log.format(&board);
    log.info(&Keyed::opaque("part_t", "too_short", &[1, 2]));
    log.info(&Keyed::opaque("nowhere_t", "undefined", &[1, 2, 3]));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.multi_info(false, &custom("part_t", "list", part.full_bytes(&parts[1]), part.data_json(&parts[1])));
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn info_in_data_section() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    log.info(&Keyed::text("late", "came in flight"));
    plain_rows(&mut log, &t, 3..5);
    log.info(&Keyed::scalar(&I32, "later", 7i32));
    plain_rows(&mut log, &t, 5..7);
    log.done()
}

fn info_repeated() -> Made {
    let mut log = Log::new(START);
    log.info(&Keyed::text("ver_sw", "first"));
    // Said once, at the first of two.
    log.note("info_repeated");
    log.info(&Keyed::text("ver_sw", "second one"));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.info(&Keyed::text("ver_sw", "last"));
    plain_rows(&mut log, &t, 3..5);
    log.done()
}

fn info_length_disagrees() -> Made {
    let longer = Keyed { type_name: "char[3]".to_owned(), ..Keyed::text("longer", "nine bytes") };
    let shorter = Keyed { type_name: "char[40]".to_owned(), ..Keyed::text("shorter", "short") };
    let mut log = Log::new(START);
    // Said once, at the first of four.
    log.note("value_length");
    log.info(&longer);
    log.info(&shorter);
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.multi_info(false, &longer);
    log.multi_info(true, &shorter_part());
    plain_rows(&mut log, &t, 5..8);
    log.done()
}

/// A part of the list `longer` that is shorter than its type says.
fn shorter_part() -> Keyed {
    Keyed {
        type_name: "char[3]".to_owned(),
        name: "longer".to_owned(),
        bytes: b"x".to_vec(),
        json: json!("x"),
    }
}

fn multi_info() -> Made {
    let mut log = Log::new(START);
    log.multi_info(false, &Keyed::text("perf_top_preflight", "abc"));
    log.multi_info(true, &Keyed::text("perf_top_preflight", "def"));
    log.multi_info(false, &Keyed::text("perf_top_preflight", "xyz"));
    log.multi_info(false, &Keyed::array("uint8_t[3]", "blob", &[0, 1, 2], json!([0, 1, 2])));
    log.multi_info(true, &Keyed::text("perf_top_preflight", "of xyz"));
    log.multi_info(true, &Keyed::array("uint8_t[2]", "blob", &[3, 4], json!([3, 4])));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.multi_info(false, &Keyed::text("boot_console_output", "NuttShell"));
    log.multi_info(true, &Keyed::text("boot_console_output", ""));
    log.multi_info(true, &Keyed::array("uint8_t[1]", "blob", &[5], json!([5])));
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn continued_without_first() -> Made {
    let mut log = Log::new(START);
    log.note("continued_without_first");
    log.multi_info(true, &Keyed::text("k", "lost its head"));
    log.multi_info(true, &Keyed::text("k", "goes on"));
    log.multi_info(false, &Keyed::text("k", "a new one"));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.done()
}

fn parameters() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.parameter(&Keyed::scalar(&I32, "COM_RC_IN_MODE", 3i32));
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 6.5f32));
    log.parameter(&Keyed::scalar(&I32, "COM_RC_IN_MODE", -1i32));
    log.parameter(&Keyed::scalar(&F32, "MPC_XY_VEL", 0.1f32));
    let t = log.subscribe(&plain(), 0, 0);
    // Before any row: the log time is the start's.
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 7.0f32));
    plain_rows(&mut log, &t, 1..4);
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 7.25f32));
    log.parameter(&Keyed::scalar(&I32, "NEW_ONE", 9i32));
    plain_rows(&mut log, &t, 4..6);
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 7.25f32));
    log.done()
}

fn parameter_of_other_types() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.parameter(&Keyed::scalar(&F32, "KP", 1.5f32));
    log.note("parameter_type");
    log.parameter(&Keyed::scalar(&F64, "KX", 2.5f64));
    log.note("parameter_type");
    log.parameter(&Keyed::scalar(&U8, "KB", 250u8));
    log.note("parameter_type");
    log.default_parameter(1, &Keyed::scalar(&F64, "KX", 2.0f64));
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..3);
    log.note("parameter_type");
    log.parameter(&Keyed::scalar(&F64, "KX", 3.5f64));
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn default_parameters() -> Made {
    let mut log = Log::without_flag_bits(1, START);
    // Bit 0 of the first byte: such messages occur.
    log.flag_bits([1, 0, 0, 0, 0, 0, 0, 0], [0; 8], [0; 3], &[]);
    log.format(&plain());
    log.default_parameter(1, &Keyed::scalar(&F32, "MC_ROLL_P", 6.5f32));
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 8.0f32));
    log.parameter(&Keyed::scalar(&I32, "SYS_AUTOSTART", 4001i32));
    log.parameter(&Keyed::scalar(&I32, "BAT_N_CELLS", 6i32));
    log.parameter(&Keyed::scalar(&I32, "AS_ALL", 1i32));
    log.default_parameter(1, &Keyed::scalar(&I32, "SYS_AUTOSTART", 0i32));
    log.default_parameter(2, &Keyed::scalar(&I32, "BAT_N_CELLS", 4i32));
    log.default_parameter(3, &Keyed::scalar(&I32, "COM_BOTH", 5i32));
    log.default_parameter(2, &Keyed::scalar(&F32, "MC_ROLL_P", 7.0f32));
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..3);
    log.default_parameter(1, &Keyed::scalar(&I32, "LATE", -2i32));
    plain_rows(&mut log, &t, 3..5);
    log.done()
}
