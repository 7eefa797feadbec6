//! Versions, comments, lengths of headers.

use super::super::expected::refused;
use super::super::{Case, Made};
use super::log::Log;
use super::{plain, single};

pub(super) const CASES: &[Case] = &[
    Case::rld("v4", "what current loggers write", &["D1", "D2", "D4", "D20"], || plain().blocks(3).made()),
    Case::rld("v3", "the same layout, links from 0", &["D1", "D2"], || of_version(3).made()),
    Case::rld("v2", "links count from 1, a comment without NUL", &["D1", "D2", "D4"], || {
        let mut log = of_version(2);
        log.comment = b"no NUL in here at all...".to_vec();
        log.made()
    }),
    Case::rld("v1", "the other magic, a comment of 17 bytes, data at an odd offset", &["D1", "D2", "D5"], v1),
    Case::rld("comment-empty", "four zero bytes are an empty comment", &["D4"], || {
        with_comment(&[0; 4]).made()
    }),
    Case::rld("comment-none", "no comment at all", &["D4"], || with_comment(b"").made()),
    Case::rld("comment-text-behind-nul", "what is behind the first NUL is kept, not shown", &["D4"], || {
        with_comment(b"shown\0hidden").made()
    }),
    Case::rld("comment-without-nul", "version 4 ends a comment with NUL; here it does not", &["D4"], || {
        with_comment(b"1234").note("comment_without_nul", 56).made()
    }),
    Case::rld("comment-not-ascii", "bytes that are no UTF-8", &["D4"], || {
        with_comment(b"\xff\xfe\x80\0").note("comment_not_ascii", 56).made()
    }),
    Case::rld("comment-utf8", "UTF-8 is shown", &["D4"], || {
        with_comment("5 °C x\0".as_bytes()).note("comment_not_ascii", 56).made()
    }),
    Case::rld("comment-unaligned", "a comment of three bytes: every value at an odd offset", &["D5"], || {
        with_comment(b"ab\0").note("unaligned_header", 6).made()
    }),
    Case::rld("comment-long", "a comment of 8 kB", &["D4"], || {
        let mut text = b"all work and no play ".repeat(400);
        text.resize(8404, 0);
        with_comment(&text).made()
    }),
    Case::rld("header-length-wrong", "a header length that contradicts its parts", &["D6"], || {
        let mut log = plain().blocks(2);
        log.header_length = Some(300);
        log.note("header_length", 6).made()
    }),
    Case::rld("comment-length-wrong", "a comment length that contradicts the header's", &["D6"], || {
        let mut log = plain().blocks(2);
        log.comment_length = Some(1_000_000);
        log.note("header_length", 0x30).made()
    }),
    Case::rld(
        "comment-excess",
        "releases 1.1 and 1.1.1: both lengths four bytes too large",
        &["D29"],
        || {
            let mut log = of_version(3);
            log.comment = b"abc\0".to_vec();
            log.comment_length = Some(8);
            log.header_length = Some(u16::try_from(log.header_len()).expect("small") + 4);
            log.note("comment_excess", 0x30).made()
        },
    ),
    Case::rld(
        "comment-excess+length-wrong",
        "the same, and the comment's length damaged besides: the table makes sense only with both in mind",
        &["D6", "D29"],
        || {
            let mut log = of_version(3);
            log.comment = b"abc\0".to_vec();
            log.comment_length = Some(1_000_000);
            log.header_length = Some(u16::try_from(log.header_len()).expect("small") + 4);
            log.note("comment_excess", 0x30).made()
        },
    ),
    Case::rld(
        "comment-excess+header-length-wrong",
        "the same, and the header's length damaged instead",
        &["D6", "D29"],
        || {
            let mut log = of_version(3);
            log.comment = b"abc\0".to_vec();
            log.comment_length = Some(8);
            log.header_length = Some(u16::try_from(log.header_len()).expect("small") + 24);
            log.note("comment_excess", 0x30).made()
        },
    ),
    Case::rld("table-garbage", "a table that no writer makes: rows are read all the same", &["D30"], || {
        let mut log = plain();
        log.analog[0].unit = 0x1234_5678;
        let log = log.blocks(2);
        let at = log.channel_at(3);
        log.note("unknown_unit", at).note("table_implausible", 64).made()
    }),
    Case::rld("no-rows", "a header and nothing else", &["D16"], || plain().made()),
    Case::rld("refused-cut-in-lead-in", "cut inside the lead-in", &["D18"], || cut_to(40, "header")),
    Case::rld("refused-cut-in-table", "cut inside the channel table", &["D18"], || cut_to(100, "header")),
    Case::rld("refused-version-5", "a version that nobody has described", &["D18"], || {
        of_unknown(*b"%RLD", 5)
    }),
    Case::rld("refused-magic-of-another-version", "BLR% is version 1 only", &["D18"], || {
        of_unknown(*b"BLR%", 2)
    }),
    Case::rld("refused-endless-comment", "a comment of 4 GB in a small file", &["D18"], || {
        let mut log = single().blocks(1);
        log.comment_length = Some(u32::MAX);
        log.header_length = Some(0);
        let expected = refused("rld", "4", "limit_exceeded", "header");
        Made { bytes: log.bytes(), expected }
    }),
];

fn with_comment(comment: &[u8]) -> Log {
    let mut log = plain();
    log.comment = comment.to_vec();
    log.blocks(2)
}

fn of_version(version: u16) -> Log {
    let mut log = plain();
    log.version = version;
    if version < 3 {
        log.analog[2].link = 3;
    }
    log.blocks(2)
}

fn v1() -> Made {
    let mut log = of_version(1);
    log.comment = b"This is a comment".to_vec();
    log.analog[0].scale = -6;
    log.note("unaligned_header", 6).made()
}

fn cut_to(len: usize, words: &str) -> Made {
    let mut bytes = plain().blocks(1).bytes();
    bytes.truncate(len);
    Made { bytes, expected: refused("rld", "4", "truncated", words) }
}

fn of_unknown(magic: [u8; 4], version: u16) -> Made {
    let mut bytes = plain().blocks(1).bytes();
    bytes[..4].copy_from_slice(&magic);
    bytes[4..6].copy_from_slice(&version.to_le_bytes());
    Made { bytes, expected: refused("rld", &version.to_string(), "unsupported", "version") }
}
