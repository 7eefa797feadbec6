//! How many untouched records are still found after damage of pages, sectors and single bytes, and
//! how many records are found that never were.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use rovelog::{AnyLog, Bytes, ReadOptions, Record, RecoverOptions, Select, TopicId};

use super::operators::{Operator, Random};
use super::{Subject, pages};

/// Results of one operator on the logs of one format.
#[derive(Clone, Debug, Default)]
pub struct Survival {
    /// Damaged logs with untouched records.
    pub files: u64,
    /// Records of which no byte is touched, of topics that start before the damage.
    pub untouched: u64,
    /// Number of those that are found.
    pub found: u64,
    /// The log with the smallest share: found, untouched, and its name with the seed.
    pub worst: Option<(u64, u64, String)>,
    /// Records that neither this log nor the other one of an interleaved pair has.
    pub false_records: u64,
    /// Records that are found more often than the log has them, or are from the other log.
    pub copies: u64,
}

/// A time in nanoseconds and a payload. Not the topic: its name may depend on those of others.
type Key = (Option<i64>, Vec<u8>);

/// Records of a log by time and payload.
fn count(log: &AnyLog) -> HashMap<Key, u64> {
    let mut counts = HashMap::new();
    for record in log.records(&Select::all()) {
        let record = record.expect("what the reader lists it can read");
        *counts.entry((nanos(log, &record), record.payload.to_vec())).or_default() += 1;
    }
    counts
}

/// Returns the recovered log of these bytes; `None` if they are refused or have no records.
fn recovered(bytes: Vec<u8>) -> Option<AnyLog> {
    let log = rovelog::from_bytes(bytes.into(), &ReadOptions::default()).ok()?;
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    rovelog::from_bytes(out.into(), &ReadOptions::default()).ok()
}

/// Returns the time of a record, as far as it is its own: samples of an RLD have none.
fn nanos(log: &AnyLog, record: &Record<'_>) -> Option<i64> {
    record.time.map(|time| time.nanos).filter(|_| log.format().id != "rld")
}

/// A record of the undamaged log, and where its bytes are.
struct Place {
    range: Range<usize>,
    topic: TopicId,
    key: Key,
}

/// Returns the records of an undamaged log with their bytes; `None` if some are compressed.
fn places(bytes: &Bytes) -> Option<Vec<Place>> {
    let log = rovelog::from_bytes(bytes.clone(), &ReadOptions::default()).ok()?;
    let mut places = Vec::new();
    for record in log.records(&Select::all()) {
        let record = record.ok()?;
        let payload = record.payload.borrowed()?;
        let end = (payload.as_ptr() as usize).checked_sub(bytes.as_ptr() as usize)? + payload.len();
        let start = usize::try_from(record.offset).ok()?;
        if end < start || end > bytes.len() {
            return None;
        }
        places.push(Place {
            range: start..end,
            topic: record.topic.id,
            key: (nanos(&log, &record), payload.to_vec()),
        });
    }
    Some(places)
}

/// Returns the format, and old bags apart: nothing in their records can be searched for.
fn kind(subject: &Subject) -> &'static str {
    let line = &subject.bytes[..subject.bytes.len().min(24)];
    let is = |version: &[u8]| line.windows(version.len()).any(|part| part == version);
    let is_old = !is(b" V1.2") && !is(b" V2.");
    if subject.format == "rosbag" && is_old { "rosbag before V1.2" } else { subject.format }
}

/// Damages every undamaged log of at least `smallest` bytes with each operator and seed. Damaged logs
/// are written to the folder `keep`, for other readers; their names have the untouched records, how
/// many of them are found, and the number of false ones.
///
/// # Panics
/// Panics if a recovered log cannot be read, or a damaged one not written.
pub fn survival(
    subjects: &[Subject],
    seeds: u64,
    smallest: usize,
    keep: Option<&Path>,
) -> BTreeMap<&'static str, Vec<Survival>> {
    let mut results = BTreeMap::<_, Vec<Survival>>::new();
    let intact: Vec<_> = subjects.iter().filter(|subject| subject.bytes.len() >= smallest).collect();
    for (number, subject) in intact.iter().enumerate() {
        let bytes = Bytes::copy_from_slice(&subject.bytes);
        let log = rovelog::from_bytes(bytes.clone(), &ReadOptions::default()).expect("a subject opens");
        let Some(places) = places(&bytes).filter(|_| log.info().lost.losses == 0) else { continue };
        drop(log);
        let others = || intact.iter().cycle().skip(number + 1);
        let other = others().find(|other| other.format == subject.format).unwrap_or(&intact[number]);
        let strangers = recovered(other.bytes.clone()).map(|log| count(&log)).unwrap_or_default();
        let strangers: HashSet<_> = strangers.into_keys().map(|(_, payload)| payload).collect();
        let rows =
            results.entry(kind(subject)).or_insert_with(|| vec![Survival::default(); Operator::PAGES.len()]);
        for (operator, row) in Operator::PAGES.into_iter().zip(rows) {
            for seed in 0..seeds {
                let mut random = Random::of(&subject.name, operator, seed);
                let pieces = pages::pieces(&subject.bytes, operator, &mut random, &other.bytes)
                    .expect("an operator of pages");
                let (damaged, first) = pages::joined(&subject.bytes, &pieces);
                let name = format!("{} seed {seed}", subject.name);
                let kept = keep.map(|_| damaged.clone());
                let own = pages::own(&pieces);
                let counts = row.add(operator, &places, &own, damaged, first, &strangers, name);
                if let (Some(folder), Some(damaged), Some([must, good, wrong])) = (keep, kept, counts) {
                    let (damage, log) = (operator.name().replace(' ', "-"), &subject.name);
                    let folder = folder.join(subject.format);
                    let path = folder.join(format!("{damage}--{must}--{good}--{wrong}--{seed}--{log}"));
                    std::fs::create_dir_all(folder).expect("a folder for damaged logs");
                    std::fs::write(path, damaged).expect("a damaged log");
                }
            }
        }
    }
    results
}

impl Survival {
    /// Counts one damaged log; returns its untouched records, those of them that are found, and its
    /// false records, if any is untouched.
    #[expect(clippy::too_many_arguments, reason = "one caller, which has them all")]
    fn add(
        &mut self,
        operator: Operator,
        places: &[Place],
        own: &[Range<usize>],
        damaged: Vec<u8>,
        first: usize,
        strangers: &HashSet<Vec<u8>>,
        name: String,
    ) -> Option<[u64; 3]> {
        // A copy as text touches everything, definitions too, so that no topic starts before it.
        let early: HashSet<TopicId> = places
            .iter()
            .filter(|place| place.range.end <= first || operator == Operator::TextMode)
            .map(|place| place.topic)
            .collect();
        let within = |range: &Range<usize>| {
            // Pieces may overlap, where a page is there twice.
            own.iter().any(|piece| piece.start <= range.start && range.end <= piece.end)
        };
        let mut untouched = HashMap::<&Key, u64>::new();
        let mut all = HashMap::<&Key, u64>::new();
        for place in places {
            *all.entry(&place.key).or_default() += 1;
            if early.contains(&place.topic) && within(&place.range) {
                *untouched.entry(&place.key).or_default() += 1;
            }
        }
        let found = recovered(damaged).map(|log| count(&log)).unwrap_or_default();
        let must: u64 = untouched.values().sum();
        let good = untouched.iter().map(|(key, n)| (*n).min(found.get(*key).copied().unwrap_or(0))).sum();
        let before = self.false_records;
        for (key, n) in &found {
            match all.get(key) {
                Some(had) => self.copies += n.saturating_sub(*had),
                None if strangers.contains(&key.1) => self.copies += n,
                None => self.false_records += n,
            }
        }
        if must == 0 {
            return None;
        }
        self.files += 1;
        self.untouched += must;
        self.found += good;
        let worse = |(best, of, _): &(u64, u64, String)| {
            u128::from(good) * u128::from(*of) < u128::from(*best) * u128::from(must)
        };
        if self.worst.as_ref().is_none_or(worse) {
            self.worst = Some((good, must, name));
        }
        Some([must, good, self.false_records - before])
    }
}
