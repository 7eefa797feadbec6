//! Bags that are compressed as a whole, and compressed data that end in every way.

use base64::Engine as _;
use serde_json::json;

use super::log::{Bag, chatter, refused, text};
use super::stamp;
use crate::Made;
use crate::cases;
use crate::lay::lay;

cases! {
    "compressed-gzip" [B15] "the whole file" => small().map(|bytes| gzip(&bytes));
    "compressed-bzip2" [B15] "the whole file" => small().map(|_| bzip2());
    "compressed-gzip+two-members" [B15] "two compressed parts, one behind the other" =>
        small().map(|bytes| [gzip(&bytes[..100]), gzip(&bytes[100..])].concat());
    "compressed-gzip+header-fields" [B15] "extra field, name, comment and a sum of the header" =>
        small().map(|bytes| {
            let whole = gzip(&bytes);
            let mut head = [&whole[..10], b"\x03\0abcname\0comment\0"].concat();
            head[3] = 2 | 4 | 8 | 16;
            let sum = crc32fast::hash(&head).to_le_bytes();
            lay![head, sum[..2], whole[10..]]
        });
    "compressed-gzip+cut" [B15 C1] "the compressed file is cut inside of the last message" => {
        let whole = chatter().data(stamp(2), &text("the last"));
        let (kept, rest) = whole.split_at(whole.len() - 3);
        ended(spoken().lose("cut", kept), "packed_cut")
            .map(|bytes| cut(gzip(&[&bytes[..], rest].concat()), 8 + 3))
    };
    "compressed-gzip+cut-between-records" [C1] "nothing but the end is missing" => {
        let more = chatter().data(stamp(2), &text("the last"));
        ended(spoken(), "packed_cut").map(|bytes| cut(gzip(&[&bytes[..], &more].concat()), 8 + more.len()))
    };
    "compressed-gzip+checksum-missing" [C2] "the file ends inside of the checksum" =>
        ended(spoken(), "packed_unchecked").map(|bytes| cut(gzip(&bytes), 5));
    "compressed-gzip+checksum-wrong" [C3] "the checksum is another's" => flipped(gzip(&small().bytes), -8);
    "compressed-gzip+length-wrong" [C3] "the length behind the checksum is another's" =>
        flipped(gzip(&small().bytes), -4);
    "compressed-gzip+followed" [C4] "bytes that are not compressed follow" =>
        ended(spoken(), "packed_followed").map(|bytes| [gzip(&bytes), b"and so on".to_vec()].concat());
    "compressed-gzip+zeros-behind" [C4] "zeros up to the end of a block of a tape" => {
        let mut made = small();
        let note = json!({"code": "packed_padding", "offset": made.bytes.len().to_string()});
        made.expected["notes"].as_array_mut().expect("a list").push(note);
        made.map(|bytes| {
            let mut bytes = gzip(&bytes);
            bytes.resize(1024, 0);
            bytes
        })
    };
    "compressed-bzip2+cut" [C1] "the end mark and the checksum of the file are cut" =>
        ended(spoken(), "packed_cut").map(|_| cut(bzip2(), 3));
    "compressed-bzip2+damaged" [C3] "a byte of the only block is another" => flipped(bzip2(), 200);
}

fn spoken() -> Bag {
    Bag::plain().note_at(0, "compressed").talk(&chatter(), 0..2)
}

/// Returns a bag of which every byte is known, so that it can be compressed by hand.
fn small() -> Made {
    spoken().unindexed().into()
}

/// Returns a bag with an end of its compressed data that readers report as `code`.
fn ended(bag: Bag, code: &'static str) -> Made {
    bag.lose(code, b"").unindexed().into()
}

/// Cuts bytes off the end.
pub(super) fn cut(mut bytes: Vec<u8>, by: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - by);
    bytes
}

/// Returns a file that is refused because of a flipped bit, counted from the end if `at` is
/// negative.
fn flipped(mut bytes: Vec<u8>, at: isize) -> Made {
    let at = if at < 0 { bytes.len() - at.unsigned_abs() } else { at.unsigned_abs() };
    bytes[at] ^= 1;
    refused(bytes, "", "malformed", "checksum")
}

/// Wraps bytes in RFC 1952 around one stored block of RFC 1951.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("one block");
    let head = [0x1f, 0x8b, 8_u8, 0, 0, 0, 0, 0, 0, 255, 1];
    lay![head, len, !len, bytes, crc32fast::hash(bytes), u32::from(len)]
}

/// Returns the bytes of [`small`], compressed by bzip2 1.0.8.
fn bzip2() -> Vec<u8> {
    let text = "QlpoOTFBWSZTWfX9554AADf/gfdxRABMAf/qDgiZAL/j3CAgAAIAMADYBgABoAAyaAAANAYAAaAAMmgAADQDakJTxT0wU9QHqMTQ\
        8oyYymNCe21yjTY8lRIu4nUxHOqSoekkp0yQmTJl4uq61LMols9LLlLkXSyeUSd4FBxwG20Go0XlxeREhMYEEfZAxIIkJylPSyGN\
        ZsUZw3YKVb3YY7nbzfWc+8qH8h5SMMGRxLz1Ji00mROUW0lpMONSVcZTwSgREZelKLIusSeLtOZ0GMw9KHTWUPTWGlK+skOw0D4D\
        yA3X/F3JFOFCQ9f3nng=";
    base64::engine::general_purpose::STANDARD.decode(text).expect("as it was encoded")
}
