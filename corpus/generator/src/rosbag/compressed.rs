//! Cases of bags that are compressed as a whole, and of compressed data that ends in unusual ways.

use super::prelude::*;

cases! {
    "compressed-gzip" [B15] "the whole file" => small().map(|bytes| gzip(&bytes));
    "compressed-bzip2" [B15] "the whole file" => small().map(|_| bzip2());
    "compressed-gzip+two-members" [B15] "two compressed parts, one behind the other" =>
        small().map(|bytes| [gzip(&bytes[..100]), gzip(&bytes[100..])].concat());
    "compressed-gzip+header-fields" [B15] "extra field, name, comment and a sum of the header" =>
        small().map(|bytes| {
            let whole = gzip(&bytes).with(|bytes| bytes[3] = 2 | 4 | 8 | 16);
            let head = lay![whole[..10], b"\x03\0abcname\0comment\0"];
            lay![head, crc32fast::hash(&head).to_le_bytes()[..2], whole[10..]]
        });
    "compressed-gzip+cut" [B15 C1] "the compressed file is cut inside of the last message" => {
        let whole = chatter().data(stamp(2), text("the last"));
        let (kept, rest) = whole.split_at(whole.len() - 3);
        ended(spoken().lose("cut", kept), "packed_cut")
            .map(|bytes| cut(gzip(&[&bytes[..], rest].concat()), 8 + 3))
    };
    "compressed-gzip+cut-between-records" [C1] "nothing but the end is missing" => {
        let more = chatter().data(stamp(2), text("the last"));
        ended(spoken(), "packed_cut").map(|bytes| cut(gzip(&[&bytes[..], &more].concat()), 8 + more.len()))
    };
    "compressed-gzip+checksum-missing" [C2] "the file ends inside of the checksum" =>
        ended(spoken(), "packed_unchecked").map(|bytes| cut(gzip(&bytes), 5));
    "compressed-gzip+checksum-wrong" [C3] "the checksum is another's" =>
        flipped(gzip(&small().bytes), GZIP_HEAD + small().bytes.len());
    "compressed-gzip+length-wrong" [C3] "the length behind the checksum is another's" =>
        flipped(gzip(&small().bytes), GZIP_HEAD + small().bytes.len() + 4);
    "compressed-gzip+followed" [C4] "bytes that are not compressed follow" =>
        ended(spoken(), "packed_followed").map(|bytes| [gzip(&bytes), b"and so on".to_vec()].concat());
    "compressed-gzip+zeros-behind" [C4] "zeros up to the end of a block of a tape" =>
        Made::from(spoken().unindexed().note("packed_padding"))
            .map(|bytes| gzip(&bytes).with(|bytes| bytes.resize(1024, 0)));
    "compressed-bzip2+cut" [C1] "the end mark and the checksum of the file are cut" =>
        ended(spoken(), "packed_cut").map(|_| cut(bzip2(), 3));
    "compressed-bzip2+damaged" [C3] "a byte of the only block is another" => flipped(bzip2(), 200);
}

fn spoken() -> Bag {
    Bag::plain().note_at(0, "compressed").talk(&chatter(), 0..2)
}

/// Returns a small bag, which the caller compresses.
fn small() -> Made {
    spoken().unindexed().into()
}

/// Returns a bag whose compressed data ends in a way that readers report as `code`.
fn ended(bag: Bag, code: &'static str) -> Made {
    bag.lose(code, b"").unindexed().into()
}

/// Removes the last `by` bytes.
pub(super) fn cut(bytes: Vec<u8>, by: usize) -> Vec<u8> {
    bytes.with(|bytes| bytes.truncate(bytes.len() - by))
}

/// Returns a file that must be rejected, because a bit of the byte at `at` is flipped.
fn flipped(bytes: Vec<u8>, at: usize) -> Made {
    refused(bytes.with(|bytes| bytes[at] ^= 1), ["rosbag", ""], "malformed", "checksum")
}

/// Size in bytes of a gzip file before its content.
const GZIP_HEAD: usize = 15;

/// Returns bytes as a gzip file (RFC 1952) that contains a single stored block (RFC 1951).
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("one block");
    let head = [0x1f, 0x8b, 8_u8, 0, 0, 0, 0, 0, 0, 255, 1];
    lay![head, len, !len, bytes, crc32fast::hash(bytes), u32::from(len)]
}

/// Returns the bytes of [`small`] as a bzip2 file.
fn bzip2() -> Vec<u8> {
    super::chunked::bz2(&small().bytes)
}
