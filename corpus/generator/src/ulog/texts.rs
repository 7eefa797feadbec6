//! Cases about console lines with and without tags.

use super::prelude::*;

cases! {
    "texts-of-all-levels" [D25] "eight levels, and texts that are out of the order of time" =>
        plain().rows(0..3)
            .each((0..).zip(b'0'..=b'7'), |log, (i, level)| log.text(level, time(8 - i), "[ekf2] level check"))
            .rows(3..5);
    "texts-tagged" [D25] "tagged texts beside plain ones" =>
        plain().rows(0..2).tagged(b'4', 7, time(2), "from seven").tagged(b'6', 300, time(3), "from 300")
            .text(b'6', time(4), "plain").tagged(b'3', 0, time(5), "from zero")
            .tagged(b'7', u16::MAX, time(6), "from the last").rows(7..9);
    "texts-latin-1" [D25] "bytes that are not UTF-8" =>
        plain().rows(0..2).text(b'6', time(2), b"caf\xE9").tagged(b'6', 1, time(3), b"\xFF\xFE and \xC3")
            .text(b'6', time(4), "\u{4f60}\u{597d} caf\u{e9}").rows(5..7);
    "texts-level-as-number" [D25] "the level is 6 instead of the digit '6'" =>
        plain().rows(0..2).note("level_not_a_digit").text(6, time(2), "raw level 6").rows(3..5)
            .note("level_not_a_digit").tagged(0, 9, time(5), "raw level 0").text(b'6', time(6), "digit 6").rows(7..9);
    "texts-empty" [D25] "texts without a single letter" =>
        plain().rows(0..2).text(b'6', time(2), "").tagged(b'6', 2, time(3), "").rows(4..6);
    "texts-control-characters" [D25]
        "escape sequences, bells, line ends, direction marks and NUL: data, not commands" =>
        plain().rows(0..2).text(b'4', time(2), "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07")
            .text(b'4', time(3), "two\r\nlines\tand a tab\t").text(b'4', time(4), "before\0after\x7f")
            .text(b'4', time(5), "\u{202e}backwards\u{9b}31m").rows(6..8);
}
