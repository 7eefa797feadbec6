//! Which topics of several logs become one, and which instance they are.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use rovelog_core::{Align, LogReader, Value};

use crate::error::UlogError;
use crate::reader::UlogReader;

/// The topics of a merged log.
#[derive(Debug, Default)]
pub(super) struct Topics {
    /// Their places are their message ids.
    pub(super) merged: Vec<MergedTopic>,
    /// For each log, what its topics become.
    pub(super) of_log: Vec<Vec<usize>>,
    /// Topics with another instance than before: which log, from, to.
    pub(super) renamed: Vec<(usize, String, String)>,
}

/// A topic of the merged log.
#[derive(Debug)]
pub(super) struct MergedTopic {
    pub(super) type_name: String,
    pub(super) multi_id: u8,
    /// Whether any log defines its format.
    pub(super) defined: bool,
    /// When its rows are, for each log that has some.
    times: Vec<(usize, RangeInclusive<i64>)>,
}

/// Plans the topics of the merged log; `shifts` are microseconds.
pub(super) fn plan_topics(logs: &[&UlogReader], shifts: &[u64], align: Align) -> Result<Topics, UlogError> {
    let mut plan = Topics::default();
    let vehicles: Vec<_> = logs.iter().map(|log| vehicle(log)).collect();
    let one_recording = |a: usize, b: usize| {
        align != Align::Utc && (vehicles[a].is_none() || vehicles[b].is_none() || vehicles[a] == vehicles[b])
    };
    // Instances that some log has by itself stay its own.
    let mut taken: HashSet<(&str, u8)> = HashSet::new();
    for log in logs {
        let ids = log.definitions().subscriptions().iter().map(|subscription| subscription.multi_id);
        taken.extend(log.topics().iter().zip(ids).map(|(topic, id)| (topic.type_name.as_str(), id)));
    }
    // By name, instance, and 1 for the second series of both in one log.
    let mut places: HashMap<(&str, u8, usize), usize> = HashMap::new();
    for (number, (log, shift)) in logs.iter().zip(shifts).enumerate() {
        let shift = i64::try_from(*shift).unwrap_or(i64::MAX).saturating_mul(1000);
        let mut repeats: HashMap<(&str, u8), usize> = HashMap::new();
        let mut of_log = Vec::new();
        for (topic, subscription) in log.topics().iter().zip(log.definitions().subscriptions()) {
            let (type_name, multi_id) = (topic.type_name.as_str(), subscription.multi_id);
            let repeat = repeats.entry((type_name, multi_id)).or_default();
            let time = |time: rovelog_core::Timestamp| time.nanos.saturating_add(shift);
            let times = topic.first.zip(topic.last).map(|(first, last)| time(first)..=time(last));
            let fits = |merged: &MergedTopic| {
                let Some(times) = &times else { return true };
                merged.times.iter().all(|(other, span)| {
                    one_recording(number, *other) || times.end() < span.start() || span.end() < times.start()
                })
            };
            let place = match places.get(&(type_name, multi_id, *repeat)).copied() {
                Some(place) if fits(&plan.merged[place]) => place,
                other => {
                    let renamed = other.is_some();
                    let multi_id = if renamed {
                        free(&mut taken, type_name)
                            .ok_or_else(|| UlogError::NoInstanceLeft { topic: topic.name.clone() })?
                    } else {
                        multi_id
                    };
                    if renamed {
                        let to = format!("{type_name}/{multi_id}");
                        plan.renamed.push((number, topic.name.clone(), to));
                    }
                    let repeat = if renamed { 0 } else { *repeat };
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
    // Message ids have 16 bits.
    match plan.merged.get(usize::from(u16::MAX) + 1) {
        Some(topic) => Err(UlogError::NoInstanceLeft { topic: topic.type_name.clone() }),
        None => Ok(plan),
    }
}

/// Returns the vehicle that wrote a log, where it says so.
fn vehicle(log: &UlogReader) -> Option<Value> {
    log.infos().remove("sys_uuid")
}

/// Returns the first instance of a type that no log has.
fn free<'a>(taken: &mut HashSet<(&'a str, u8)>, type_name: &'a str) -> Option<u8> {
    (0..=u8::MAX).find(|id| taken.insert((type_name, *id)))
}
