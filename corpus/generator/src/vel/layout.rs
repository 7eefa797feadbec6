//! Cases about the three ways in which a log may end, cut files, bytes after an end mark, the index, and
//! timestamps that affect the index.

use super::prelude::*;

cases! {
    "end-of-file" [D5] "the last message ends with the file: it is one" => Log::new().drive(0.0, 3);
    "end-mark" [D15] "a size of 0xFFFFFFFF ends the log" => Log::new().drive(0.0, 3).terminate();
    "end-mark+tail" [D15] "whole messages behind the end mark are left out" =>
        Log::new().drive(0.0, 3).note("messages_behind_end").terminate().unseen(&fourth()).unseen(&fourth());
    "end-mark+noise" [D15] "bytes behind the end mark that hold no message" => behind_end(&[0xC3; 80]);
    "end-mark+0xff" [D15] "more bytes 0xFF than an end mark has" => behind_end(&[0xFF; 4092]);
    "end-mark+inside" [D15 D10]
        "a size overwritten with an end mark: messages, a short one and two more end marks behind it" => {
        let log = Log::new().drive(0.0, 3).note("messages_behind_end")
            .spoilt(&Message::obd(350.0, 9), |bytes| bytes[..4].fill(0xFF)).unseen(&fourth());
        let short = log.frame(&Message { data: vec![7; 20], ..Message::obd(450.0, 0) });
        log.lose("bad_payload", short).unseen(&fourth()).terminate().unseen(&fourth()).terminate().note("tail")
            .lay([0; 9])
    };
    "no-messages" [D12] "a header and an empty index" => empty();
    "no-messages+end-mark" [D15] "the same with an end mark" => empty().terminate();
    "cut-in-data" [D6] "the file ends inside a message's data" => Log::new().drive(0.0, 3).cut(&fourth(), 5);
    "cut-in-header" [D6] "the file ends inside a message's header" =>
        Log::new().drive(0.0, 3).cut(&fourth(), 40);
    "cut-in-size" [D6] "the file ends inside a message's size" => Log::new().drive(0.0, 3).cut(&fourth(), 47);
    "cut-in-only-message" [D6] "the only message of the log is cut" => empty().cut(&fourth(), 5);
    "cut-in-file-header" [D6] "nothing of the log is there" =>
        refused(b"\xa4VEL\x01\x00", ["vel", ""], "truncated", "byte 6");
    "cut-in-index" [D6] "nothing of the log is there" =>
        refused(b"\xa4VEL\x01\x00\x01\x00\x02\x00\x00\x00\x1c\x00", ["vel", ""], "truncated", "byte 14");
    "index+empty-second" [D13 D28] "an entry of an empty second names the next message" => gaps(Log::new());
    "index+from-program-start" [D12] "seconds counted from the start of the program" =>
        gaps(Log::new().with(|log| log.own.from_start = true));
    "index-absent" [D28] "a recorder that was killed leaves no entries" => gaps(Log::new().no_index());
    "index+spare-entries" [D28] "entries to spare name the end of the messages" =>
        // The index has an entry for the only second and two spare entries. The messages start at
        // the offset 36 and end at 134.
        Log::new().index(false, |entries| *entries = vec![36, 134, 134]).drive(0.0, 2);
    "index+zero-entry" [D13] "an entry of 0 is unset" => changed(|entries| entries[1] = 0);
    "index+negative-entry" [D13] "an entry of -1 is unset" => changed(|entries| entries[2] = -1);
    "index+all-zeros" [D13] "room that was reserved and never filled" => changed(|entries| entries.fill(0));
    "index+descending" [D28] "entries in the wrong order" => changed(|entries| entries.reverse());
    "index+beyond-the-end" [D28] "an entry beyond the end of the file" =>
        changed(|entries| entries[3] = 1 << 40);
    "index+inside-a-message" [D28] "an entry into a message" => changed(|entries| entries[3] += 5);
    "index+count-too-small" [D23] "entries behind the count: the first message is found" =>
        // The index has two entries, but a count of one. The first entry has the offset of the
        // first message, so readers take all bytes before this offset as part of the index.
        Log::new().index(true, |entries| *entries = vec![28, 28 + 49]).with(|log| log.own.claimed = Some(1))
            .obd(0.0, 1).obd(1100.0, 2).obd(1200.0, 3);
    "index+count-huge" [D23 D38] "a count of 32 GiB" =>
        Log::new().index(true, |entries| *entries = vec![20])
            .with(|log| log.own.claimed = Some(0xFFFF_FFF0)).drive(0.0, 3);
    "index+count-of-the-limit" [D23 D38] "an absurd count that a file could have" =>
        Log::new().index(true, |entries| *entries = vec![20])
            .with(|log| log.own.claimed = Some(4_000_000)).drive(0.0, 3);
    "timestamps-falling" [D14] "timestamps that step back: the order of the file is kept" =>
        Log::new().each([500.0, 400.0, 1600.0, 300.0, 2700.0], |log, millis| log.obd(millis, 1));
    "timestamp-of-another-clock" [D14] "one timestamp two years before 20 others: the data is what the 20 have" =>
        Log::new().each(0..10, |log, i| log.obd(100.0 * f64::from(i), i)).note("stale_times").obd(-63_072_000_000.0, 9)
            .each(10..20, |log, i| log.obd(100.0 * f64::from(i), i)).data_between(0, 1_900_000_000);
    "timestamps-not-finite" [D14] "timestamps that are no numbers" =>
        Log::new().obd(500.0, 1)
            .each([f64::NAN, f64::INFINITY], |log, millis| odd(log, "timestamp_not_finite", millis)).obd(600.0, 3);
    "timestamp-out-of-range" [D14 D38] "a timestamp of more than 292 years" =>
        odd(Log::new().no_index().obd(500.0, 1).note("stale_times"), "timestamp_out_of_range", 1e300)
            .obd(600.0, 3).data_between(500_000_000, 600_000_000);
    "timestamp-huge-first" [D14 D38] "a first timestamp to which a second more adds nothing" =>
        Log::new().no_index()
            .each([1e300, -1e300], |log, millis| odd(log, "timestamp_out_of_range", millis)).obd(600.0, 3);
}

/// Returns a message of 49 bytes that follows three others.
fn fourth() -> Message {
    Message::obd(400.0, 4)
}

fn empty() -> Log {
    Log::new().no_index().assumed("size_rule", "exclusive")
}

fn behind_end(bytes: &[u8]) -> Log {
    Log::new().drive(0.0, 3).terminate().note("tail").lay(bytes)
}

/// Adds messages 0, 3 and 4 seconds after the first message.
fn gaps(log: Log) -> Log {
    log.each([2100.0, 2900.0, 5150.0, 5250.0, 6200.0], |log, millis| log.obd(millis, 3))
}

/// Returns the log of [`gaps`] with a changed index, which readers must rebuild.
fn changed(change: fn(&mut Vec<i64>)) -> Log {
    gaps(Log::new().index(true, change))
}

/// Adds a message with this timestamp, and expects a note about the offset of the timestamp.
fn odd(log: Log, code: &'static str, millis: f64) -> Log {
    let at = log.at() + 13;
    log.note_at(at, code).put_obd(&Message::obd(millis, 2), 2)
}
