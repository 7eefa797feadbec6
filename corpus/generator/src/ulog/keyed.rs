//! Cases about information messages, multi information messages, parameters and their defaults.

use super::prelude::*;

cases! {
    "info-of-all-types" [D26]
        "numbers of several widths, texts, arrays, a type nobody knows, no value at all" =>
        Log::new().info("char[3] sys_name", "PX4").info("char[10] ver_hw", "PX4_FMU_V5").info("char[0] empty", "")
            .info("uint32_t ver_sw_release", 0x0110_00FF).info("int32_t time_ref_utc", -3600)
            .info("uint8_t small", 200).info("int8_t negative", -5).info("uint64_t big", u64::MAX)
            .info("int64_t big_negative", i64::MIN).info("float ratio", 0.5).info("double exact", 0.1)
            .info("uint8_t[4] bytes", [0xDE, 0xAD, 0, 1]).info("float[2] pair", [1.0, 2.0])
            .info("vendor_t custom", Value::opaque("vendor_t", b"\x01\x02abc")).topic(PLAIN).rows(0..3);
    "info-in-data-section" [D6 D26] "infos once data began" =>
        plain().rows(0..3).info("char[14] late", "came in flight").rows(3..5).info("int32_t later", 7).rows(5..7);
    "info-repeated" [D26] "the last info of a name wins" =>
        // Readers report the note once, for the first of two messages.
        Log::new().info("char[5] ver_sw", "first").note("info_repeated").info("char[10] ver_sw", "second one")
            .topic(PLAIN).rows(0..3).info("char[4] ver_sw", "last").rows(3..5);
    "info-length-disagrees" [D26] "the value is as long as the message says, not as [n] says" => {
        let text = |text: &str| Value::As(text.into(), text.into());
        // Readers report the note once, for the first of four messages.
        Log::new().note("value_length").info("char[3] longer", text("nine bytes"))
            .info("char[40] shorter", text("short")).topic(PLAIN).rows(0..5)
            .part(false, "char[3] longer", text("nine bytes")).part(true, "char[3] longer", text("x")).rows(5..8)
    };
    "info-of-custom-types" [D26]
        "values whose type is a format, an array of it, one defined later, and one of another size" => {
        let later = "board_t:char[4] name;part_t part;float mass;";
        let log = Log::new().format("part_t:uint8_t major;uint16_t minor;").info("part_t frame", values![1, 2])
            .info("part_t[2] wings", [values![1, 2], values![3, 4]]);
        let (board, row) = (log.shape_of(later), values!["fmu", values![5, 6], 0.5]);
        log.info("board_t board", Value::As(board.full(&row), board.data(&row))).format(later)
            .info("part_t too_short", Value::opaque("part_t", &[1, 2]))
            .info("nowhere_t undefined", Value::opaque("nowhere_t", &[1, 2, 3])).topic(PLAIN).rows(0..3)
            .part(false, "part_t list", values![3, 4]).rows(3..6)
    };
    "multi-info" [D26] "infos in parts: lists of lists, two keys mixed, in both sections" =>
        Log::new().part(false, "char[3] perf_top_preflight", "abc").part(true, "char[3] perf_top_preflight", "def")
            .part(false, "char[3] perf_top_preflight", "xyz").part(false, "uint8_t[3] blob", [0, 1, 2])
            .part(true, "char[6] perf_top_preflight", "of xyz").part(true, "uint8_t[2] blob", [3, 4])
            .topic(PLAIN).rows(0..3).part(false, "char[9] boot_console_output", "NuttShell")
            .part(true, "char[0] boot_console_output", "").part(true, "uint8_t[1] blob", [5]).rows(3..6);
    "multi-info+continued-without-first" [D26] "a continuation with nothing to continue begins a list" =>
        Log::new().note("continued_without_first").part(true, "char[13] k", "lost its head")
            .part(true, "char[7] k", "goes on").part(false, "char[9] k", "a new one").topic(PLAIN).rows(0..3);
    "parameters+changes" [D24] "first values, changes in flight, one set twice before data" =>
        Log::new().format(PLAIN).parameter("int32_t COM_RC_IN_MODE", 3).parameter("float MC_ROLL_P", 6.5)
            .parameter("int32_t COM_RC_IN_MODE", -1).parameter("float MPC_XY_VEL", 0.1).subscribe("t", 0, 0)
            // Before the first row, the log time is the start time.
            .parameter("float MC_ROLL_P", 7.0).rows(1..4).parameter("float MC_ROLL_P", 7.25)
            .parameter("int32_t NEW_ONE", 9).rows(4..6).parameter("float MC_ROLL_P", 7.25);
    "parameter-of-other-types" [D23] "types the text does not allow: value kept" =>
        Log::new().format(PLAIN).parameter("float KP", 1.5).note("parameter_type").parameter("double KX", 2.5)
            .note("parameter_type").parameter("uint8_t KB", 250).note("parameter_type").default(1, "double KX", 2.0)
            .subscribe("t", 0, 0).rows(0..3).note("parameter_type").parameter("double KX", 3.5).rows(3..6);
    "default-parameters" [D24] "defaults for all, for this setup, for both; never a value" =>
        // Bit 0 of the first byte announces messages with defaults.
        Log::starting(1, START).flag_bits([1, 0, 0, 0, 0, 0, 0, 0], [0; 8], b"").format(PLAIN)
            .default(1, "float MC_ROLL_P", 6.5).parameter("float MC_ROLL_P", 8.0)
            .parameter("int32_t SYS_AUTOSTART", 4001).parameter("int32_t BAT_N_CELLS", 6)
            .parameter("int32_t AS_ALL", 1).default(1, "int32_t SYS_AUTOSTART", 0)
            .default(2, "int32_t BAT_N_CELLS", 4).default(3, "int32_t COM_BOTH", 5)
            .default(2, "float MC_ROLL_P", 7.0).subscribe("t", 0, 0).rows(0..3).default(1, "int32_t LATE", -2)
            .rows(3..5);
}
