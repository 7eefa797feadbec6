//! Cases about versions, comments, and lengths of headers.

use super::prelude::*;

cases! {
    "v4" [D1 D2 D4 D20] "what current loggers write" => plain().blocks(3);
    "v3" [D1 D2] "the same layout, links from 0" => of_version(3);
    "v2" [D1 D2 D4] "links count from 1, a comment without NUL" =>
        of_version(2).with(|log| log.comment = b"no NUL in here at all...".to_vec());
    "v1" [D1 D2 D5] "the other magic, a comment of 17 bytes, data at an odd offset" =>
        of_version(1).with(|log| (log.comment, log.analog[0].scale) = (b"This is a comment".to_vec(), -6))
            .note("unaligned_header", 6);
    "comment-empty" [D4] "four zero bytes are an empty comment" => comment(&[0; 4]);
    "comment-none" [D4] "no comment at all" => comment(b"");
    "comment-text-behind-nul" [D4] "what is behind the first NUL is kept, not shown" => comment(b"shown\0hidden");
    "comment-without-nul" [D4] "version 4 ends a comment with NUL; here it does not" =>
        comment(b"1234").note("comment_without_nul", 56);
    "comment-not-ascii" [D4] "bytes that are no UTF-8" => comment(b"\xff\xfe\x80\0").note("comment_not_ascii", 56);
    "comment-utf8" [D4] "UTF-8 is shown" => comment("5 °C x\0".as_bytes()).note("comment_not_ascii", 56);
    "comment-unaligned" [D5] "a comment of three bytes: every value at an odd offset" =>
        comment(b"ab\0").note("unaligned_header", 6);
    "comment-long" [D4] "a comment of 8 kB" =>
        comment(&b"all work and no play ".repeat(400).with(|text| text.resize(8404, 0)));
    "header-length-wrong" [D6] "a header length that contradicts its parts" =>
        plain().blocks(2).with(|log| log.header_length = Some(300)).note("header_length", 6);
    "comment-length-wrong" [D6] "a comment length that contradicts the header's" =>
        plain().blocks(2).with(|log| log.comment_length = Some(1_000_000)).note("header_length", 0x30);
    "comment-excess" [D29] "releases 1.1 and 1.1.1: both lengths four bytes too large" => excess(8, 4);
    "comment-excess+length-wrong" [D6 D29]
        "the same, and the comment's length damaged besides: the table makes sense only with both in mind" =>
        excess(1_000_000, 4);
    "comment-excess+header-length-wrong" [D6 D29] "the same, and the header's length damaged instead" => excess(8, 24);
    "table-garbage" [D30] "a table that no writer makes: rows are read all the same" =>
        plain().with(|log| log.analog[0].unit = 0x1234_5678).blocks(2).note_at("unknown_unit", |log| log.channel_at(3))
            .note("table_implausible", 64);
    "magic-damaged" [D38] "the first byte is wrong: everything else in the header agrees" =>
        Made::from(plain().blocks(2).note("bad_magic", 0)).map(|bytes| bytes.with(|bytes| bytes[0] = 0x24));
    "no-rows" [D16] "a header and nothing else" => plain();
    "refused-cut-in-lead-in" [D18] "cut inside the lead-in" => cut_to(40);
    "refused-cut-in-table" [D18] "cut inside the channel table" => cut_to(100);
    "refused-version-5" [D18] "a version that nobody has described" => of_unknown(*b"%RLD", 5);
    "refused-magic-of-another-version" [D18] "BLR% is version 1 only" => of_unknown(*b"BLR%", 2);
    "refused-endless-comment" [D18] "a comment of 4 GB in a small file" => {
        let log = single().blocks(1);
        let log = log.with(|log| (log.comment_length, log.header_length) = (Some(u32::MAX), Some(0)));
        refused(log.bytes(), ["rld", "4"], "limit_exceeded", "header")
    };
}

fn comment(comment: &[u8]) -> Log {
    plain().with(|log| log.comment = comment.to_vec()).blocks(2)
}

fn of_version(version: u16) -> Log {
    plain()
        .with(|log| (log.version, log.analog[2].link) = (version, if version < 3 { 3 } else { 2 }))
        .blocks(2)
}

/// Returns a log with a comment of four bytes and wrong lengths. `comment` is the comment length in
/// the header, and `header` the number of bytes by which the header length is too large.
fn excess(comment: u32, header: u16) -> Log {
    of_version(3)
        .with(|log| {
            log.comment = b"abc\0".to_vec();
            log.comment_length = Some(comment);
            log.header_length = Some(u16::try_from(log.header_len()).expect("small") + header);
        })
        .note("comment_excess", 0x30)
}

fn cut_to(len: usize) -> Made {
    refused(&plain().blocks(1).bytes()[..len], ["rld", "4"], "truncated", "header")
}

fn of_unknown(magic: [u8; 4], version: u16) -> Made {
    let bytes = plain().blocks(1).bytes().with(|bytes| bytes[..6].copy_from_slice(&lay![magic, version]));
    refused(bytes, ["rld", &version.to_string()], "unsupported", "version")
}
