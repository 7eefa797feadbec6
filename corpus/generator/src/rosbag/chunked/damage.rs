//! Bags that are cut, were never closed, or have damaged records.

use super::log::{Bag, Conn, Content, index_data, talk, talker};
use super::pack::lz4;
use crate::cases;
use crate::lay::lay;
use crate::rosbag::log::{Topic, u32_of};
use crate::rosbag::stamp;

cases! {
    "v2.0+open-chunk" [K10] "a killed recorder: the last chunk says that it has no bytes" => {
        let said = talker().said(6);
        Bag::recorder().put(talk(0..3).plain())
            .put(talk(3..6).lose("cut", &said[..said.len() - 1]).plain().size(0).data_len(0).unindexed()
                .state("unterminated", "chunk_open"))
            .unindexed()
    };
    "v2.0+open-chunk+damaged-length" [K10 K22] "a killed recorder; a message in the open chunk claims bytes beyond its end" => {
        let mut bytes = talker().said(4);
        bytes[44] = 1;
        let content = talk(3..4).lose("lost_in_chunk", bytes).talk(&talker(), 5..9);
        Bag::recorder().put(talk(0..3).plain())
            .put(content.plain().size(0).data_len(0).state("unterminated", "chunk_open"))
            .unindexed()
    };
    "v2.0+open-chunk-indexed" [K10] "a chunk of an indexed bag whose lengths were never written" =>
        Bag::recorder().put(talk(0..3).plain().size(0).data_len(0).state("unterminated", "chunk_open"))
            .put(talk(3..6).plain()).close();
    "v2.0+open-bz2" [K10] "a killed recorder: nothing of the open chunk was written" =>
        Bag::recorder().put(talk(0..3).bz2())
            .put(Content::new().stored("bz2", |_| b"BZh9".to_vec()).size(0).data_len(0).state("unterminated", "chunk_open")
                .lose("cut", 0))
            .unindexed();
    "v2.0+cut-in-a-chunk" [K10] "inside a message of an uncompressed chunk" => {
        let said = talker().said(5);
        let cut = talk(3..5).lose("cut", &said[..20]).plain();
        let len = u32_of(cut.data.len() + said.len() - 20);
        Bag::recorder().put(talk(0..3).plain()).put(cut.size(len).data_len(len).state("cut", None).unindexed())
            .set_header(99_999, 1, 2).unindexed_at(99_999)
    };
    "v2.0+cut-between-records" [K10] "after a whole message of a chunk" => {
        let cut = talk(3..5).lose("cut", b"").plain();
        let len = u32_of(cut.data.len() + talker().said(5).len());
        Bag::recorder().put(talk(0..3).plain()).put(cut.size(len).data_len(len).state("cut", None).unindexed())
            .unindexed()
    };
    "v2.0+cut-in-lz4" [K10 K21] "in the second of two frames: the first is whole" => {
        let whole = lz4(&talk(3..5).bytes);
        let at = whole.len();
        let chunk = talk(3..6).stored("lz4", |_| lay![whole, lz4(&talk(5..6).bytes)[..9]]);
        let len = u32_of(chunk.data.len() + 50);
        Bag::recorder().put(talk(0..3).plain())
            .put(chunk.data_len(len).state("cut", None).keep(2, "cut", at).unindexed()).unindexed()
    };
    "v2.0+cut-in-bz2" [K10 K21] "a block is all or nothing" => {
        let chunk = talk(3..6).bz2();
        let len = u32_of(chunk.data.len());
        Bag::recorder().put(talk(0..3).plain())
            .put(chunk.data(|data| data.truncate(data.len() - 20)).data_len(len).state("cut", None).keep(0, "cut", 0)
                .unindexed())
            .unindexed()
    };
    "v2.0+cut-in-the-chunk-header" [K10] "nothing of the chunk is there" => {
        let head = talk(3..6).plain().head();
        Bag::recorder().put(talk(0..3).plain()).lose("cut", &head[..30]).unindexed()
    };
    "v2.0+cut-in-the-index" [K10] "inside the connection of the index section" => {
        let bag = Bag::recorder().put(talk(0..3).plain()).put(talk(3..6).plain());
        let pos = bag.at() as u64;
        let record = talker().record();
        bag.lose("cut", &record[..record.len() - 9]).set_header(pos, 1, 2).unindexed_at(pos)
    };
    "v2.0+chunk-length-too-large" [K10] "40 bytes more than there are" => {
        let chunk = talk(0..3).plain();
        let len = u32_of(chunk.data.len() + 40);
        Bag::recorder().put(chunk.data_len(len).state("data_len wrong", "chunk_length")).put(talk(3..6).plain()).close()
    };
    "v2.0+chunk-length-too-small" [K10] "an lz4 frame that is longer" => {
        let chunk = talk(0..3).lz4();
        let len = u32_of(chunk.data.len() - 40);
        Bag::recorder().put(chunk.data_len(len).state("data_len wrong", "chunk_length")).put(talk(3..6).plain()).close()
    };
    "v2.0+damaged-message-header" [K22] "the header length of a message is overwritten; index data name it" => {
        let mut bytes = talker().said(4);
        bytes[..4].fill(0xff);
        let content = talk(3..4).name(&talker(), stamp(4)).lose("lost_in_chunk", bytes).talk(&talker(), 5..7);
        Bag::recorder().put(talk(0..3).plain()).put(content.plain()).close_differing()
    };
    "v2.0+damaged-message-header+unindexed" [K22] "reading goes on at the next record" => {
        let mut bytes = talker().said(4);
        bytes[..4].fill(0xff);
        let content = talk(3..4).lose("lost_in_chunk", bytes).talk(&talker(), 5..8);
        Bag::recorder().put(talk(0..3).plain()).put(content.plain().unindexed()).unindexed()
    };
    "v2.0+damaged-message-length" [K22] "the data length of a message is larger; index data tell where the next one starts" => {
        let mut bytes = talker().said(4);
        bytes[42] += 60;
        let content = talk(3..4).name(&talker(), stamp(4)).lose("lost_in_chunk", bytes).talk(&talker(), 5..8);
        Bag::recorder().put(talk(0..3).plain()).put(content.plain()).close_differing()
    };
    "v2.0+byte-missing-in-a-chunk" [K22] "a byte of a message is missing: the index names the places of before" => {
        let mut bytes = talker().said(4);
        bytes.remove(50);
        let content = talk(3..4).name(&talker(), stamp(4)).lose("lost_in_chunk", bytes).talk(&talker(), 5..8);
        let name = |entries: &mut Vec<Vec<u8>>| {
            let step = u32_of(talker().said(0).len());
            let named: Vec<_> = (0..5).map(|number| (stamp(3 + number), number * step)).collect();
            entries[0] = index_data(0, &named);
        };
        Bag::recorder().put(talk(0..3).plain()).put(content.plain().index(name)).close_differing()
    };
    "v2.0+byte-missing-in-a-chunk+index-damaged" [K22] "a byte of a message is missing, and one of the index data that name it" => {
        let mut bytes = talker().said(4);
        bytes.remove(50);
        let content = talk(3..4).lose("lost_in_chunk", bytes).talk(&talker(), 5..8);
        let name = |entries: &mut Vec<Vec<u8>>| {
            let step = u32_of(talker().said(0).len());
            let named: Vec<_> = (0..5).map(|number| (stamp(3 + number), number * step)).collect();
            entries[0] = index_data(0, &named);
            let data = entries[0].len() - 5 * 12;
            entries[0].remove(data);
            entries[0].push(0);
        };
        Bag::recorder().put(talk(0..3).plain()).put(content.plain().index(name)).close_differing()
    };
    "v2.0+damaged-bytes-in-a-chunk" [K22] "zeros where a connection and its first message were" => {
        let other = Conn::of(1, &Topic::string("/other"));
        let message = other.message(stamp(5), b"\x01\0\0\0x");
        let content = talk(3..5).lose("lost_in_chunk", vec![0; other.record().len() + message.len()]).talk(&other, 6..8);
        let name = |entries: &mut Vec<Vec<u8>>| {
            let offset = u32_of(2 * talker().said(0).len() + other.record().len());
            let said = u32_of(message.len());
            let step = u32_of(other.said(0).len());
            entries[1] = index_data(1, &[
                (stamp(5), offset), (stamp(6), offset + said), (stamp(7), offset + said + step),
            ]);
        };
        Bag::recorder().put(talk(0..3).plain()).put(content.plain().index(name)).change(|own| {
            own.connections.insert(1, other.clone());
            own.infos[1].counts[1].1 = 3;
        }).close_differing()
    };
    "v2.0+damaged-chunk-op" [K23] "the op of a chunk is none; its fields say what it is" => {
        let chunk = talk(3..6).plain();
        let mut bag = Bag::recorder().put(talk(0..3).plain());
        let at = bag.at() + chunk.head().windows(3).position(|part| part == b"op=").expect("an op") + 3;
        bag = bag.note("op_damaged").put(chunk).set(at, [0x55]);
        bag.close()
    };
    "v2.0+damaged-ops-in-a-chunk" [K23] "the ops of a connection and of a message are none; their fields say what they are" => {
        let content = Content::new().note("op_damaged").connect(&talker()).note("op_damaged");
        let (bag, chunk) = (Bag::recorder(), content.talk(&talker(), 0..3).plain());
        let op = |at: usize| at + chunk.data[at..].windows(3).position(|part| part == b"op=").expect("an op") + 3;
        let (data_at, ops) = (bag.at() + chunk.head().len(), [op(0), op(talker().record().len())]);
        bag.put(chunk).put(talk(3..6).plain()).set(data_at + ops[0], [0x87]).set(data_at + ops[1], [0x82]).close()
    };
    "v2.0+chunk-headless" [K23] "the header of a chunk is overwritten: its messages are outside of chunks" => {
        let head = talk(3..6).plain().head();
        Bag::recorder().put(talk(0..3).plain()).lose("gap", vec![0; head.len()]).headless(talk(3..6)).unindexed()
    };
    "v2.0+garbage-between-chunks" [K24] "17 foreign bytes" =>
        Bag::recorder().put(talk(0..3).plain()).lose("gap", b"seventeen bytes!!").put(talk(3..6).plain())
            .close();
    "v2.0+zeros-before-index" [K26] "49 zero bytes between the last index data and the index" =>
        Bag::recorder().put(talk(0..3).plain()).put(talk(3..6).plain()).note("zeros_before_index").lay([0; 49]).close();
    "v2.0+zeros-before-index+chunk-missing" [K24 K26] "the last chunk became zero bytes" => {
        let (bag, chunk) = (Bag::recorder().put(talk(0..3).plain()), talk(3..6).plain());
        let mut info = bag.own.infos[0].clone();
        (info.pos, info.span) = (bag.at() as u64, (stamp(3), stamp(5)));
        bag.lose("gap", vec![0; chunk.head().len() + chunk.data.len()]).change(|own| own.infos.push(info))
            .close_differing()
    };
}
