//! Logged texts, tagged or not.

use super::{plain_log, plain_rows, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "texts-of-all-levels",
        "eight levels, and texts that are out of the order of time",
        &["D25"],
        all_levels,
    ),
    Case::ulog("texts-tagged", "tagged texts beside plain ones", &["D25"], tagged),
    Case::ulog("texts-latin-1", "bytes that are not UTF-8", &["D25"], latin_1),
    Case::ulog("texts-level-as-number", "the level is 6 instead of the digit '6'", &["D25"], level_as_number),
    Case::ulog("texts-empty", "texts without a single letter", &["D25"], empty),
    Case::ulog(
        "texts-control-characters",
        "escape sequences, bells, line ends, direction marks and NUL: data, not commands",
        &["D25"],
        control_characters,
    ),
];

fn all_levels() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    for (i, level) in (0u16..).zip(b'0'..=b'7') {
        log.text(level, time(8 - i), b"[ekf2] level check");
    }
    plain_rows(&mut log, &t, 3..5);
    log.done()
}

fn tagged() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..2);
    log.tagged(b'4', 7, time(2), b"from seven");
    log.tagged(b'6', 300, time(3), b"from 300");
    log.text(b'6', time(4), b"plain");
    log.tagged(b'3', 0, time(5), b"from zero");
    log.tagged(b'7', u16::MAX, time(6), b"from the last");
    plain_rows(&mut log, &t, 7..9);
    log.done()
}

fn latin_1() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..2);
    log.text(b'6', time(2), b"caf\xE9");
    log.tagged(b'6', 1, time(3), b"\xFF\xFE and \xC3");
    log.text(b'6', time(4), "\u{4f60}\u{597d} caf\u{e9}".as_bytes());
    plain_rows(&mut log, &t, 5..7);
    log.done()
}

fn level_as_number() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..2);
    log.note("level_not_a_digit");
    log.text(6, time(2), b"raw level 6");
    plain_rows(&mut log, &t, 3..5);
    log.note("level_not_a_digit");
    log.tagged(0, 9, time(5), b"raw level 0");
    log.text(b'6', time(6), b"digit 6");
    plain_rows(&mut log, &t, 7..9);
    log.done()
}

fn empty() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..2);
    log.text(b'6', time(2), b"");
    log.tagged(b'6', 2, time(3), b"");
    plain_rows(&mut log, &t, 4..6);
    log.done()
}

fn control_characters() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..2);
    log.text(b'4', time(2), b"\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07");
    log.text(b'4', time(3), b"two\r\nlines\tand a tab\t");
    log.text(b'4', time(4), b"before\0after\x7f");
    log.text(b'4', time(5), "\u{202e}backwards\u{9b}31m".as_bytes());
    plain_rows(&mut log, &t, 6..8);
    log.done()
}
