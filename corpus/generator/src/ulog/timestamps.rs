//! Cases about the position, width and order of timestamps.

use super::prelude::*;

cases! {
    "timestamp-out-of-range" [D14]
        "two times past the year 2262, which nanoseconds in 64 bits cannot hold: rows without a time" =>
        plain().rows(0..3).note("timestamp_out_of_range")
            .each([u64::MAX, 1 << 63], |log, us| log.row_at(0, None, values![us, 0.5])).rows(3..6);
    "timestamp-not-first" [D14] "the time is a field in the middle" =>
        Log::new().topic("t:float x;uint8_t k;uint64_t timestamp;uint16_t n;")
            .rows_with(0, 0..4, |i| values![f32::from(i), 6, time(i), i]);
    "timestamps-zero+equal+falling" [D14] "such times are data, and rows stay in file order" =>
        plain().row(0, values![time(0), 0.0])
            // Readers report the note once, for the first of four rows. The time 0 is also a valid
            // time.
            .note("timestamps_fall")
            .rows_with(0, (1_u16..).zip([0, time(3), time(3), time(1), 1, time(2), 0]), |(i, us)| {
                values![us, f32::from(i)]
            })
            // The dropout gets the log time, which is that of the third row.
            .dropout(4);
    "timestamps-stale" [D14]
        "one time 20 minutes behind all others, and a topic that is stuck before the log: the data ends where the others \
         do, and a dropout is where its gap is" => {
        const BEGIN: u64 = 30_000_000;
        let at = |i: u16| BEGIN + 10_000 * u64::from(i);
        Log::new_at(BEGIN).format(PLAIN)
            .format("stuck:uint64_t timestamp;uint8_t n;").format("mission:uint64_t timestamp;uint8_t n;")
            .subscribe("t", 0, 0).subscribe("stuck", 0, 1).subscribe("mission", 0, 2).note("stale_times")
            .each(0..60, |log, i| {
                log.row(1, values![2_069_758, u8::from(i % 2 == 0)]).row(0, values![at(i), f32::from(i)])
            })
            .row(2, values![at(59), 1]).note("stale_times")
            .row_at(2, Some(1_200_000_000), values![1_200_000_000, 2])
            .expect(json!({"end_ns": "1200000000000"})).data_between(30_000_000_000, 31_190_000_000)
            // Both get the log time, which the row before does not change.
            .dropout(30).parameter("float P", 1.5).rows_with(0, 62..120, |i| values![at(i), f32::from(i)])
            .note("timestamps_fall").row(2, values![at(119), 3])
    };
    "gaps+dropout" [D14]
        "three gaps of 110 ms: of one topic alone, of both topics, and of one topic with a dropout. Only the last two are \
         records that are missing" => {
        let lacks_first = |i: u16| (20..30).contains(&i) || (60..70).contains(&i) || (100..110).contains(&i);
        Log::new().format(PLAIN).format("u:uint64_t timestamp;float x;").subscribe("t", 0, 0).subscribe("u", 0, 1)
            .each(0..150_u16, |log, i| {
                log.when(i == 100, |log| log.dropout(100)).when(!lacks_first(i), |log| log.rows(i..i + 1))
                    .when(!(60..70).contains(&i), |log| log.rows_of(1, i..i + 1))
            })
    };
    "timestamp-sample" [D14] "a second time field is an ordinary one" =>
        Log::new().topic("t:uint64_t timestamp;uint64_t timestamp_sample;float x;")
            .rows_with(0, 0..3, |i| values![time(i), time(i) - 700, f32::from(i)]);
    "nested-timestamp" [D14] "only the top level's timestamp is the row's time" =>
        Log::new().format(WITH_TIME).topic("t:e e;uint64_t timestamp;float x;")
            .rows_with(0, 0..3, |i| values![values![5, 1.0], time(i), f32::from(i)]);
    "no-timestamp" [D15] "rows without time are kept" =>
        Log::new().topic("t:float x;uint16_t k;").note("no_timestamp")
            .rows_with(0, 0..5_u16, |i| values![f32::from(i), i]);
    "no-timestamp+start-0" [D15] "rows without time in a log that starts at 0" =>
        Log::new_at(0).topic("t:float x;uint16_t k;").note("no_timestamp")
            .rows_with(0, 0..5_u16, |i| values![f32::from(i), i]);
    "no-timestamp+nested-timestamp" [D14 D15] "a nested timestamp gives the row no time" =>
        Log::new().format(WITH_TIME).topic("t:e e;").note("no_timestamp")
            .rows_with(0, 0..3, |i| values![values![time(i), 1.0]]);
    "timestamp-u8-ms" [D16] "times of 8 bits count milliseconds and wrap four times a second" =>
        Log::new().topic("n:uint8_t timestamp;float x;").note("narrow_timestamp")
            // The rows are 100 ms apart, which is less than half of the 256 ms after which the
            // counter restarts.
            .each((1000_u64..).step_by(100).zip(0..12_u16), |log, (ms, i)| {
                log.row_at(0, Some(ms * 1000), values![ms & 0xFF, f32::from(i)])
            });
    "timestamp-u16" [D16] "times of 16 bits wrap every 65 ms" => narrow().each(0..12, |log, i| low(log, START, i));
    "timestamp-u16+dropout" [D16] "a dropout of one second lies between two rows" =>
        // Together, the two dropouts are as long as the missing second.
        narrow().each(0..5, |log, i| low(log, START, i)).dropout(600).dropout(400)
            .each(5..10, |log, i| low(log, START + 1_000_000, i));
    "timestamp-u16+quiet-topic" [D16] "rows a second apart are placed by the times of another topic" => {
        let log = Log::new().format(PLAIN).topic(NARROW).subscribe("t", 0, 1);
        let third = log.at() + 3 * 17;
        log.note_at(third, "narrow_timestamp")
            .each(0..9_u16, |log, i| {
                let us = START + 300_000 * u64::from(i);
                // Each row is 2 ms after a row of the other topic, and 0.9 s after the previous row
                // of its own topic.
                let late = us + 2_000;
                log.row(1, values![us, f32::from(i)]).when(i % 3 == 2, |log| {
                    log.row_at(0, Some(late), values![late & 0xFFFF, f32::from(i)])
                })
            })
            .rows_of(1, 300..301)
    };
    "timestamp-u16-out-of-range" [D14 D16] "narrow times that go on past the year 2262: rows without a time" => {
        const LAST: u64 = i64::MAX as u64 / 1000;
        let start = LAST - 30_000;
        let late = |i: u16| values![(start + 20_000 * u64::from(i)) & 0xFFFF, f32::from(i)];
        Log::new_at(start).utc("clock_is_unix", 0).topic(NARROW)
            .note("narrow_timestamp").each(0..2, |log, i| low(log, start, i))
            .note("timestamp_out_of_range").each(2..4_u16, |log, i| log.late_row(0, start + 20_000, late(i)))
    };
    "timestamp-u32" [D16] "times of 32 bits wrap after 71 minutes" => {
        let start = (1 << 32) - 2_000_000;
        let us = |i: u16| start + 500_000 * u64::from(i);
        Log::new_at(start).topic("n:uint32_t timestamp;float x;").note("narrow_timestamp")
            .each(0..8, |log, i| log.row_at(0, Some(us(i)), values![us(i) & 0xFFFF_FFFF, f32::from(i)]))
    };
}

const WITH_TIME: &str = "e:uint64_t timestamp;float v;";
const NARROW: &str = "n:uint16_t timestamp;float x;";

/// Returns a log with a topic whose times have 16 bits.
fn narrow() -> Log {
    Log::new().topic(NARROW).note("narrow_timestamp")
}

/// Adds row `i` of the topic with 16-bit times. The rows start at `from` and are 20 ms apart. Only
/// the low 16 bits of the time are stored.
fn low(log: Log, from: u64, i: u16) -> Log {
    let us = from + 20_000 * u64::from(i);
    log.row_at(0, Some(us), values![us & 0xFFFF, f32::from(i)])
}
