//! Counts how many records survive damage to pages, sectors and single bytes. Also counts false
//! records, which are found although the undamaged log does not contain them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use rovelog::{AnyLog, Bytes, ReadOptions, Record, RecoverOptions, Select, TopicId};

use super::operators::{Operator, Random};
use super::{Subject, pages};

/// Results of one kind of damage for all logs of one format.
#[derive(Clone, Debug, Default)]
pub struct Survival {
    /// Number of damaged logs that contain untouched records.
    pub files: u64,
    /// Number of untouched records. No byte of such a record is damaged, and its topic starts
    /// before the damage.
    pub untouched: u64,
    /// Number of untouched records that are found in the damaged logs.
    pub found: u64,
    /// The log in which the smallest part of the untouched records is found.
    pub worst: Option<Worst>,
    /// Number of false records. They are in neither of the two logs from which the damaged log was
    /// made.
    pub false_records: u64,
    /// Number of copies. These are records that are found more often than the undamaged log
    /// contains them, or that come from the second log.
    pub copies: u64,
}

/// The log in which the smallest part of the untouched records is found.
#[derive(Clone, Debug)]
pub struct Worst {
    /// Number of untouched records that are found in this log.
    pub found: u64,
    /// Number of untouched records in this log.
    pub untouched: u64,
    /// Name of the log, and the seed of its damage.
    pub name: String,
}

/// Time in nanoseconds and payload, which identify a record. The name of a topic may depend on
/// which other topics are found, so it does not identify a record.
type Key = (Option<i64>, Vec<u8>);

/// Counts how often each record occurs in a log. Records are identified by time and payload.
fn count(log: &AnyLog) -> HashMap<Key, u64> {
    let mut counts = HashMap::new();
    for record in log.records(&Select::all()) {
        let record = record.expect("a listed record can be read");
        *counts.entry((nanos(log, &record), record.payload.to_vec())).or_default() += 1;
    }
    counts
}

/// Recovers a damaged log. Returns `None` if the reader rejects the log, or if it contains no
/// records.
fn recovered(bytes: Vec<u8>) -> Option<AnyLog> {
    let log = rovelog::from_bytes(bytes.into(), &ReadOptions::default()).ok()?;
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    rovelog::from_bytes(out.into(), &ReadOptions::default()).ok()
}

/// Returns the time of a record, or `None` for a record in an RLD log. The rows of an RLD log do
/// not store a time.
fn nanos(log: &AnyLog, record: &Record<'_>) -> Option<i64> {
    record.time.map(|time| time.nanos).filter(|_| log.format().id != "rld")
}

/// Location of a record in the undamaged log.
struct Place {
    /// Range of the bytes of the record in the file.
    range: Range<usize>,
    topic: TopicId,
    key: Key,
}

/// Returns the locations of all records in an undamaged log. Returns `None` if some records are
/// compressed.
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

/// Returns the name of the table row to which a log belongs. Bags before V1.2 have a separate row,
/// because a search after damage cannot recognize their records.
fn kind(subject: &Subject) -> &'static str {
    let line = &subject.bytes[..subject.bytes.len().min(24)];
    let is = |version: &[u8]| line.windows(version.len()).any(|part| part == version);
    let is_old = !is(b" V1.2") && !is(b" V2.");
    if subject.format == "rosbag" && is_old { "rosbag before V1.2" } else { subject.format }
}

/// Damages every undamaged log of at least `min_bytes` with each kind of damage and each seed.
///
/// The damaged logs are written to the folder `keep`, so that other programs can read them. Their
/// file names contain the numbers of untouched, found and false records.
///
/// # Panics
/// Panics if a recovered log cannot be read, or if a damaged log cannot be written.
pub fn survival(
    subjects: &[Subject],
    seeds: u64,
    min_bytes: usize,
    keep: Option<&Path>,
) -> BTreeMap<&'static str, Vec<Survival>> {
    let mut results = BTreeMap::<_, Vec<Survival>>::new();
    let intact: Vec<_> = subjects.iter().filter(|subject| subject.bytes.len() >= min_bytes).collect();
    for (number, subject) in intact.iter().enumerate() {
        let bytes = Bytes::copy_from_slice(&subject.bytes);
        let log = rovelog::from_bytes(bytes.clone(), &ReadOptions::default()).expect("a subject opens");
        let Some(places) = places(&bytes).filter(|_| log.info().lost.losses == 0) else { continue };
        drop(log);
        let others = || intact.iter().cycle().skip(number + 1);
        let other = others().find(|other| other.format == subject.format).unwrap_or(&intact[number]);
        let foreign = recovered(other.bytes.clone()).map(|log| count(&log)).unwrap_or_default();
        let foreign: HashSet<_> = foreign.into_keys().map(|(_, payload)| payload).collect();
        let rows =
            results.entry(kind(subject)).or_insert_with(|| vec![Survival::default(); Operator::PAGES.len()]);
        for (operator, row) in Operator::PAGES.into_iter().zip(rows) {
            for seed in 0..seeds {
                let mut random = Random::of(&subject.name, operator, seed);
                let pieces = pages::pieces(&subject.bytes, operator, &mut random, &other.bytes)
                    .expect("an operator of pages");
                let (damaged, first) = pages::joined(&subject.bytes, &pieces);
                let case = Case {
                    operator,
                    places: &places,
                    untouched: pages::untouched(&pieces),
                    first,
                    foreign: &foreign,
                    name: format!("{} seed {seed}", subject.name),
                };
                let counts = row.add(&case, damaged.clone());
                if let (Some(folder), Some(Counts { untouched, found, false_records })) = (keep, counts) {
                    let (damage, log) = (operator.name().replace(' ', "-"), &subject.name);
                    let folder = folder.join(subject.format);
                    let name = format!("{damage}--{untouched}--{found}--{false_records}--{seed}--{log}");
                    std::fs::create_dir_all(&folder).expect("the folder can be created");
                    std::fs::write(folder.join(name), damaged).expect("the damaged log can be written");
                }
            }
        }
    }
    results
}

/// A damaged log, and the records that should be found in it.
struct Case<'a> {
    operator: Operator,
    /// Locations of the records in the undamaged log.
    places: &'a [Place],
    /// Ranges of the undamaged log that remain untouched.
    untouched: Vec<Range<usize>>,
    /// Offset of the first byte that differs from the undamaged log.
    first: usize,
    /// Payloads of the records in the second log, from which some kinds of damage take bytes.
    foreign: &'a HashSet<Vec<u8>>,
    /// Name of the log, and the seed of its damage.
    name: String,
}

/// Numbers of untouched, found and false records in one damaged log.
struct Counts {
    untouched: u64,
    found: u64,
    false_records: u64,
}

impl Survival {
    /// Adds the counts of one damaged log. Returns `None` if no record remains untouched.
    fn add(&mut self, case: &Case<'_>, damaged: Vec<u8>) -> Option<Counts> {
        // Copying a log as text may change any part of it, including the definitions at its start.
        // Then no topic starts before the damage, so the records of all topics are counted.
        let is_text_mode = case.operator == Operator::TextMode;
        let early = case.places.iter().filter(|place| place.range.end <= case.first || is_text_mode);
        let early: HashSet<TopicId> = early.map(|place| place.topic).collect();
        let is_untouched = |range: &Range<usize>| {
            // If a page is repeated, some ranges overlap.
            case.untouched.iter().any(|piece| piece.start <= range.start && range.end <= piece.end)
        };
        let mut untouched = HashMap::<&Key, u64>::new();
        let mut all = HashMap::<&Key, u64>::new();
        for place in case.places {
            *all.entry(&place.key).or_default() += 1;
            if early.contains(&place.topic) && is_untouched(&place.range) {
                *untouched.entry(&place.key).or_default() += 1;
            }
        }
        let recovered = recovered(damaged).map(|log| count(&log)).unwrap_or_default();
        let (mut false_records, mut copies) = (0, 0);
        for (key, number) in &recovered {
            match all.get(key) {
                Some(expected) => copies += number.saturating_sub(*expected),
                None if case.foreign.contains(&key.1) => copies += number,
                None => false_records += number,
            }
        }
        self.copies += copies;
        self.false_records += false_records;
        let of_recovered = |key: &Key| recovered.get(key).copied().unwrap_or(0);
        let found = untouched.iter().map(|(key, number)| (*number).min(of_recovered(key))).sum();
        let untouched: u64 = untouched.values().sum();
        if untouched == 0 {
            return None;
        }
        self.files += 1;
        self.untouched += untouched;
        self.found += found;
        let is_worse = |worst: &Worst| {
            u128::from(found) * u128::from(worst.untouched) < u128::from(worst.found) * u128::from(untouched)
        };
        if self.worst.as_ref().is_none_or(is_worse) {
            self.worst = Some(Worst { found, untouched, name: case.name.clone() });
        }
        Some(Counts { untouched, found, false_records })
    }
}
