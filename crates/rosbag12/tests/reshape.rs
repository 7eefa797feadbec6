//! Parts of bags, and several bags as one.

mod support;

use rosbag12::{BagReader, Rosbag};
use rovelog_core::{Align, Format, LogReader, Select};
use rovelog_testing::{Content, content};
use support::{LOGS, open, readable};

fn slice(bag: &BagReader, select: &Select) -> (BagReader, rovelog_core::Sliced) {
    let mut out = Vec::new();
    let sliced = LogReader::slice(bag, select, &mut out).expect("memory takes all");
    assert_eq!(sliced.bytes, out.len() as u64);
    (open(&out.into()), sliced)
}

#[test]
fn a_slice_holds_what_was_selected() {
    for (log, bag) in readable() {
        let (Some(start), Some(end)) = (bag.info().start, bag.info().end) else { continue };
        let middle = start.nanos / 2 + end.nanos / 2;
        let topic =
            bag.topics().iter().find(|topic| topic.count > 0).expect("there are messages").name.clone();
        let selects = [
            Select::all(),
            Select::all().between(Some(middle), None),
            Select::all().between(None, Some(middle)),
            Select::topic(topic.clone()),
            Select::topic(topic).between(Some(middle), Some(end.nanos)).with_last_before(),
        ];
        for select in selects {
            let (part, sliced) = slice(&bag, &select);
            let mut want: Vec<Content> = bag.records(&select).map(|r| content(&r.expect("sound"))).collect();
            let mut got: Vec<Content> = part.records_in_file_order().map(|r| content(&r)).collect();
            want.sort();
            got.sort();
            // A second type keeps its number only while the first is there.
            let bare = |list: &[Content]| list.iter().map(|s| (s.1, s.2.clone())).collect::<Vec<_>>();
            assert!(bare(&got) == bare(&want), "{} {select:?}", log.name);
            assert_eq!(sliced.records, want.len() as u64, "{}", log.name);
            assert_eq!(part.info().lost.losses, 0, "{}", log.name);
        }
    }
}

/// The slices before and behind a moment, merged again, are the whole.
#[test]
fn parts_are_merged_into_the_whole() {
    for (log, bag) in readable().filter(|(_, bag)| bag.is_intact()) {
        let (Some(start), Some(end)) = (bag.info().start, bag.info().end) else { continue };
        let middle = start.nanos / 2 + end.nanos / 2;
        let (before, _) = slice(&bag, &Select::all().between(None, Some(middle)));
        let (behind, _) = slice(&bag, &Select::all().between(Some(middle), None));
        let mut out = Vec::new();
        let merged = Rosbag::merge(&[&behind, &before], Align::Shared, &mut out).expect("memory takes all");
        let whole = open(&out.into());
        assert_eq!(merged.records, bag.info().records, "{}", log.name);
        let got: Vec<Content> = whole.records_in_file_order().map(|r| content(&r)).collect();
        let want: Vec<Content> = bag.records(&Select::all()).map(|r| content(&r.expect("sound"))).collect();
        // By time, so that only messages of one stamp may change places.
        assert!(got.is_sorted_by_key(|seen| seen.1), "{}", log.name);
        let sorted = |mut list: Vec<Content>| {
            list.sort();
            list
        };
        assert!(sorted(got) == sorted(want), "{}", log.name);
        assert!(whole.is_intact(), "{}", log.name);
    }
}

#[test]
fn relative_times_are_not_merged_unasked() {
    let bag = open(&LOGS.case("v1.0").bytes);
    assert!(Rosbag::merge(&[&bag, &bag], Align::Shared, &mut Vec::new()).is_err());
    assert_eq!(Rosbag::merge(&[&bag, &bag], Align::AsIs, &mut Vec::new()).expect("asked for").records, 8);
}
