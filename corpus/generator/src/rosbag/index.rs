//! Cases about the index, and bag headers that contradict it.

use super::prelude::*;

cases! {
    "index-missing+pos-0" [B14] "killed between two records" => recorded(0..3).unindexed();
    "index-missing+pos-stale" [B14] "the position of the file before, as a split leaves it" =>
        recorded(0..3).set_header("index_pos", 12_345_678_u64).unindexed_at(12_345_678);
    "index-pos-wrong" [B14 B9] "points at a message" =>
        recorded(0..3).close().set_header("index_pos", 4120_u64).note_header("index_pos_wrong")
            .in_first_section("index_pos", 4120);
    "index-first-entry-is-data" [B7] "not at the definition" => {
        let bag = Bag::recorder().define(&chatter());
        let at = bag.pos();
        bag.talk(&chatter(), 1..4).entries("/chatter", |entries| entries[0].1 = at).close()
    };
    "index-names-no-message" [B9] "an entry too many, one too few" =>
        recorded(0..4).entries("/chatter", |entries| entries[2].1 += 1).close_differing();
    "index-names-a-missing-message" [B9] "a message was cut out between two records" => {
        let bag = recorded(0..3);
        let gone = bag.pos();
        bag.entries("/chatter", |entries| entries.push((stamp(3), gone))).lose("messages_missing", [])
            .close_differing()
    };
    "index-with-other-stamps" [B9] "the stamp of an entry is not the message's" =>
        recorded(0..4).entries("/chatter", |entries| entries[1].0 = stamp(9)).close_differing();
    "index-lacks-a-topic" [B9 B23] "one of two topics is not in it" => {
        let bag = recorded(0..2);
        let records = bag.index_records();
        bag.talk(&Topic::string("/other"), 0..2).note("index_differs").close_with(records, "differs")
    };
    "index-of-a-topic-without-messages" [B23] "count 0, as a full disk left it" => {
        let bag = recorded(0..2);
        let lost = index_record("/lost", Some(&chatter().ty), [0, 0], b"");
        let records = bag.index_records().with(|records| records.push(lost));
        bag.close_with(records, "exact")
    };
    "index-of-another-version" [B26] "version 1" => unusable(1, 2);
    "index-count-wrong" [B26] "more entries than bytes" => unusable(0, 0x0fff_ffff);
    "index-in-another-order" [B9] "topics not by name" => {
        let bag = Bag::recorder().each(["/b", "/a"], |bag, name| bag.talk(&Topic::string(name), 0..2));
        let records = bag.index_records().with(|records| records.reverse());
        bag.close_with(records, "exact")
    };
}

/// Returns a bag whose index record has the version `ver` and the count `count`.
fn unusable(ver: u32, count: usize) -> Bag {
    let mut data = Vec::new();
    let bag = recorded(0..2).entries("/chatter", |entries| data = lay![*entries]);
    let record = index_record("/chatter", Some(&chatter().ty), [ver, u32_of(count)], &data);
    bag.note("index_unusable").note("index_differs").close_with(vec![record], "differs")
}
