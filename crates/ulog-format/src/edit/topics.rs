//! Assignment of the topics of several logs to topics of the merged log (rule M3 of
//! docs/formats/ulog.md).

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use rovelog_core::{Align, LogReader, Value};

use crate::error::UlogError;
use crate::reader::UlogReader;

/// The topics of a merged log.
#[derive(Debug, Default)]
pub(super) struct Topics {
    /// The topics of the merged log. The index of a topic in this list is its message id.
    pub(super) merged: Vec<MergedTopic>,
    /// For each log and each topic of the log, the index of the topic in `merged`.
    pub(super) of_log: Vec<Vec<usize>>,
    /// Topics whose instance number has changed. Each entry consists of the index of the log, the
    /// old name and the new name.
    pub(super) renamed: Vec<(usize, String, String)>,
}

/// A topic of the merged log.
#[derive(Debug)]
pub(super) struct MergedTopic {
    pub(super) type_name: String,
    pub(super) multi_id: u8,
    /// True if any log defines the format of the topic.
    pub(super) defined: bool,
    /// Time ranges of the topic's rows in nanoseconds, each with the index of the log that contains
    /// the rows.
    times: Vec<(usize, RangeInclusive<i64>)>,
}

/// Assigns the topics of `logs` to topics of the merged log. `shifts` contains the number of
/// microseconds to add to the times of each log.
pub(super) fn plan_topics(logs: &[&UlogReader], shifts: &[u64], align: Align) -> Result<Topics, UlogError> {
    let mut plan = Topics::default();
    let vehicles: Vec<_> = logs.iter().map(|log| vehicle(log)).collect();
    let one_recording = |a: usize, b: usize| {
        align != Align::Utc && (vehicles[a].is_none() || vehicles[b].is_none() || vehicles[a] == vehicles[b])
    };
    // A new instance number must not be in use in any log, because the rows of two topics would
    // then be mixed.
    let mut taken: HashSet<(&str, u8)> = HashSet::new();
    for log in logs {
        let ids = log.definitions().subscriptions().iter().map(|subscription| subscription.multi_id);
        taken.extend(log.topics().iter().zip(ids).map(|(topic, id)| (topic.type_name.as_str(), id)));
    }
    // Index in `merged`, by topic name, instance and repetition. The repetition is 0 for the first
    // topic of a log with this name and instance, and 1 for the second, such as `t/0#2`.
    let mut places: HashMap<(&str, u8, usize), usize> = HashMap::new();
    for (number, (log, shift)) in logs.iter().zip(shifts).enumerate() {
        let shift = crate::clock::nanos_of(*shift);
        let mut repeats: HashMap<(&str, u8), usize> = HashMap::new();
        let mut of_log = Vec::new();
        for (topic, subscription) in log.topics().iter().zip(log.definitions().subscriptions()) {
            let (type_name, multi_id) = (topic.type_name.as_str(), subscription.multi_id);
            let repeat = repeats.entry((type_name, multi_id)).or_default();
            let time = |time: rovelog_core::Timestamp| time.nanos.saturating_add(shift);
            let times = topic.first.zip(topic.last).map(|(first, last)| time(first)..=time(last));
            // Rows from different vehicles or boots may share a topic only if their times do not
            // overlap.
            let fits = |merged: &MergedTopic| {
                let Some(times) = &times else { return true };
                merged.times.iter().all(|(other, span)| {
                    one_recording(number, *other) || times.end() < span.start() || span.end() < times.start()
                })
            };
            let place = match places.get(&(type_name, multi_id, *repeat)).copied() {
                Some(place) if fits(&plan.merged[place]) => place,
                other => {
                    let (multi_id, repeat) = if other.is_none() {
                        (multi_id, *repeat)
                    } else {
                        let free_id = free(&mut taken, type_name)
                            .ok_or_else(|| UlogError::NoInstanceLeft { topic: topic.name.clone() })?;
                        let to = format!("{type_name}/{free_id}");
                        plan.renamed.push((number, topic.name.clone(), to));
                        (free_id, 0)
                    };
                    places.insert((type_name, multi_id, repeat), plan.merged.len());
                    let (type_name, times) = (type_name.to_owned(), Vec::new());
                    plan.merged.push(MergedTopic { type_name, multi_id, defined: false, times });
                    plan.merged.len() - 1
                }
            };
            *repeat += 1;
            plan.merged[place].defined |= subscription.layout.is_ok();
            plan.merged[place].times.extend(times.map(|times| (number, times)));
            of_log.push(place);
        }
        plan.of_log.push(of_log);
    }
    // Message ids have 16 bits, so a log can have at most 65 536 topics.
    match plan.merged.get(usize::from(u16::MAX) + 1) {
        Some(topic) => Err(UlogError::NoInstanceLeft { topic: topic.type_name.clone() }),
        None => Ok(plan),
    }
}

/// Returns the id of the vehicle that recorded a log, or `None` if the log does not contain the id.
fn vehicle(log: &UlogReader) -> Option<Value> {
    log.infos().remove("sys_uuid")
}

/// Reserves the lowest instance number of a topic that is not used in any log. Returns `None` if
/// all numbers are used.
fn free<'a>(taken: &mut HashSet<(&'a str, u8)>, type_name: &'a str) -> Option<u8> {
    (0..=u8::MAX).find(|id| taken.insert((type_name, *id)))
}
