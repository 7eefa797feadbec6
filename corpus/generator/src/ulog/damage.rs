//! Cases of messages with a valid frame and an invalid payload, and of damaged frames, that is, of
//! bytes that are overwritten, flipped, lost, or cut off.
//!
//! Only the invalid messages are lost. Each is followed by at least three intact messages, because a
//! reader only trusts a frame that is followed by intact messages. Each damage can be interpreted in
//! one way only. The damaged bytes contain nothing that looks like a message.

use super::prelude::*;

cases! {
    "bad-data+1-byte" [D11] "a D message with half an id" => plain().rows(0..5).bad(b'D', [0]).rows(5..10);
    "bad-data+short" [D11] "a row one byte short is no row" =>
        plain().rows(0..5).bad(b'D', &plain_row(5)[3..16]).rows(6..11);
    "bad-data+long" [D11] "a row nine bytes long is no row" =>
        plain().rows(0..5).bad(b'D', [&plain_row(5)[3..], &[0; 9]].concat()).rows(6..11);
    "bad-data+between-trimmed-and-full" [D9 D11]
        "a row with half of the padding at its end is neither trimmed nor full" => {
        let row = |i: u16| values![time(i), 50, [0; 3], 0];
        let log = Log::new().topic("t:uint64_t timestamp;uint8_t x;uint8_t[3] _padding0;uint32_t _padding1;");
        let between = log.shape("t").first(&row(4), 3);
        log.each(0..4, |log, i| log.row(0, row(i))).lose("bad_message", data(0, between))
            .each(5..9, |log, i| log.full_row(0, row(i)))
    };
    "bad-subscription" [D22] "an A message of one byte, and one whose name is no name" =>
        plain().bad(b'A', [0]).rows(0..5).bad(b'A', subscription(0, 1, "\u{1}\u{2}\u{3}")).rows(5..10);
    "bad-info" [D22] "a key without a space, and a key longer than the message" =>
        Log::new().bad(b'I', keyed("sys_name", b"PX4")).info("char[4] ver_hw", "good").topic(PLAIN).rows(0..5)
            .bad(b'I', b"\xC8char[3] late").rows(5..10);
    "bad-multi-info" [D22] "a key longer than the message, and a flag that is neither 0 nor 1" =>
        plain().rows(0..4).bad(b'M', b"\0\x63char[3] late").rows(4..8)
            .bad(b'M', lay![7_u8, keyed("char[2] k", b"ab")]).rows(8..12).part(false, "char[4] k", "good");
    "bad-parameter" [D22] "an int32_t of two bytes, a float of eight, a default of no table" =>
        plain().rows(0..4).bad(b'P', keyed("int32_t KI", &[1, 0])).rows(4..8).bad(b'P', keyed("float KF", &[0; 8]))
            .rows(8..12).parameter("float KF", 1.5).bad(b'Q', lay![0_u8, keyed("float KF", &[0; 4])]).rows(12..16);
    "bad-format" [D22] "format texts that break the grammar" =>
        Log::new().bad(b'F', "no colon here").topic(PLAIN).rows(0..4).bad(b'F', "u:float;").rows(4..8)
            .bad(b'F', "v:uint64_t timestamp;float[3 x;").rows(8..12);
    "bad-text" [D25 D30] "a level that does not exist, and a text too short for its time" =>
        plain().rows(0..4).bad(b'L', lay![b'9', time(4), "no such level"]).rows(5..9).bad(b'L', [b'6', 0, 0, 0])
            .rows(9..13).bad(b'C', [b'6', 1, 0, 0, 0, 0, 0]).rows(13..17);
    "bad-dropout+bad-unsubscription" [D30] "both with one byte instead of two" =>
        plain().rows(0..4).bad(b'O', [26]).rows(4..8).bad(b'R', [0]).rows(8..12);
    "bad-sync" [D27] "a sync message with another magic" =>
        plain().sync().rows(0..5).bad(b'S', SYNC.with(|magic| magic[3] ^= 0x40)).rows(5..10).sync();
    "sync+sync-inside-payload" [D27]
        "good sync messages, and whole ones inside a row and a text, where they are payload" => {
        let sync = message(b'S', SYNC);
        let text = [b"ab", &sync[..], b"c"].concat();
        Log::new().topic("t:uint64_t timestamp;char[14] s;")
            .each(0..6, |log, i| log.when(i % 2 == 0, Log::sync).row(0, values![time(i), &text[..]]))
            .text(b'6', time(6), &sync).row(0, values![time(7), "last"])
    };
    "bad-flag-bits-twice" [D30] "flag bits in the middle of the data" =>
        plain().rows(0..5).bad(b'B', [0; 40]).rows(5..10);
    "bad-flag-bits+header-in-header" [D30 D41]
        "the header contains the start of another one, and flag bits follow that: they are no flag bits" => {
        let start = u64::from_le_bytes(*b"Log\x01\x12\x35\0\0");
        let flags = message(b'B', [0; 40].with(|bits| bits[11] = 0x40));
        Log::starting(b'U', start).note_at(7, "unknown_version").lose("gap", [&[0; 7], &flags[..]].concat())
            .topic(PLAIN).rows_with(0, 0..5_u16, |i| values![start + time(i), f32::from(i)])
    };
    "damaged+garbage" [D30] "17 foreign bytes between two rows, no sync message near" =>
        plain().rows(0..5).lose("gap", GARBAGE).rows(5..10);
    "damaged+garbage+sync" [D27 D30] "17 foreign bytes, then a sync message" =>
        plain().rows(0..5).lose("gap", GARBAGE).sync().rows(5..10);
    "damaged+garbage-after-text" [D30] "a sound text right before the damage is kept" =>
        plain().rows(0..5).text(b'6', time(5), "still good").lose("gap", GARBAGE).rows(6..11);
    "damaged+noise-block" [D30] "500 bytes of noise over about thirty rows" =>
        plain().rows(0..10).lose("gap", [noise(500), plain_rows(10..40).split_off(500)].concat()).rows(40..50);
    "damaged+zeroed-sector" [D30] "512 zero bytes over rows, their end inside a row" =>
        // The 512 bytes are 30 rows of 17 bytes, and two bytes of the next row.
        plain().rows(0..10).lose("gap", [vec![0; 512], plain_rows(10..41).split_off(512)].concat()).rows(41..51);
    "damaged+zero-fill-to-the-end" [D30] "a log that ends in 600 zero bytes" =>
        plain().rows(0..10).lose("gap", [0; 600]);
    "damaged+length-flipped" [D30] "flipped bits in the size of a row: too long by one, and by a kilobyte" =>
        plain().rows(0..5).lose("gap", flipped(5, 0, 1)).rows(6..12).lose("gap", flipped(12, 1, 4)).rows(13..90);
    "damaged+length-flipped-beyond-the-end" [D30] "a size that reaches past the end of the file" =>
        plain().rows(0..5).lose("gap", flipped(5, 1, 0x40)).rows(6..12);
    "damaged+type-flipped-to-unknown" [D4 D30]
        "a flipped bit makes a row a message nobody knows: passed over, its bytes kept" =>
        plain().rows(0..5).unknown(b'D' ^ 0x20, &plain_row(5)[3..]).rows(6..11);
    "damaged+swallows-rows" [D4 D30]
        "a header that is no more makes a row and the four behind it one message that nobody knows: only it is lost" => {
        let row = plain_row(5).with(|bytes| (bytes[0], bytes[2]) = (5 * 17 - 3, b'X'));
        plain().rows(0..5).lose("gap", row).rows(6..15)
    };
    "damaged+type-flipped-to-known" [D22 D30] "a flipped bit makes a row a bad format" =>
        plain().rows(0..5).lose("bad_message", flipped(5, 2, b'D' ^ b'F')).rows(6..11);
    "damaged+bytes-lost" [D30] "seven bytes are missing inside a row: the next one begins too early" =>
        plain().rows(0..5).lose("gap", holed(5)).rows(6..12);
    "damaged+rows-lost" [D30] "forty bytes are missing: two rows and the joint between their neighbours" =>
        // The missing bytes are the last 12 of row 5, all of rows 6 and 7, and the first 6 of row
        // 8. The rest of rows 5 and 8 together has one byte less than a row.
        plain().rows(0..5).lose("gap", [&plain_row(5)[..5], &plain_row(8)[6..]].concat()).rows(9..15);
    "damaged+format-zeroed" [D21 D22 D30] "zero bytes in a format: that topic is lost, the other is whole" => {
        let text = OTHER.as_bytes().to_vec().with(|text| text[8..16].fill(0));
        Log::new().bad(b'F', text).topic(PLAIN).undecodable("undefined_format", "gone", 0, 1).rows(0..3)
            .each(3..6, |log, i| log.lose("undecodable", data(1, lay![time(i), 1_u8])).rows(i..i + 1)).rows(6..9)
    };
    "damaged+subscription-zeroed" [D20 D22 D30] "zero bytes in a subscription: the rows of its id are lost" =>
        Log::new().format(OTHER).topic(PLAIN).rows(0..3).bad(b'A', [0; 3 + 4]).rows(3..6)
            .each(6..9, |log, i| log.lose("unknown_id", data(1, lay![time(i), 1_u8])).rows(i..i + 1)).rows(9..12);
    "damaged+three-places+sync+cut" [D30 D31] "three kinds of damage in one log, cut at the end" =>
        Log::new().format(PLAIN).parameter("float MC_ROLL_P", 6.5).subscribe("t", 0, 0).rows(0..10).sync()
            .lose("gap", flipped(10, 1, 4)).rows(11..20).dropout(30).lose("gap", holed(23)).rows(24..30)
            .lose("gap", GARBAGE).sync().rows(30..99).lose("cut", &plain_row(99)[..9]);
    "cut-in-payload" [D31] "the last row is cut" => plain().rows(0..10).lose("cut", &plain_row(10)[..12]);
    "cut-in-text" [D31] "the last text is cut: half a text is no text" =>
        plain().rows(0..10).lose("cut", &message(b'L', lay![b'4', time(10), "Failsafe activated"])[..20]);
    "cut-in-header" [D31] "two bytes of the last message's header" =>
        plain().rows(0..10).lose("cut", &plain_row(10)[..2]);
    "cut-in-definitions" [D31] "cut inside the second format" =>
        Log::new().format(PLAIN).lose("cut", &message(b'F', OTHER)[..20]);
    "encrypted-container" [D33] "an encrypted log under the usual extension: named, not read" => {
        // The header has the magic number, version, time, exchange algorithm (RSA-OAEP), key index,
        // and sizes. The wrapped key, the nonce and the encrypted data follow.
        let bytes = lay![b"ULogEnc\x01", START, [4_u8, 1], [256_u16, 24], noise(256 + 24 + 300)];
        refused(bytes, ["ulog", "1"], "unsupported", "encrypted")
    };
}

/// Bytes that are not a frame. As a frame, they would extend past the end of each test file.
const GARBAGE: [u8; 17] = [0xEE; 17];

/// Format of a second topic.
const OTHER: &str = "gone:uint64_t timestamp;uint8_t n;";

/// Returns the bytes of plain rows.
fn plain_rows(numbers: std::ops::Range<u16>) -> Vec<u8> {
    numbers.flat_map(plain_row).collect()
}

/// Returns the message of plain row `i`. The bits in `mask` of the byte at the offset `at` are
/// flipped.
fn flipped(i: u16, at: usize, mask: u8) -> Vec<u8> {
    plain_row(i).with(|bytes| bytes[at] ^= mask)
}

/// Returns the message of plain row `i` without seven of its bytes.
fn holed(i: u16) -> Vec<u8> {
    plain_row(i).with(|bytes| drop(bytes.drain(6..13)))
}
