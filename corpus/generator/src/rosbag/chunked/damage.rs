//! Cases of bags that are cut, that were never closed, or that have damaged records.

use super::prelude::*;

cases! {
    "v2.0+open-chunk" [K10] "a killed recorder: the last chunk says that it has no bytes" => {
        let said = talker().said(6);
        with_second(talk(3..6).lose("cut", &said[..said.len() - 1]).plain().open().unindexed()).unindexed()
    };
    "v2.0+open-chunk+damaged-length" [K10 K22] "a killed recorder; a message in the open chunk claims bytes beyond its end" => {
        let content = spoilt(talk(3..4), |bytes| bytes[44] = 1).talk(&talker(), 5..9);
        with_second(content.plain().open()).unindexed()
    };
    "v2.0+open-chunk-indexed" [K10] "a chunk of an indexed bag whose lengths were never written" =>
        Bag::with([talk(0..3).plain().open(), talk(3..6).plain()]).close();
    "v2.0+open-bz2" [K10] "a killed recorder: nothing of the open chunk was written" =>
        Bag::with([talk(0..3).bz2()])
            .put(Content::new().stored("bz2", |_| b"BZh9".to_vec()).open().lose("cut", 0)).unindexed();
    "v2.0+cut-in-a-chunk" [K10] "inside a message of an uncompressed chunk" => {
        let said = talker().said(5);
        let cut = talk(3..5).lose("cut", &said[..20]).plain();
        with_second(cut.cut(said.len() - 20)).set_counts(99_999, 1, 2).unindexed_at(99_999)
    };
    "v2.0+cut-between-records" [K10] "after a whole message of a chunk" => {
        let cut = talk(3..5).lose("cut", b"").plain().cut(talker().said(5).len());
        with_second(cut).unindexed()
    };
    "v2.0+cut-in-lz4" [K10 K21] "in the second of two frames: the first is whole" => {
        let whole = lz4(&talk(3..5).bytes);
        let at = whole.len();
        let chunk = talk(3..6).stored("lz4", |_| lay![whole, lz4(&talk(5..6).bytes)[..9]]);
        with_second(chunk.cut(50).keep(2, "cut", at)).unindexed()
    };
    "v2.0+cut-in-bz2" [K10 K21] "a block is all or nothing" => {
        let chunk = talk(3..6).bz2().with(|chunk| chunk.data.truncate(chunk.data.len() - 20));
        with_second(chunk.cut(20).keep(0, "cut", 0)).unindexed()
    };
    "v2.0+cut-in-the-chunk-header" [K10] "nothing of the chunk is there" => {
        let head = talk(3..6).plain().head();
        Bag::with([talk(0..3)]).lose("cut", &head[..30]).unindexed()
    };
    "v2.0+cut-in-the-index" [K10] "inside the connection of the index section" => {
        let bag = with_second(talk(3..6));
        let (pos, record) = (bag.pos(), talker().record);
        bag.lose("cut", &record[..record.len() - 9]).set_counts(pos, 1, 2).unindexed_at(pos)
    };
    "v2.0+chunk-length-too-large" [K10] "40 bytes more than there are" =>
        wrong_length(talk(0..3).plain().with(|chunk| chunk.data_len += 40));
    "v2.0+chunk-length-too-small" [K10] "an lz4 frame that is longer" =>
        wrong_length(talk(0..3).lz4().with(|chunk| chunk.data_len -= 40));
    "v2.0+damaged-message-header" [K22] "the header length of a message is overwritten; index data name it" =>
        with_second(spoilt(named(), |bytes| bytes[..4].fill(0xff)).talk(&talker(), 5..7)).close_differing();
    "v2.0+damaged-message-header+unindexed" [K22] "reading goes on at the next record" => {
        let content = spoilt(talk(3..4), |bytes| bytes[..4].fill(0xff)).talk(&talker(), 5..8);
        with_second(content.plain().unindexed()).unindexed()
    };
    "v2.0+damaged-message-length" [K22]
        "the data length of a message is larger; index data tell where the next one starts" =>
        with_second(spoilt(named(), |bytes| bytes[42] += 60).talk(&talker(), 5..8)).close_differing();
    "v2.0+byte-missing-in-a-chunk" [K22] "a byte of a message is missing: the index names the places of before" =>
        byte_missing(named(), |_| {});
    "v2.0+byte-missing-in-a-chunk+index-damaged" [K22] "a byte of a message is missing, and one of the index data that name it" =>
        byte_missing(talk(3..4), |index| {
            index.remove(index.len() - 5 * 12);
            index.push(0);
        });
    "v2.0+damaged-bytes-in-a-chunk" [K22] "zeros where a connection and its first message were" => {
        let other = Conn::of(1, &Topic::string("/other"));
        let message = other.message(stamp(5), b"\x01\0\0\0x");
        let content = talk(3..5).lose("lost_in_chunk", vec![0; other.record.len() + message.len()]).talk(&other, 6..8);
        let offset = 2 * talker().said(0).len() + other.record.len();
        let offsets = [offset, offset + message.len(), offset + message.len() + other.said(0).len()].map(u32_of);
        let entries: Vec<_> = [5, 6, 7].map(stamp).into_iter().zip(offsets).collect();
        with_second(content.plain().with(|chunk| chunk.index[1] = index_data(1, &entries))).change(|index| {
            index.connections.insert(1, other);
            index.infos[1].counts[1].1 = 3;
        }).close_differing()
    };
    "v2.0+damaged-chunk-op" [K23] "the op of a chunk is none; its fields say what it is" => {
        let bag = Bag::with([talk(0..3)]).note("op_damaged");
        let at = bag.at() + place_of("op", &talk(3..6).plain().head());
        bag.put(talk(3..6)).set(at, [0x55]).close()
    };
    "v2.0+damaged-ops-in-a-chunk" [K23] "the ops of a connection and of a message are none; their fields say what they are" => {
        let content = Content::new().note("op_damaged").connect(&talker()).note("op_damaged");
        let (bag, chunk) = (Bag::recorder(), content.talk(&talker(), 0..3).plain());
        let op = |at: usize| bag.at() + chunk.head().len() + at + place_of("op", &chunk.data[at..]);
        let [connection, message] = [op(0), op(talker().record.len())];
        bag.put(chunk).put(talk(3..6)).set(connection, [0x87]).set(message, [0x82]).close()
    };
    "v2.0+chunk-headless" [K23] "the header of a chunk is overwritten: its messages are outside of chunks" => {
        let head = talk(3..6).plain().head();
        Bag::with([talk(0..3)]).lose("gap", vec![0; head.len()]).headless(talk(3..6)).unindexed()
    };
    "v2.0+garbage-between-chunks" [K24] "17 foreign bytes" =>
        Bag::with([talk(0..3)]).lose("gap", b"seventeen bytes!!").put(talk(3..6)).close();
    "v2.0+zeros-before-index" [K26] "49 zero bytes between the last index data and the index" =>
        with_second(talk(3..6)).note("zeros_before_index").lay([0; 49]).close();
    "v2.0+zeros-before-index+chunk-missing" [K24 K26] "the last chunk became zero bytes" => {
        let (bag, chunk) = (Bag::with([talk(0..3)]), talk(3..6).plain());
        let info = Info { pos: bag.pos(), span: (stamp(3), stamp(5)), ..bag.own.index.infos[0].clone() };
        bag.lose("gap", vec![0; chunk.head().len() + chunk.data.len()]).change(|index| index.infos.push(info))
            .close_differing()
    };
}

/// Returns a bag whose first chunk has a wrong length in its header.
fn wrong_length(chunk: Chunk) -> Bag {
    Bag::with([chunk.state("data_len wrong", "chunk_length")]).put(talk(3..6)).close()
}

/// Returns message 3, and expects index data for the next message.
fn named() -> Content {
    talk(3..4).name(&talker(), stamp(4))
}

/// Adds message 4 with a change, so that it is lost.
fn spoilt(content: Content, change: impl FnOnce(&mut Vec<u8>)) -> Content {
    content.lose("lost_in_chunk", talker().said(4).with(change))
}

/// Returns a bag with a message after `content` that lacks a byte. The index data has the offsets without this
/// damage, and is then changed.
fn byte_missing(content: Content, change: impl FnOnce(&mut Vec<u8>)) -> Bag {
    let content = spoilt(content, |bytes| drop(bytes.drain(50..51))).talk(&talker(), 5..8);
    let step = u32_of(talker().said(0).len());
    let mut index = index_data(0, &[0, 1, 2, 3, 4].map(|n| (stamp(3 + n), n * step)));
    change(&mut index);
    with_second(content.plain().with(|chunk| chunk.index[0] = index)).close_differing()
}
