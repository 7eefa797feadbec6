//! Cases about the storage of chunk data: compressed, damaged, and encrypted.

use super::prelude::*;

cases! {
    "v2.0+lz4" [K2] "an LZ4 frame as the recorder writes it" => Bag::with([talk(0..5).lz4()]).close();
    "v2.0+bz2" [K2] "a stream of bzip2" => Bag::with([talk(0..5).bz2()]).close();
    "v2.0+mixed-compression" [K2] "a chunk of each kind" =>
        Bag::with([talk(0..3).lz4(), talk(3..5).plain(), talk(5..8).bz2()]).close();
    "v2.0+lz4-frames" [K2] "a frame to skip, one as usual, one of linked blocks with its size" =>
        halves("lz4", |head, tail| lay![0x184d_2a53_u32, text("skip!"), lz4(head), linked(tail)]);
    "v2.0+bz2-streams" [K2] "two streams, one after the other" =>
        halves("bz2", |head, tail| lay![bz2(head), bz2(tail)]);
    "v2.0+size-wrong" [K4] "the uncompressed size is that of something else" =>
        Bag::with([talk(0..3).lz4(), talk(3..6).plain()].map(|chunk| wrong_size(chunk, 100))).close();
    "v2.0+size-hostile" [K4] "a chunk that claims 4 GiB" =>
        Bag::with([wrong_size(talk(0..3).lz4(), u32::MAX)]).close();
    "v2.0+bomb" [K5] "a chunk that unpacks to more than is allowed" => bomb();
    "v2.0+compression-unknown" [K3] "a chunk that says zstd" =>
        unreadable(talk(3..6).stored("zstd", Clone::clone).state("unknown compression", None).keep(0, "chunk_unreadable", 0));
    "v2.0+lz4-raw-block" [K3] "a block without a frame" =>
        unreadable(talk(3..6).stored("lz4", |bytes| lz4(bytes)[11..].to_vec()).state("damaged: not a frame", None)
            .keep(0, "chunk_unreadable", 0));
    "v2.0+lz4-checksum" [K20] "the checksum of the content is another one" => {
        let chunk = talk(3..6).lz4().with(|chunk| *chunk.data.last_mut().expect("a checksum") ^= 1);
        let end = chunk.data.len();
        middle(chunk.state("damaged: checksum", None).lose("chunk_checksum", end)).close()
    };
    "v2.0+lz4-damaged" [K21] "a match in the second frame reaches back to before its start" => {
        // The second frame has one block without literals, whose match starts 255 bytes back.
        let frame = lz4(&talk(5..6).bytes);
        let bad = lay![frame[..7], 4_u32, [0_u8, 255, 0, 0], frame[frame.len() - 8..]];
        second_damaged("lz4", &lz4(&talk(3..5).bytes), &bad)
    };
    "v2.0+bz2-damaged" [K21] "a bit of the only block is another one: nothing of it is trusted" =>
        unreadable(talk(3..6).bz2().with(|chunk| {
            let at = chunk.data.len() / 2;
            chunk.data[at] ^= 4;
        }).state("damaged: error", None).keep(0, "chunk_damaged", 0));
    "v2.0+bz2-streams+damaged" [K21] "the second of two streams does not start as one" => {
        let bad = bz2(&talk(5..6).bytes).with(|bytes| bytes[0] ^= 1);
        second_damaged("bz2", &bz2(&talk(3..5).bytes), &bad)
    };
    "v2.0+no-encryptor" [K13] "an encryptor that encrypts nothing" =>
        Bag::with_header(VERSION_LINE, 20, &[("encryptor", b"rosbag/NoEncryptor")]).put(talk(0..3)).close();
    "v2.0+encrypted" [K13] "chunks and connections are ciphertext" => encrypted();
    "v2.0+encrypted+two-bags" [K13 K15] "only the first bag of the file is encrypted" =>
        encrypted().begin_section(VERSION_LINE, &header(0, &[]))
            .put(Content::new().connect(&talker()).talk(&talker(), 5..8)).close();
}

/// Returns a bag with a chunk. `pack` compresses both halves of its records.
fn halves(compression: &'static str, pack: fn(&[u8], &[u8]) -> Vec<u8>) -> Bag {
    let chunk =
        talk(0..8).stored(compression, |bytes| pack(&bytes[..bytes.len() / 2], &bytes[bytes.len() / 2..]));
    Bag::with([chunk]).close()
}

/// Sets a wrong uncompressed size.
fn wrong_size(chunk: Chunk, size: u32) -> Chunk {
    chunk.with(|chunk| chunk.size = size).state("size wrong", "chunk_size")
}

/// Returns a bag with three chunks. The second is `chunk`.
fn middle(chunk: Chunk) -> Bag {
    with_second(chunk).put(talk(6..9))
}

/// Returns a bag with three chunks. The second is `chunk`, which cannot be read completely.
fn unreadable(chunk: Chunk) -> Bag {
    middle(chunk).close_differing()
}

/// Returns a bag whose second chunk has an intact frame with two messages, and a damaged frame.
fn second_damaged(compression: &'static str, intact: &[u8], damaged: &[u8]) -> Bag {
    let chunk = talk(3..6).stored(compression, |_| lay![intact, damaged]).state("damaged: error", None);
    unreadable(chunk.keep(2, "chunk_damaged", intact.len()))
}

/// Returns a bag with a chunk that decompresses to more than 64 MiB. A reader stops at this limit,
/// where the first stream ends.
fn bomb() -> Bag {
    const LIMIT: usize = 64 << 20;
    // Bytes after the records are lost, because they are not a record.
    let content = talk(3..5).lose_range("lost_in_chunk", 0..0);
    let mut first = content.bytes.clone();
    first.resize(LIMIT, 0);
    let (first, second) = (bz2(&first), bz2(&vec![0; 1 << 20]));
    let at = first.len();
    let chunk = content.stored("bz2", |_| lay![first, second]).with(|chunk| chunk.size = 1000);
    middle(chunk.state("damaged: limit", None).keep(2, "chunk_too_large", at)).close()
}

/// Returns a bag that was encrypted by `rosbag encrypt`, which does not encrypt chunk headers,
/// index data and chunk infos.
fn encrypted() -> Bag {
    let more: &Fields<'_> = &[
        ("encrypted_key", b"-----BEGIN PGP MESSAGE-----"),
        ("encryptor", b"rosbag/AesCbcEncryptor"),
        ("gpg_user", b"Fox Mulder"),
    ];
    // Encrypted data has an initialization vector of 16 bytes and complete blocks of 16 bytes.
    let cipher = |len: usize| noise(16 + len.next_multiple_of(16));
    let padding = BAG_HEADER_SIZE - 69 - fields(more).len();
    let bag = Bag::with_header(VERSION_LINE, padding, more).each([0..3, 3..5], |bag, numbers| {
        let chunk = talk(numbers).stored("none", |bytes| cipher(bytes.len()));
        bag.put(chunk.state("encrypted", None).keep(0, "encrypted", 0))
    });
    let (pos, connection) = (bag.pos(), lay![text(cipher(40)), text(cipher(150))]);
    let bag = bag.lose("encrypted", connection).change(|index| index.connections.clear()).index_section();
    bag.set_counts(pos, 1, 2).section(pos, "encrypted")
}
