//! The file's own index, right and wrong, and timestamps that affect it.

use super::log::{Index, Log, Message};
use crate::cases;

cases! {
    "index+empty-second" [D13 D28] "an entry of an empty second names the next message" => gaps(Index::FromFirst);
    "index+from-program-start" [D12] "seconds counted from the start of the program" => gaps(Index::FromStart);
    "index-absent" [D28] "a recorder that was killed leaves no entries" => gaps(Index::None);
    "index+spare-entries" [D28] "entries to spare name the end of the messages" =>
        // Three entries: one for the only second, two to spare. Messages start at 36 and end at
        // 134.
        Log::new().index(Index::Changed(|entries| *entries = vec![36, 134, 134], false)).drive(0.0, 2);
    "index+zero-entry" [D13] "an entry of 0 is unset" => changed(|entries| entries[1] = 0);
    "index+negative-entry" [D13] "an entry of -1 is unset" => changed(|entries| entries[2] = -1);
    "index+all-zeros" [D13] "room that was reserved and never filled" => changed(|entries| entries.fill(0));
    "index+descending" [D28] "entries in the wrong order" => changed(|entries| entries.reverse());
    "index+beyond-the-end" [D28] "an entry beyond the end of the file" => changed(|entries| entries[3] = 1 << 40);
    "index+inside-a-message" [D28] "an entry into a message" => changed(|entries| entries[3] += 5);
    "index+count-too-small" [D23] "entries behind the count: the first message is found" =>
        // Two entries, a count of one. The counted entry names the first message, so the bytes
        // before it belong to the index.
        Log::new().index(Index::Claimed(1, vec![28, 28 + 49])).obd(0.0, 1).obd(1100.0, 2).obd(1200.0, 3);
    "index+count-huge" [D23 D38] "a count of 32 GiB" =>
        Log::new().index(Index::Claimed(0xFFFF_FFF0, vec![20])).drive(0.0, 3);
    "index+count-of-the-limit" [D23 D38] "an absurd count that a file could have" =>
        Log::new().index(Index::Claimed(4_000_000, vec![20])).drive(0.0, 3);
    "timestamps-falling" [D14] "timestamps that step back: the order of the file is kept" =>
        Log::new().each([500.0, 400.0, 1600.0, 300.0, 2700.0], |log, millis| log.obd(millis, 1));
    "timestamp-of-another-clock" [D14] "one timestamp two years before 20 others: the data is what the 20 have" =>
        Log::new().each(0..10, |log, i| log.obd(100.0 * f64::from(i), i)).note("stale_times").obd(-63_072_000_000.0, 9)
            .each(10..20, |log, i| log.obd(100.0 * f64::from(i), i)).data_between(0, 1_900_000_000);
    "timestamps-not-finite" [D14] "timestamps that are no numbers" =>
        Log::new().obd(500.0, 1)
            .each([f64::NAN, f64::INFINITY], |log, millis| odd(log, "timestamp_not_finite", millis)).obd(600.0, 3);
    "timestamp-out-of-range" [D14 D38] "a timestamp of more than 292 years" =>
        odd(Log::new().index(Index::None).obd(500.0, 1).note("stale_times"), "timestamp_out_of_range", 1e300)
            .obd(600.0, 3).data_between(500_000_000, 600_000_000);
    "timestamp-huge-first" [D14 D38] "a first timestamp to which a second more adds nothing" =>
        Log::new().index(Index::None)
            .each([1e300, -1e300], |log, millis| odd(log, "timestamp_out_of_range", millis)).obd(600.0, 3);
}

/// Returns a log with messages in the seconds 0, 3 and 4 after the first.
fn gaps(index: Index) -> Log {
    Log::new().index(index).each([2100.0, 2900.0, 5150.0, 5250.0, 6200.0], |log, millis| log.obd(millis, 3))
}

/// Returns that log with a changed index, which a reader must rebuild.
fn changed(change: fn(&mut Vec<i64>)) -> Log {
    gaps(Index::Changed(change, true))
}

/// Adds a message with this timestamp and a note where it is stored.
fn odd(log: Log, code: &'static str, millis: f64) -> Log {
    let at = log.at() + 13;
    log.note_at(at, code).put_obd(&Message::obd(millis, 2), 2)
}
