//! Damage to the frames: bytes overwritten, flipped, lost, cut off.
//!
//! Each damage is chosen so that there is one sensible account of it: what follows is long
//! enough to be believed, and nothing inside the damaged bytes looks like a message.

use super::log::{Keyed, Log};
use super::shape::{F32, Shape, U8, U64, values};
use super::{START, plain, plain_log, plain_row, plain_rows, time};
use crate::corpus::ulog::expected::refused;
use crate::corpus::ulog::lay::{Lay, message, subscription};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "damaged+garbage",
        "17 foreign bytes between two rows, no sync message near",
        &["D30"],
        garbage,
    ),
    Case::ulog(
        "damaged+garbage+sync",
        "17 foreign bytes, then a sync message",
        &["D27", "D30"],
        garbage_then_sync,
    ),
    Case::ulog(
        "damaged+garbage-after-text",
        "a sound text right before the damage is kept",
        &["D30"],
        garbage_after_text,
    ),
    Case::ulog("damaged+noise-block", "500 bytes of noise over about thirty rows", &["D30"], noise_block),
    Case::ulog(
        "damaged+zeroed-sector",
        "512 zero bytes over rows, their end inside a row",
        &["D30"],
        zeroed_sector,
    ),
    Case::ulog("damaged+zero-fill-to-the-end", "a log that ends in 600 zero bytes", &["D30"], zero_fill),
    Case::ulog(
        "damaged+length-flipped",
        "flipped bits in the size of a row: too long by one, and by a kilobyte",
        &["D30"],
        length_flipped,
    ),
    Case::ulog(
        "damaged+length-flipped-beyond-the-end",
        "a size that reaches past the end of the file",
        &["D30"],
        length_beyond_the_end,
    ),
    Case::ulog(
        "damaged+type-flipped-to-unknown",
        "a flipped bit makes a row a message nobody knows: passed over, its bytes kept",
        &["D4", "D30"],
        type_flipped_to_unknown,
    ),
    Case::ulog(
        "damaged+swallows-rows",
        "a header that is no more makes a row and the four behind it one message that nobody knows: only it is lost",
        &["D4", "D30"],
        swallows_rows,
    ),
    Case::ulog(
        "damaged+type-flipped-to-known",
        "a flipped bit makes a row a bad format",
        &["D22", "D30"],
        type_flipped_to_known,
    ),
    Case::ulog(
        "damaged+bytes-lost",
        "seven bytes are missing inside a row: the next one begins too early",
        &["D30"],
        bytes_lost,
    ),
    Case::ulog(
        "damaged+rows-lost",
        "forty bytes are missing: two rows and the joint between their neighbours",
        &["D30"],
        rows_lost,
    ),
    Case::ulog(
        "damaged+format-zeroed",
        "zero bytes in a format: that topic is lost, the other is whole",
        &["D21", "D22", "D30"],
        format_zeroed,
    ),
    Case::ulog(
        "damaged+subscription-zeroed",
        "zero bytes in a subscription: the rows of its id are lost",
        &["D20", "D22", "D30"],
        subscription_zeroed,
    ),
    Case::ulog(
        "damaged+three-places+sync+cut",
        "three kinds of damage in one log, cut at the end",
        &["D30", "D31"],
        three_places,
    ),
    Case::ulog("cut-in-payload", "the last row is cut", &["D31"], cut_in_payload),
    Case::ulog("cut-in-text", "the last text is cut: half a text is no text", &["D31"], cut_in_text),
    Case::ulog("cut-in-header", "two bytes of the last message's header", &["D31"], cut_in_header),
    Case::ulog("cut-in-definitions", "cut inside the second format", &["D31"], cut_in_definitions),
    Case::ulog(
        "encrypted-container",
        "an encrypted log under the usual extension: named, not read",
        &["D33"],
        encrypted,
    ),
];

/// Foreign bytes: as a frame they would reach past the end of any file here.
const GARBAGE: [u8; 17] = [0xEE; 17];

/// Bytes that repeat for nobody (a linear congruential generator, high bits).
fn noise(len: usize) -> Vec<u8> {
    let mut state: u32 = 2_463_534_242;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn garbage() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("gap", &GARBAGE);
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

fn garbage_then_sync() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("gap", &GARBAGE);
    log.sync();
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

fn garbage_after_text() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.text(b'6', time(5), b"still good");
    log.lose("gap", &GARBAGE);
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn noise_block() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    let mut block: Vec<u8> = (10..40).flat_map(|i| t.message(&plain_row(i))).collect();
    block[..500].copy_from_slice(&noise(500));
    log.lose("gap", &block);
    plain_rows(&mut log, &t, 40..50);
    log.done()
}

fn zeroed_sector() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    // 512 = 30 rows of 17 bytes and two bytes of the next.
    let mut rows: Vec<u8> = (10..41).flat_map(|i| t.message(&plain_row(i))).collect();
    rows[..512].fill(0);
    log.lose("gap", &rows);
    plain_rows(&mut log, &t, 41..51);
    log.done()
}

fn zero_fill() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    log.lose("gap", &[0; 600]);
    log.done()
}

/// The whole message of plain row `i`, with bits of the byte at `at` flipped.
fn flipped(t: &super::Subscribed, i: u16, at: usize, mask: u8) -> Vec<u8> {
    let mut bytes = t.message(&plain_row(i));
    bytes[at] ^= mask;
    bytes
}

fn length_flipped() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("gap", &flipped(&t, 5, 0, 1));
    plain_rows(&mut log, &t, 6..12);
    log.lose("gap", &flipped(&t, 12, 1, 4));
    plain_rows(&mut log, &t, 13..90);
    log.done()
}

fn length_beyond_the_end() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("gap", &flipped(&t, 5, 1, 0x40));
    plain_rows(&mut log, &t, 6..12);
    log.done()
}

fn type_flipped_to_unknown() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    let bytes = flipped(&t, 5, 2, 0x20);
    log.unknown(bytes[2], &bytes[3..]);
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn type_flipped_to_known() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("bad_message", &flipped(&t, 5, 2, b'D' ^ b'F'));
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn swallows_rows() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    let mut row = t.message(&plain_row(5));
    row[0] = u8::try_from(5 * row.len() - 3).expect("small");
    row[2] = b'X';
    log.lose("gap", &row);
    plain_rows(&mut log, &t, 6..15);
    log.done()
}

fn bytes_lost() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    let mut row = t.message(&plain_row(5));
    row.drain(6..13);
    log.lose("gap", &row);
    plain_rows(&mut log, &t, 6..12);
    log.done()
}

fn rows_lost() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    // 17 + 17 + 6 bytes are missing: five of row 5 are left, and eleven of row 8, which together
    // are one byte short of a row.
    let mut joint = t.message(&plain_row(5))[..5].to_vec();
    joint.extend_from_slice(&t.message(&plain_row(8))[6..]);
    log.lose("gap", &joint);
    plain_rows(&mut log, &t, 9..15);
    log.done()
}

/// Another topic, mixed with the plain one below.
fn other() -> Shape {
    Shape::new("gone").with("timestamp", U64).with("n", U8)
}

fn format_zeroed() -> Made {
    let mut log = Log::new(START);
    let mut text = other().text().into_bytes();
    text[8..16].fill(0);
    log.lose("bad_message", &message(b'F', &text));
    log.format(&plain());
    let t = log.subscribe(&plain(), 0, 0);
    log.note("undefined_format");
    let gone = log.subscribe_undecodable("gone", 0, 1);
    plain_rows(&mut log, &t, 0..3);
    for i in 3..6 {
        let row = other().full_bytes(&values![time(i), 1u8]);
        log.lose("undecodable", &gone.message_of(&row));
        log.row(&t, &plain_row(i));
    }
    plain_rows(&mut log, &t, 6..9);
    log.done()
}

fn subscription_zeroed() -> Made {
    let mut log = Log::new(START);
    log.format(&other());
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    let zeroed = vec![0; subscription(0, 1, "gone").len()];
    log.lose("bad_message", &message(b'A', &zeroed));
    plain_rows(&mut log, &t, 3..6);
    for i in 6..9 {
        let row = other().full_bytes(&values![time(i), 1u8]);
        let payload = Lay::new().u16(1).bytes(&row).done();
        log.lose("unknown_id", &message(b'D', &payload));
        log.row(&t, &plain_row(i));
    }
    plain_rows(&mut log, &t, 9..12);
    log.done()
}

fn three_places() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 6.5f32));
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..10);
    log.sync();
    log.lose("gap", &flipped(&t, 10, 1, 4));
    plain_rows(&mut log, &t, 11..20);
    log.dropout(30);
    let mut row = t.message(&plain_row(23));
    row.drain(6..13);
    log.lose("gap", &row);
    plain_rows(&mut log, &t, 24..30);
    log.lose("gap", &GARBAGE);
    log.sync();
    plain_rows(&mut log, &t, 30..99);
    log.lose("cut", &t.message(&plain_row(99))[..9]);
    log.done()
}

fn cut_in_payload() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    log.lose("cut", &t.message(&plain_row(10))[..12]);
    log.done()
}

fn cut_in_text() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    let text = Lay::new().u8(b'4').u64(time(10)).bytes(b"Failsafe activated");
    log.lose("cut", &message(b'L', &text.done())[..20]);
    log.done()
}

fn cut_in_header() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..10);
    log.lose("cut", &t.message(&plain_row(10))[..2]);
    log.done()
}

fn cut_in_definitions() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    let second = message(b'F', other().text().as_bytes());
    log.lose("cut", &second[..20]);
    log.done()
}

fn encrypted() -> Made {
    // Magic, version, time, exchange algorithm (RSA-OAEP), key index, sizes, wrapped key, nonce,
    // and then what nobody can read without the key.
    let bytes = Lay::new()
        .bytes(b"ULogEnc\x01")
        .u64(START)
        .bytes(&[4, 1])
        .u16(256)
        .u16(24)
        .bytes(&noise(256 + 24 + 300));
    Made { bytes: bytes.done(), expected: refused("1", "unsupported", "encrypted") }
}
