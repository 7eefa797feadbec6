//! Messages with a valid frame and an invalid payload: only they are lost.
//!
//! Each is followed by at least three intact messages, which a reader needs before it trusts the
//! frame.

use super::log::{Log, SYNC, data, keyed, message, plain, plain_row, subscription};
use super::{PLAIN, time};
use crate::cases;
use crate::lay::lay;
use crate::shape::values;

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
    "bad-sync" [D27] "a sync message with another magic" => {
        let mut magic = SYNC;
        magic[3] ^= 0x40;
        plain().sync().rows(0..5).bad(b'S', magic).rows(5..10).sync()
    };
    "sync+sync-inside-payload" [D27]
        "good sync messages, and whole ones inside a row and a text, where they are payload" => {
        let sync = message(b'S', SYNC);
        let text = [b"ab", &sync[..], b"c"].concat();
        Log::new().topic("t:uint64_t timestamp;char[14] s;")
            .each(0..6, |log, i| {
                let log = if i % 2 == 0 { log.sync() } else { log };
                log.row(0, values![time(i), &text[..]])
            })
            .text(b'6', time(6), &sync).row(0, values![time(7), "last"])
    };
    "bad-flag-bits-twice" [D30] "flag bits in the middle of the data" =>
        plain().rows(0..5).bad(b'B', [0; 40]).rows(5..10);
}
