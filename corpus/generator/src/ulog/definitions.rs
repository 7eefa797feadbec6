//! Cases about the header, flag bits, formats, and unknown types of messages.

use super::prelude::*;

cases! {
    "one-topic" [D1] "the plainest log: flag bits, one format, infos, a parameter, one subscription, rows" =>
        Log::new().info("char[3] sys_name", "PX4").format(PLAIN).info("uint32_t ver_sw_release", 0x0110_00FF)
            .parameter("int32_t SYS_AUTOSTART", 4001).subscribe("t", 0, 0).rows(0..10);
    "no-flag-bits+version-0" [D1] "the oldest logs have neither flag bits nor a version" =>
        Log::starting(0, START).topic(PLAIN).rows(0..10);
    "version-2" [D2] "a later version is read, and named" =>
        Log::starting(2, START).note_at(7, "unknown_version").flag_bits([0; 8], [0; 8], b"").topic(PLAIN).rows(0..5);
    "long-flag-bits" [D3] "flag bits of 48 bytes: the 8 unknown ones are ignored" =>
        Log::starting(1, START).flag_bits([0; 8], [0; 8], b"\xC0\xFF\xEE\x00later").topic(PLAIN).rows(0..5);
    "unknown-compat-bits" [D5] "unknown compatible bits are ignored" =>
        Log::starting(1, START).note("undefined_compat_bits")
            .flag_bits([0x82, 0, 0, 0x10, 0, 0, 0, 0x80], [0; 8], b"").topic(PLAIN).rows(0..5);
    "unknown-incompat-bit-1-of-byte-0" [D5] "the bit beside the appended-data bit: refused" =>
        incompat([0b10, 0, 0, 0, 0, 0, 0, 0]);
    "unknown-incompat-bit-6-of-byte-7" [D5] "a bit of the last byte, beside appended data: refused" =>
        incompat([1, 0, 0, 0, 0, 0, 0, 0x40]);
    "header-only" [D31] "sixteen bytes and nothing else: a whole log without data" => Log::starting(1, START);
    "no-data-section" [D31] "definitions only" =>
        Log::new().format(PLAIN).info("char[3] sys_name", "PX4").parameter("float MC_ROLL_P", 6.5);
    "cut-in-file-header" [D31] "twelve of the sixteen bytes: nothing to read" =>
        refused(&header(1, START)[..12], ["ulog", "1"], "truncated", "header");
    "header-damaged" [D40] "the first byte is wrong: the start time is still there" =>
        Log::new().set(0, b"T").note_at(0, "damaged_header").topic(PLAIN).rows(0..5);
    "header-zeroed" [D40] "sixteen zero bytes and a log: the start time is unknown" =>
        Log::headless(&[0; 16], time(3)).flag_bits([0; 8], [0; 8], b"").topic(PLAIN).rows(3..8);
    "header-cut-at-its-start" [D40] "the first ten of its bytes are missing" =>
        Log::headless(&header(1, START)[10..], time(3)).flag_bits([0; 8], [0; 8], b"").topic(PLAIN).rows(3..8);
    "header-missing" [D40] "the file starts with a format" =>
        Log::headless(b"", time(3)).topic(PLAIN).rows(3..8);
    "text-before-header" [D40] "a line of console output in front of the log" =>
        Log::new().topic(PLAIN).rows(0..5).after(TEXT.to_vec()).note_at(TEXT.len(), "damaged_header")
            .lose_range("gap", 0..TEXT.len());
    "two-logs" [D41] "a log behind a log: its ids, formats and times are its own" =>
        Log::new().format(PLAIN).format("u:uint64_t timestamp;uint8_t n;").subscribe("t", 0, 0)
            .subscribe("u", 0, 1).each(0..5, |log, i| log.rows(i..i + 1).row(1, values![time(i), 7]))
            .second_header(START).flag_bits([0; 8], [0; 8], b"").format(PLAIN).subscribe("t", 0, 1)
            .rows_of(2, 0..5);
    "clock-restarts" [D42] "the times fall back to those of a new boot, and stay there" =>
        plain().rows_with(0, 0..30_u16, |i| values![100_000_000 + time(i), f32::from(i)])
            .note("clock_restarts").note("timestamps_fall").rows(0..20);
    "type-before-definition" [D7] "a nested type whose format comes after its use" =>
        Log::new().format("outer:uint64_t timestamp;inner e;float x;").format("inner:float v;uint8_t k;")
            .subscribe("outer", 0, 0).rows_with(0, 0..3, |i| values![time(i), values![0.5, 7], f32::from(i)]);
    "bad-types-unused" [D7] "circular, self-containing and undefined types that nobody subscribes to" =>
        Log::new().format("a:uint64_t timestamp;b b;").format("b:a a;").format("own:own again;")
            .format("g:uint64_t timestamp;ghost g;").topic(PLAIN).rows(0..5);
    "no-last-semicolon" [D7] "a format text without its last semicolon" =>
        Log::new().topic("t:uint64_t timestamp;float x").rows(0..5);
    "name-with-slash-and-dash" [D7] "a message name with / and -" =>
        Log::new().topic("ns/t-1:uint64_t timestamp;float x;").rows(0..5);
    "field-name-twice" [D7] "the second field x is shown as x#2" =>
        Log::new().topic("t:uint64_t timestamp;float x;uint16_t x;")
            .rows_with(0, 0..3, |i| values![time(i), f32::from(i), 100 + i]);
    "format-repeated" [D8] "the same format twice" =>
        Log::new().format(PLAIN).note("format_repeated").format(PLAIN).subscribe("t", 0, 0).rows(0..5);
    "format-redefined" [D8] "another format under the same name, before the subscription: the later one counts" =>
        Log::new().format(PLAIN).note("format_redefined").format(LATER).subscribe("t", 0, 0)
            .rows_with(0, 0..5, |i| values![time(i), 500 + i]);
    "format-redefined+after-subscription" [D6 D8 D19]
        "the older subscription keeps its format, the new one has the new format" =>
        plain().rows(0..3).note("format_in_data_section").note("format_redefined").format(LATER).rows(3..5)
            .subscribe("t", 0, 1).each(5..9, |log, i| log.rows(i..i + 1).row(1, values![time(i), 500 + i]));
    "format-in-data-section" [D6] "a format after data began, for a topic that starts late" =>
        plain().rows(0..4).note("format_in_data_section").format("late:uint64_t timestamp;uint8_t n;").rows(4..6)
            .subscribe("late", 0, 1).each(6..9, |log, i| log.row(1, values![time(i), 9]).rows(i..i + 1));
    "unknown-messages" [D4] "kinds nobody knows: in both sections, of size 0, and twenty in a row" =>
        Log::new().unknown(b'X', b"before the formats").format(PLAIN).unknown(b'y', b"").subscribe("t", 0, 0)
            .rows(0..3).unknown(b'X', b"").rows(3..6)
            .each(0..20, |log, size| log.unknown(b'Z', &[0xEE; 20][..size])).rows(6..10);
    "unknown-messages+hundreds-in-a-row" [D4]
        "a hundred and fifty between two rows, again and again: however many there are, they are passed" =>
        plain()
            .each(0..4, |log, i| {
                log.rows(i..i + 1).each(0..150, |log, size| log.unknown(b'X', &[0xEE; 2][..size % 3]))
            })
            .rows(4..6);
    "unknown-messages+signs" [D4] "kinds whose letter is a digit or a sign, ten in a row" =>
        plain()
            .each((0..).zip(*b"~1#"), |log, (i, kind)| {
                log.rows(3 * i..3 * i + 3).each(0..10, |log, _| log.unknown(kind, b"wxyz"))
            })
            .rows(9..12);
}

/// Console output that another program wrote into the log file.
const TEXT: &[u8] = b"INFO  [blackbox] starting\n";

/// Another format that has the name of the plain topic.
const LATER: &str = "t:uint64_t timestamp;uint16_t y;";

fn incompat(bits: [u8; 8]) -> Made {
    let log = Log::starting(1, START).flag_bits([0; 8], bits, b"").topic(PLAIN).rows(0..5);
    refused(log.bytes, ["ulog", "1"], "unsupported", "incompat")
}
