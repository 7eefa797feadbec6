//! Cases of ROS bags, grouped by theme.

mod bag;
mod compressed;
mod damage;
mod definitions;
mod frames;
mod index;
mod large;
mod lay;
mod messages;
mod old;

use super::{Case, Format, Made};
use bag::{Bag, Stamp, Topic};

impl Case {
    /// A ROS bag; `rules` are the numbers in `docs/formats/rosbag.md`.
    const fn rosbag(
        name: &'static str,
        purpose: &'static str,
        rules: &'static [&'static str],
        recipe: fn() -> Made,
    ) -> Self {
        Self { name, purpose, rules, recipe }
    }
}

/// In the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "rosbag",
    extension: "bag",
    cases: &[
        frames::CASES,
        compressed::CASES,
        index::CASES,
        definitions::CASES,
        messages::CASES,
        damage::CASES,
        old::CASES,
    ],
    large: large::LARGE,
};

/// Stamp number `i`: 100 ms apart, from the first second of 2010.
fn stamp(i: u32) -> Stamp {
    (1_262_304_000 + i / 10, i % 10 * 100_000_000)
}

/// Messages of a topic of texts, the first one behind its definition.
fn talk(bag: &mut Bag, topic: &Topic, numbers: std::ops::Range<u32>) {
    for i in numbers {
        if i == 0 {
            bag.define(topic);
        }
        bag.say(topic, stamp(i), &format!("m{i}"));
    }
}

/// A bag of a recorder with one topic of texts, not closed yet.
fn recorded(numbers: std::ops::Range<u32>) -> (Bag, Topic) {
    let mut bag = Bag::recorder();
    let topic = Topic::string("/chatter");
    talk(&mut bag, &topic, numbers);
    (bag, topic)
}
