//! The damage campaign. It damages every log with every kind of damage, and checks properties of
//! the results.

mod operators;
mod pages;
mod survival;

pub use operators::Operator;
pub use survival::{Survival, Worst, survival};

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use rovelog::rld_format::wire::BLOCK_TIMES_LEN;
use rovelog::{AnyLog, Bytes, LogReader, ReadOptions, RecoverOptions, Recovery, Select, Severity};

use operators::{Random, damaged, length_fields};

/// Number of bytes of memory that may be used for any log, in addition to a multiple of its size.
pub const BASE_MEMORY: usize = 8 << 20;

/// Number of bytes of memory that may additionally be used for bags, because their chunks may be
/// compressed with bzip2. Two decoders need 4 MB each, and an encoder needs 8 MB.
pub const CODEC_MEMORY: usize = 16 << 20;

/// The memory used for a log may be this many times its size, in addition to [`BASE_MEMORY`].
pub const MEMORY_FACTOR: usize = 16;

/// For a compressed log, decompression adds bytes, and the memory may be this many times the number
/// of added bytes. The reason is that one byte of an array takes 32 bytes as a value.
pub const UNPACKED_FACTOR: usize = 40;

/// Reading a damaged log may take this many times as long as reading the undamaged log, plus
/// [`Meter::slack`].
pub const TIME_FACTOR: u32 = 20;

/// Maximum number of intact records directly before the damage that may be lost.
const MAX_EDGE: u64 = 2;

/// An undamaged log of the campaign.
pub struct Subject {
    /// Id of the log format.
    pub format: &'static str,
    /// Name of the log file.
    pub name: String,
    bytes: Vec<u8>,
}

/// Results of one kind of damage (operator) for all logs of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of damaged logs.
    pub cases: u64,
    /// Number of damaged logs that the reader rejects.
    pub refused: u64,
    /// Number of records that end before the damage.
    pub before: u64,
    /// Number of records before the damage that were lost. There are at most two in each log.
    pub edge: u64,
    /// Number of recovered logs that are valid and contain records.
    pub recovered: u64,
    /// Descriptions of violations of the checked properties.
    pub broken: Vec<String>,
}

/// Meter for the memory and the time that reading a log takes.
pub struct Meter {
    /// Counter of the memory that the whole process uses.
    pub memory: &'static PeakAlloc,
    /// Time that is added to each limit, because the machine may be busy with other work.
    pub slack: Duration,
}

/// Maximum size in bytes of a recovered log that is written for other programs.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Returns the logs in a folder, sorted by name.
///
/// Some logs are skipped: logs that the reader rejects without any damage, compressed logs, and
/// bags with a chunk above the size limit. In a compressed log, the position of the damage is
/// unknown. For a bag with such a chunk, the memory is not proportional to the file size.
///
/// # Errors
/// Returns an error if the folder or a file in it cannot be read.
pub fn subjects(folder: &Path) -> io::Result<Vec<Subject>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.is_file());
    paths.sort();
    let mut subjects = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path)?;
        if let Ok(log) = open(&bytes)
            && log.info().size == bytes.len() as u64
            && log.diagnostics().list().iter().all(|diagnostic| diagnostic.rule.name != "chunk_too_large")
        {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            subjects.push(Subject { format: log.format().id, name, bytes });
        }
    }
    Ok(subjects)
}

/// Damages every subject with every kind of damage, and with each seed from 0 to `seeds`. The
/// recovered logs for the first seed are written to `keep`, in a folder for each format.
///
/// # Panics
/// Panics if a file cannot be written to `keep`.
pub fn run(
    subjects: &[Subject],
    seeds: u64,
    meter: &Meter,
    keep: Option<&Path>,
) -> BTreeMap<&'static str, Vec<Tally>> {
    let mut tallies = BTreeMap::<_, Vec<Tally>>::new();
    for (number, subject) in subjects.iter().enumerate() {
        let others = || subjects.iter().cycle().skip(number + 1);
        let other = others().find(|other| other.format == subject.format).unwrap_or(subject);
        let tally =
            tallies.entry(subject.format).or_insert_with(|| vec![Tally::default(); Operator::ALL.len()]);
        for (operator, tally) in Operator::ALL.into_iter().zip(tally) {
            for seed in 0..seeds {
                let recovered = one(subject, operator, seed, &other.bytes, meter, tally);
                if let (Some(folder), 0, Some(recovered)) = (keep, seed, recovered)
                    && recovered.len() <= MAX_KEPT_BYTES
                {
                    let folder = folder.join(subject.format);
                    std::fs::create_dir_all(&folder).expect("the folder for recovered logs");
                    let kind = operator.name().replace(' ', "-");
                    std::fs::write(folder.join(format!("{kind}--{}", subject.name)), recovered)
                        .expect("a recovered log");
                }
            }
        }
    }
    tallies
}

fn open(bytes: &[u8]) -> rovelog::Result<AnyLog> {
    rovelog::from_bytes(Bytes::copy_from_slice(bytes), &ReadOptions::default())
}

/// Payloads of the records at one offset. All messages in a compressed chunk have the same offset.
#[derive(Default, PartialEq)]
struct PayloadsAt {
    records: u64,
    /// Hash of the payloads. The payloads themselves would need more memory than some readers.
    hash: u64,
}

/// Payloads of all records, by the offset of the record.
type Payloads = BTreeMap<u64, PayloadsAt>;

/// A log and the facts that were collected by reading all its records.
struct ReadLog {
    log: AnyLog,
    payloads: Payloads,
    /// Total size of all payloads in bytes.
    payload_bytes: usize,
}

/// Reads all records, values and columns of a log, and its stream to the end.
fn read(bytes: Bytes) -> rovelog::Result<ReadLog> {
    let log = rovelog::from_bytes(bytes.clone(), &ReadOptions::default())?;
    let (mut payloads, mut payload_bytes) = (Payloads::new(), 0);
    for record in log.intact_records(&Select::all()) {
        let record = record.expect("a listed record can be read");
        // A damaged record may have no value, but decoding it must not panic or hang.
        drop(record.value());
        payload_bytes += record.payload.len();
        let payload = payloads.entry(record.offset).or_default();
        let mut hasher = DefaultHasher::new();
        (payload.hash, &record.payload[..]).hash(&mut hasher);
        (payload.records, payload.hash) = (payload.records + 1, hasher.finish());
    }
    for batch in log.batches(&Select::all()) {
        drop(batch);
    }
    let input = Box::new(io::Cursor::new(bytes));
    let stream = rovelog::open_stream(input, &ReadOptions::default());
    let mut stream = stream.expect("a log that opens as a file opens as a stream");
    while stream.next_record().expect("a stream in memory can be read to its end").is_some() {}
    Ok(ReadLog { log, payloads, payload_bytes })
}

/// Returns a damaged log, and the offset of the first damaged byte.
fn damaged_log(
    (format, log): (&str, &dyn LogReader),
    clean: &[u8],
    operator: Operator,
    random: &mut Random,
    other: &[u8],
) -> (Vec<u8>, usize) {
    match pages::pieces(clean, operator, random, other) {
        Some(pieces) => pages::joined(clean, &pieces),
        None => damaged(clean, operator, random, &length_fields(format, log), other),
    }
}

/// Returns a log after one kind of damage. `operator` and `seed` select the damage. Bytes that are
/// not a log are returned unchanged.
pub(crate) fn damage_one(clean: &[u8], operator: u8, seed: u8) -> Vec<u8> {
    let Ok(log) = open(clean) else { return clean.to_vec() };
    let operator = Operator::ALL[usize::from(operator) % Operator::ALL.len()];
    let mut random = Random::of("", operator, seed.into());
    damaged_log((log.format().id, &*log), clean, operator, &mut random, clean).0
}

/// Returns the offset up to which records must survive, if the damage starts at the offset `first`.
///
/// In an RLD log, a damaged block is lost as a whole, because the position of missing bytes in it
/// is unknown. If the times of the block are damaged, the missing bytes may also belong to the end
/// of the previous block.
fn intact_end(log: &AnyLog, first: u64) -> u64 {
    let AnyLog::Rld(log) = log else { return first };
    let Ok(layout) = log.layout() else { return first };
    let within = first.saturating_sub(layout.header + BLOCK_TIMES_LEN);
    within.checked_div(layout.block).map_or(first, |block| first.min(layout.block_at(block)))
}

/// A damaged log, and what is known about the undamaged log.
struct Case<'a> {
    subject: &'a Subject,
    bytes: Bytes,
    /// Offset of the first damaged byte.
    first: usize,
    /// Second log, from which some kinds of damage take bytes.
    other: Option<&'a [u8]>,
    /// Payloads of all records in the undamaged log.
    payloads: Payloads,
    /// Offset up to which records must survive the damage.
    intact_end: u64,
}

/// Damages one log and checks the result. Returns the recovered log if it contains records.
fn one(
    subject: &Subject,
    operator: Operator,
    seed: u64,
    other: &[u8],
    meter: &Meter,
    tally: &mut Tally,
) -> Option<Vec<u8>> {
    let ReadLog { log, payloads, .. } =
        read(Bytes::copy_from_slice(&subject.bytes)).expect("a subject opens");
    let mut random = Random::of(&subject.name, operator, seed);
    let (bytes, first) = damaged_log((subject.format, &*log), &subject.bytes, operator, &mut random, other);
    // Some logs have errors before the campaign damages them. Between two damages, the intact part
    // may be too short to be distinguished from noise. The bytes that identify a known fault of the
    // logger may also be in the damaged part.
    let faults = log.diagnostics().list().iter();
    let faults = faults.filter(|diagnostic| diagnostic.rule.severity != Severity::Note);
    let first_fault = faults.map(|fault| fault.range.start).chain([first as u64]).min().unwrap_or(0);
    let intact_end = intact_end(&log, first_fault).min(first as u64);
    drop(log);
    let is_mixed = matches!(operator, Operator::Splice | Operator::Interleave);
    let other = is_mixed.then_some(other);
    let case = Case { subject, bytes: bytes.into(), first, other, payloads, intact_end };
    tally.cases += 1;
    let mut checked = tally.clone();
    let result = catch_unwind(AssertUnwindSafe(|| check(&case, meter, &mut checked)));
    *tally = checked;
    let violation = match result {
        Ok(Ok(recovered)) => return recovered,
        Ok(Err(violation)) => violation,
        Err(_) => "a panic".to_owned(),
    };
    tally.broken.push(format!("{} {} seed {seed} at {first}: {violation}", subject.name, operator.name()));
    None
}

/// Checks all properties of a damaged log. Returns the recovered log if it contains records.
/// Returns an error that describes the first violated property.
fn check(case: &Case<'_>, meter: &Meter, tally: &mut Tally) -> Result<Option<Vec<u8>>, String> {
    let Case { subject, bytes, .. } = case;
    let start = Instant::now();
    meter.memory.reset_peak_usage();
    let before = meter.memory.current_usage();
    let opened = read(bytes.clone());
    let recovery =
        opened.as_ref().ok().map(|read| read.log.recover(&mut io::sink(), &RecoverOptions::default()));
    let (peak, duration) = (meter.memory.peak_usage().saturating_sub(before), start.elapsed());
    let codec = if subject.format == "rosbag" { CODEC_MEMORY } else { 0 };
    let unpacked = opened.as_ref().map_or(0, |read| read.payload_bytes.saturating_sub(bytes.len()));
    let allowed = BASE_MEMORY + codec + MEMORY_FACTOR * bytes.len() + UNPACKED_FACTOR * unpacked;
    if peak > allowed {
        return Err(format!("{peak} bytes of memory, {allowed} are allowed"));
    }
    let start = Instant::now();
    drop(read(Bytes::copy_from_slice(&subject.bytes)));
    drop(case.other.map(|other| read(Bytes::copy_from_slice(other))));
    let allowed = start.elapsed() * TIME_FACTOR + meter.slack;
    if duration > allowed {
        return Err(format!("{duration:?}, {allowed:?} are allowed"));
    }
    match (opened, recovery) {
        (Ok(ReadLog { log, payloads, .. }), Some(recovery)) => {
            check_before(&case.payloads, &payloads, case.intact_end, tally)?;
            check_recovered(subject.format, &*log, recovery, tally)
        }
        (opened, _) => {
            tally.refused += 1;
            let has_records = case.payloads.keys().nth(1).is_some_and(|second| *second <= case.first as u64);
            match opened {
                Err(error) if has_records => Err(format!("records before the damage are refused: {error}")),
                _ => Ok(None),
            }
        }
    }
}

/// Checks that the reader finds all records that end at the offset `end` or before. At most
/// [`MAX_EDGE`] records directly before this offset may be missing.
fn check_before(want: &Payloads, found: &Payloads, end: u64, tally: &mut Tally) -> Result<(), String> {
    // The end of a record is the start of the next record.
    let ends = want.keys().skip(1);
    // A record may be taken for noise if no intact record follows it. For example, a ULog reader
    // only accepts three consecutive messages, and a VEL reader needs the header of the next
    // message.
    let mut edge = 0;
    for ((at, payload), _) in want.iter().zip(ends).take_while(|(_, record_end)| **record_end <= end) {
        tally.before += payload.records;
        if found.get(at) != Some(payload) {
            edge += payload.records;
        } else if edge > 0 {
            return Err(format!("a record before the intact record at {at} is lost"));
        }
    }
    if edge > MAX_EDGE {
        return Err(format!("{edge} records right before the damage are lost"));
    }
    tally.edge += edge;
    Ok(())
}

/// Checks the report of a recovery, and the recovered log. Returns the recovered log if it contains
/// records.
fn check_recovered(
    format: &str,
    log: &dyn LogReader,
    recovery: rovelog::Result<Recovery>,
    tally: &mut Tally,
) -> Result<Option<Vec<u8>>, String> {
    let report = recovery.map_err(|error| format!("recovery: {error}"))?;
    let accounted = report.kept_bytes + report.lost_bytes() + report.stale_bytes;
    if accounted != log.info().size {
        return Err(format!("{accounted} of {} bytes are accounted for", log.info().size));
    }
    // Recovery excludes exactly the bytes that the reader reports as lost, those included that only
    // reading finds.
    let lost = &log.losses();
    let is_same = (report.lost_bytes(), report.missing_records) == (lost.bytes, lost.missing_records);
    // Recovery of a ULog file may exclude more: the subscription of each topic that cannot be
    // decoded.
    let may_lose_more = format == "ulog" && report.lost_bytes() >= lost.bytes;
    // If data was appended to a ULog file, the message before it may be cut. An unchanged copy
    // keeps these bytes.
    let is_unchanged = format == "ulog" && report.unchanged;
    if !is_same && !may_lose_more && !is_unchanged {
        let (bytes, records) = (report.lost_bytes(), report.missing_records);
        return Err(format!("recovery loses {bytes} bytes and misses {records} records, reading: {lost:?}"));
    }
    if report.records == 0 {
        return Ok(None);
    }
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).map_err(|error| error.to_string())?;
    let again = open(&out).map_err(|error| format!("the recovered log: {error}"))?;
    let lost = again.diagnostics().list().iter();
    let lost = lost.filter(|diagnostic| {
        diagnostic.rule.severity == Severity::DataLost && !(is_unchanged && diagnostic.rule.name == "cut")
    });
    let (records, losses) = (again.info().records, lost.count());
    if records != report.records || losses > 0 {
        return Err(format!(
            "the recovered log has {records} of {} records, {losses} losses",
            report.records
        ));
    }
    tally.recovered += 1;
    Ok(Some(out))
}
