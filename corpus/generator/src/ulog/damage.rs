//! Damage to frames: bytes overwritten, flipped, lost, cut off.
//!
//! Each damage has one sensible interpretation: the following data are long enough to be trusted,
//! and nothing inside the damaged bytes looks like a message.

use super::log::{Log, data, message, plain, plain_row, refused};
use super::{PLAIN, START, time};
use crate::cases;
use crate::lay::{lay, noise};

cases! {
    "damaged+garbage" [D30] "17 foreign bytes between two rows, no sync message near" =>
        plain().rows(0..5).lose("gap", GARBAGE).rows(5..10);
    "damaged+garbage+sync" [D27 D30] "17 foreign bytes, then a sync message" =>
        plain().rows(0..5).lose("gap", GARBAGE).sync().rows(5..10);
    "damaged+garbage-after-text" [D30] "a sound text right before the damage is kept" =>
        plain().rows(0..5).text(b'6', time(5), "still good").lose("gap", GARBAGE).rows(6..11);
    "damaged+noise-block" [D30] "500 bytes of noise over about thirty rows" =>
        plain().rows(0..10).lose("gap", [noise(500), plain_rows(10..40).split_off(500)].concat()).rows(40..50);
    "damaged+zeroed-sector" [D30] "512 zero bytes over rows, their end inside a row" =>
        // 512 = 30 rows of 17 bytes and two bytes of the next.
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
        let mut row = plain_row(5);
        row[0] = 5 * 17 - 3;
        row[2] = b'X';
        plain().rows(0..5).lose("gap", row).rows(6..15)
    };
    "damaged+type-flipped-to-known" [D22 D30] "a flipped bit makes a row a bad format" =>
        plain().rows(0..5).lose("bad_message", flipped(5, 2, b'D' ^ b'F')).rows(6..11);
    "damaged+bytes-lost" [D30] "seven bytes are missing inside a row: the next one begins too early" =>
        plain().rows(0..5).lose("gap", holed(5)).rows(6..12);
    "damaged+rows-lost" [D30] "forty bytes are missing: two rows and the joint between their neighbours" =>
        // 17 + 17 + 6 bytes are missing: five of row 5 are left, and eleven of row 8, which
        // together are one byte short of a row.
        plain().rows(0..5).lose("gap", [&plain_row(5)[..5], &plain_row(8)[6..]].concat()).rows(9..15);
    "damaged+format-zeroed" [D21 D22 D30] "zero bytes in a format: that topic is lost, the other is whole" => {
        let mut text = OTHER.as_bytes().to_vec();
        text[8..16].fill(0);
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
    "encrypted-container" [D33] "an encrypted log under the usual extension: named, not read" =>
        // Magic, version, time, exchange algorithm (RSA-OAEP), key index, sizes, wrapped key,
        // nonce, and then encrypted data.
        refused(
            lay![b"ULogEnc\x01", START, 4_u8, 1_u8, 256_u16, 24_u16, noise(256 + 24 + 300)], "unsupported", "encrypted",
        );
}

/// Foreign bytes: read as a frame, they would extend past the end of every file here.
const GARBAGE: [u8; 17] = [0xEE; 17];

/// Another topic, mixed with the plain one.
const OTHER: &str = "gone:uint64_t timestamp;uint8_t n;";

/// Returns the bytes of plain rows.
fn plain_rows(numbers: std::ops::Range<u16>) -> Vec<u8> {
    numbers.flat_map(plain_row).collect()
}

/// Returns the whole message of plain row `i`, with flipped bits in the byte at `at`.
fn flipped(i: u16, at: usize, mask: u8) -> Vec<u8> {
    let mut bytes = plain_row(i);
    bytes[at] ^= mask;
    bytes
}

/// Returns the whole message of plain row `i`, without seven of its bytes.
fn holed(i: u16) -> Vec<u8> {
    let mut bytes = plain_row(i);
    bytes.drain(6..13);
    bytes
}
