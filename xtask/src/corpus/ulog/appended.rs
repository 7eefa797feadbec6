//! Data appended after the log had ended, often in the middle of a message.

use super::log::{Keyed, Log, Subscribed};
use super::{START, plain, plain_row, plain_rows, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog("appended", "one appended section after a clean end", &["D28"], one_section),
    Case::ulog(
        "appended-three-sections",
        "all three offsets used, the last cut like the log itself",
        &["D28"],
        three_sections,
    ),
    Case::ulog(
        "appended+cut-in-payload-before",
        "the log ended inside a row: nothing is joined, subscriptions hold on",
        &["D28", "D31"],
        after_cut_in_payload,
    ),
    Case::ulog(
        "appended+cut-in-header-before",
        "the log ended after two bytes of a header",
        &["D28", "D31"],
        after_cut_in_header,
    ),
    Case::ulog(
        "appended-bit-without-offset",
        "the bit is set but no offset is",
        &["D29"],
        bit_without_offset,
    ),
    Case::ulog(
        "appended-offset-without-bit",
        "an offset where messages begin is used though the bit is not set",
        &["D29"],
        offset_without_bit,
    ),
    Case::ulog(
        "appended-offset-past-the-end",
        "an offset behind the end of the file is ignored",
        &["D29"],
        offset_past_the_end,
    ),
    Case::ulog(
        "appended-offset-inside-a-row",
        "an offset into a sound message is ignored",
        &["D29"],
        offset_inside_a_row,
    ),
    Case::ulog(
        "appended-offsets-not-ascending",
        "the second offset lies before the first, in a sound message: only the first is used",
        &["D29"],
        offsets_not_ascending,
    ),
];

/// A log whose flag bits announce appended data, with the plain topic and a few rows.
fn announced() -> (Log, Subscribed) {
    let mut log = Log::new(START);
    log.set_appended_bit();
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    (log, t)
}

fn one_section() -> Made {
    let (mut log, t) = announced();
    log.append_here();
    let crash = Keyed::text("hardfault_plain", "pc: 0x080a1b2c");
    log.multi_info(false, &crash);
    log.text(b'0', time(5), b"hard fault");
    plain_rows(&mut log, &t, 5..8);
    log.done()
}

fn three_sections() -> Made {
    let (mut log, t) = announced();
    for section in 0..3u16 {
        let cut = t.message(&plain_row(5 + section));
        log.lose("cut", &cut[..6 + usize::from(section)]);
        log.append_here();
        log.text(b'2', time(5 + section), b"appended");
        if section == 1 {
            // Each section begins before the last row of the one before it.
            log.note("timestamps_fall");
        }
        plain_rows(&mut log, &t, 6 + section..9 + section);
    }
    log.done()
}

fn after_cut_in_payload() -> Made {
    let (mut log, t) = announced();
    log.lose("cut", &t.message(&plain_row(5))[..11]);
    log.append_here();
    log.text(b'3', time(6), b"crash");
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn after_cut_in_header() -> Made {
    let (mut log, t) = announced();
    log.lose("cut", &t.message(&plain_row(5))[..2]);
    log.append_here();
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn bit_without_offset() -> Made {
    let (mut log, t) = announced();
    log.note_at(16, "appended_flag_mismatch");
    plain_rows(&mut log, &t, 5..8);
    log.done()
}

fn offset_without_bit() -> Made {
    let mut log = Log::new(START);
    log.note_at(16, "appended_flag_mismatch");
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.lose("cut", &t.message(&plain_row(5))[..11]);
    log.append_here();
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn offset_past_the_end() -> Made {
    let (mut log, t) = announced();
    log.note_at(16, "appended_offset_ignored");
    plain_rows(&mut log, &t, 5..8);
    log.set_appended_offset(0, 1 << 40);
    log.done()
}

fn offset_inside_a_row() -> Made {
    let (mut log, t) = announced();
    log.note_at(16, "appended_offset_ignored");
    log.set_appended_offset(0, log.at() + 7);
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

fn offsets_not_ascending() -> Made {
    let (mut log, t) = announced();
    log.note_at(16, "appended_offset_ignored");
    let inside = log.at() - 7;
    log.lose("cut", &t.message(&plain_row(5))[..11]);
    log.append_here();
    log.set_appended_offset(1, inside);
    plain_rows(&mut log, &t, 6..11);
    log.done()
}
