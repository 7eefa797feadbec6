//! Cases of logs as writers other than PX4 write them. The specification allows or does not forbid
//! these practices.

use super::prelude::*;

cases! {
    "info-keys-of-other-writers" [D35]
        "spaces and letters beyond ASCII in the names of infos and parameters: names all the same" =>
        Log::new().note("unusual_key").info("char[11] Build Date", "May 25 2022")
            .note("unusual_key").info("char[3] h\u{f6}he", "400").info("char[5] sys_name", "other")
            .note("unusual_key").parameter("int32_t max speed", 7).topic(PLAIN).rows(0..3)
            // Readers report the note once, because both messages belong to the same list.
            .note("unusual_key").part(false, "char[3] boot text", "one").part(true, "char[3] boot text", "two")
            .rows(3..6);
    "names-of-other-writers" [D36] "formats and fields with dots, spaces, brackets, letters beyond ASCII" => {
        let formats = [
            "a.b:uint64_t timestamp;float x-y;", "a b:uint64_t timestamp;float x[1];",
            "\u{6e29}\u{5ea6}:uint64_t timestamp;uint16_t[2] h\u{f6}he;", "t:uint64_t timestamp;h\u{f6}he e;",
        ];
        let name = |text: &'static str| text.split(':').next().expect("a name");
        Log::new().note("unusual_name").format("h\u{f6}he:float x.y;uint8_t n;")
            .each(formats, |log, text| log.note("unusual_name").format(text))
            .each((0..).zip(formats), |log, (id, text)| log.subscribe(name(text), 0, id))
            .each(0..3_u16, |log, i| {
                log.rows(i..i + 1).rows_of(1, i..i + 1).row(2, values![time(i), [i, 7]])
                    .row(3, values![time(i), values![f32::from(i), 9]])
            })
    };
    "formats-with-blanks" [D39] "blanks around names and fields, tabs and line ends, a NUL at the end of F and A" =>
        Log::new().note("extra_blanks").format_as(PLAIN, "t:uint64_t timestamp; float  x;")
            .note("extra_blanks").format_as("u:uint64_t timestamp;t[2] e;", " u : uint64_t timestamp;\r\n\tt[2]\te;\n")
            .note("extra_blanks").format_as("v:uint64_t timestamp;uint8_t n;", "v:uint64_t timestamp;uint8_t n;\0")
            .subscribe("t", 0, 0).note("extra_blanks").subscribe_as("u", "u\0", 0, 1)
            .note("extra_blanks").subscribe_as("v", "v ", 0, 2)
            .each(0..3_u16, |log, i| {
                let inner = || values![time(i), f32::from(i)];
                log.rows(i..i + 1).row(1, values![time(i), values![inner(), inner()]]).row(2, values![time(i), 7])
            });
    "names-case-sensitive" [D37] "T and t are two formats, X and x two fields, Key and key two infos" =>
        Log::new().format(PLAIN).format("T:uint64_t timestamp;uint8_t X;uint16_t x;").info("char[5] key", "lower")
            .info("char[5] Key", "upper").parameter("int32_t KP", 1).parameter("int32_t kp", 2).subscribe("t", 0, 0)
            .subscribe("T", 0, 1).rows(0..3).rows_with(1, 3..6, |i| values![time(i), 3, 300]);
    "writer-outside-px4" [D1 D6 D34 D35 U1]
        "no flag bits, no parameters, Unix clock, ids from 27800, keys with spaces, infos after data, emergencies" => {
        let start = 1_653_480_000_000_000;
        let at = |i: u16| start + 10_000 * u64::from(i);
        let row = |log: Log, topic: usize, i: u16| log.row(topic, values![at(i), f32::from(i)]);
        Log::starting(1, start).utc("clock_is_unix", 0).format(PLAIN).subscribe("t", 0, 27_800)
            .subscribe("t", 1, 27_801)
            .each(0..4, |log, i| row(row(log, 0, i), 1, i).text(b'0', at(i), "motor failure"))
            .note("unusual_key").info("char[11] Build Date", "May 25 2022").info("char[1] Firmware", "7")
            .each(4..7, |log, i| row(log, 0, i))
    };
}
