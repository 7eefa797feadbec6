//! The file's own index, right and wrong, and timestamps that trouble it.

use super::kinds::obd_data;
use super::log::{Index, Log, Message, OBD};
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel(
        "index+empty-second",
        "an entry of an empty second names the next message",
        &["D13", "D28"],
        || gaps(Index::FromFirst),
    ),
    Case::vel("index+from-program-start", "seconds counted from the start of the program", &["D12"], || {
        gaps(Index::FromStart)
    }),
    Case::vel("index-absent", "a recorder that was killed leaves no entries", &["D28"], || gaps(Index::None)),
    Case::vel("index+spare-entries", "entries to spare name the end of the messages", &["D28"], spare),
    Case::vel("index+zero-entry", "an entry of 0 is unset", &["D13"], || {
        gaps(Index::Changed(
            |mut e| {
                e[1] = 0;
                e
            },
            true,
        ))
    }),
    Case::vel("index+negative-entry", "an entry of -1 is unset", &["D13"], || {
        gaps(Index::Changed(
            |mut e| {
                e[2] = -1;
                e
            },
            true,
        ))
    }),
    Case::vel("index+all-zeros", "room that was reserved and never filled", &["D13"], || {
        gaps(Index::Changed(|e| vec![0; e.len()], true))
    }),
    Case::vel("index+descending", "entries in the wrong order", &["D28"], || {
        gaps(Index::Changed(
            |mut e| {
                e.reverse();
                e
            },
            true,
        ))
    }),
    Case::vel("index+beyond-the-end", "an entry beyond the end of the file", &["D28"], || {
        gaps(Index::Changed(
            |mut e| {
                e[3] = 1 << 40;
                e
            },
            true,
        ))
    }),
    Case::vel("index+inside-a-message", "an entry into a message", &["D28"], || {
        gaps(Index::Changed(
            |mut e| {
                e[3] += 5;
                e
            },
            true,
        ))
    }),
    Case::vel(
        "index+count-too-small",
        "entries behind the count: the first message is found",
        &["D23"],
        count_small,
    ),
    Case::vel("index+count-huge", "a count of 32 GiB", &["D23", "D38"], count_huge),
    Case::vel(
        "index+count-of-the-limit",
        "an absurd count that a file could have",
        &["D23", "D38"],
        count_limit,
    ),
    Case::vel(
        "timestamps-falling",
        "timestamps that step back: the order of the file is kept",
        &["D14"],
        falling,
    ),
    Case::vel("timestamps-not-finite", "timestamps that are no numbers", &["D14"], not_finite),
    Case::vel("timestamp-out-of-range", "a timestamp of more than 292 years", &["D14", "D38"], out_of_range),
    Case::vel(
        "timestamp-huge-first",
        "a first timestamp to which a second more adds nothing",
        &["D14", "D38"],
        huge_first,
    ),
];

/// Messages in the seconds 0, 3 and 4 after the first.
fn gaps(index: Index) -> Made {
    let mut log = Log::new();
    log.index(index);
    for millis in [2100.0, 2900.0, 5150.0, 5250.0, 6200.0] {
        log.obd(millis, 3);
    }
    log.finish()
}

fn spare() -> Made {
    let mut log = Log::new();
    // Three entries: one for the only second, two to spare. Messages begin at 36 and end at 134.
    log.index(Index::Changed(|_| vec![36, 134, 134], false));
    log.drive(0.0, 2);
    log.finish()
}

/// Two entries, a count of one.
fn count_small() -> Made {
    let mut log = Log::new();
    log.index(Index::Claimed(1, vec![28, 28 + 49]));
    log.obd(0.0, 1);
    log.obd(1100.0, 2);
    log.obd(1200.0, 3);
    // The entry that counts names the first message, so the bytes before it belong to the index.
    log.finish()
}

fn count_huge() -> Made {
    let mut log = Log::new();
    log.index(Index::Claimed(0xFFFF_FFF0, vec![20]));
    log.drive(0.0, 3);
    log.finish()
}

fn count_limit() -> Made {
    let mut log = Log::new();
    log.index(Index::Claimed(4_000_000, vec![20]));
    log.drive(0.0, 3);
    log.finish()
}

fn falling() -> Made {
    let mut log = Log::new();
    for millis in [500.0, 400.0, 1600.0, 300.0, 2700.0] {
        log.obd(millis, 1);
    }
    log.finish()
}

fn not_finite() -> Made {
    let mut log = Log::new();
    log.obd(500.0, 1);
    for millis in [f64::NAN, f64::INFINITY] {
        log.note("timestamp_not_finite", log.at() + 13);
        log.put_obd(&Message::new(OBD, millis, obd_data(2, 1500, 12.5)), 2);
    }
    log.obd(600.0, 3);
    log.finish()
}

fn out_of_range() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    log.obd(500.0, 1);
    log.note("timestamp_out_of_range", log.at() + 13);
    log.put_obd(&Message::new(OBD, 1e300, obd_data(2, 1500, 12.5)), 2);
    log.obd(600.0, 3);
    log.finish()
}

fn huge_first() -> Made {
    let mut log = Log::new();
    log.index(Index::None);
    for millis in [1e300, -1e300] {
        log.note("timestamp_out_of_range", log.at() + 13);
        log.put_obd(&Message::new(OBD, millis, obd_data(2, 1500, 12.5)), 2);
    }
    log.obd(600.0, 3);
    log.finish()
}
