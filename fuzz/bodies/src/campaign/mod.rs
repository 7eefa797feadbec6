//! The damage campaign: every kind of damage to every log, and the properties that must hold.

mod operators;
mod pages;
mod survival;

pub use operators::Operator;
pub use survival::{Survival, survival};

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use peak_alloc::PeakAlloc;
use rovelog::rld_format::wire::BLOCK_TIMES_LEN;
use rovelog::{AnyLog, Bytes, LogReader, ReadOptions, RecoverOptions, Recovery, Select, Severity};

use operators::{Random, damaged, length_fields};

/// Memory allowed for any log, in addition to a multiple of its bytes.
pub const BASE_MEMORY: usize = 8 << 20;

/// In addition for bags, whose chunks may be bz2: two decoders of 4 MB, an encoder of 8 MB.
pub const CODEC_MEMORY: usize = 16 << 20;

/// Peak memory is at most [`BASE_MEMORY`] plus this many times the bytes of the log.
pub const MEMORY_TIMES: usize = 16;

/// In addition, this many times the bytes by which its payloads are larger, because they are
/// compressed: an element of an array of bytes has 32 as a value.
pub const CONTENT_TIMES: usize = 40;

/// Reading a damaged log takes at most this many times the time of the intact one, plus
/// [`Meter::slack`].
pub const TIME_TIMES: u32 = 20;

/// Maximum number of intact records before the damage that may be lost with it.
const EDGE: u64 = 2;

/// A log to damage.
pub struct Subject {
    /// The id of its format.
    pub format: &'static str,
    /// File name.
    pub name: String,
    bytes: Vec<u8>,
}

/// Results of one operator on the logs of one format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Damaged logs.
    pub cases: u64,
    /// Number of those that no longer open; each gives an error with an offset.
    pub refused: u64,
    /// Records that end before the damage.
    pub before: u64,
    /// Number of those that were lost: at most two right before the damage.
    pub edge: u64,
    /// Number of logs that recovery made valid, with records in them.
    pub recovered: u64,
    /// Violated properties: the case and the property.
    pub broken: Vec<String>,
}

/// What is measured, and the tolerance for the machine.
pub struct Meter {
    /// The memory of the whole process.
    pub memory: &'static PeakAlloc,
    /// Time that other work on the machine may take: much in a test, little where time is measured.
    pub slack: Duration,
}

/// Maximum size of recovered logs that are written for other readers.
const KEPT_BYTES: usize = 1 << 20;

/// Returns the logs in a folder that open, by name. Logs that are refused undamaged are left out,
/// and so are compressed logs, because the position of damage in them is unknown, and bags with a
/// chunk that is larger than is allowed, because their memory is not proportional to the file.
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
            && log.diagnostics().list().iter().all(|noticed| noticed.rule.name != "chunk_too_large")
        {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            subjects.push(Subject { format: log.format().id, name, bytes });
        }
    }
    Ok(subjects)
}

/// Damages every subject in every way with seeds from 0 to `seeds`. For the first damage of each
/// kind, the recovered log is written to `keep`, in a folder for each format, for other readers.
///
/// # Panics
/// Panics if `keep` cannot be written.
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
                    && recovered.len() <= KEPT_BYTES
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

/// Offsets of records and their bytes. Messages of a compressed chunk have one offset.
type Places = BTreeMap<u64, Vec<Vec<u8>>>;

/// A log that was read: its records, and the bytes of all their payloads.
struct Read {
    log: AnyLog,
    places: Places,
    content: usize,
}

/// Reads the whole log.
fn read(bytes: Bytes) -> rovelog::Result<Read> {
    let log = rovelog::from_bytes(bytes.clone(), &ReadOptions::default())?;
    let (mut places, mut content) = (Places::new(), 0);
    for record in log.records(&Select::all()) {
        let record = record.expect("what the reader lists it can read");
        // A record that cannot be decoded gives an error; the call must only return.
        drop(record.value());
        content += record.payload.len();
        places.entry(record.offset).or_default().push(record.payload.to_vec());
    }
    for batch in log.batches(&Select::all()) {
        drop(batch);
    }
    let input = Box::new(io::Cursor::new(bytes));
    let stream = rovelog::open_stream(input, &ReadOptions::default());
    let mut stream = stream.expect("what opens as a file opens as a stream");
    while stream.next_record().expect("a stream in memory is read to its end").is_some() {}
    Ok(Read { log, places, content })
}

/// Returns the log damaged in one way, and the offset where the damage starts.
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

/// Returns a log that opens damaged in the way that these numbers select; any other bytes as they are.
pub(crate) fn damage_one(clean: &[u8], operator: u8, seed: u8) -> Vec<u8> {
    let Ok(log) = open(clean) else { return clean.to_vec() };
    let operator = Operator::ALL[usize::from(operator) % Operator::ALL.len()];
    let mut random = Random::of("", operator, seed.into());
    damaged_log((log.format().id, &*log), clean, operator, &mut random, clean).0
}

/// Returns where the records end that must survive a damage at `first`. A block of an RLD is left out
/// as a whole, because where in it bytes are missing is unknown; if they are missing in the times of a
/// block, they may as well be missing at the end of the one before.
fn before_damage(log: &AnyLog, first: u64) -> u64 {
    let AnyLog::Rld(log) = log else { return first };
    let Ok(layout) = log.layout() else { return first };
    let within = first.saturating_sub(layout.header + BLOCK_TIMES_LEN);
    within.checked_div(layout.block).map_or(first, |block| first.min(layout.block_at(block)))
}

/// Damages one log and recovers it.
fn one(
    subject: &Subject,
    operator: Operator,
    seed: u64,
    other: &[u8],
    meter: &Meter,
    tally: &mut Tally,
) -> Option<Vec<u8>> {
    let Read { log, places: want, .. } =
        read(Bytes::copy_from_slice(&subject.bytes)).expect("a subject opens");
    let mut random = Random::of(&subject.name, operator, seed);
    let (bytes, first) = damaged_log((subject.format, &*log), &subject.bytes, operator, &mut random, other);
    let faults = log.diagnostics().list().iter().filter(|noticed| noticed.rule.severity != Severity::Note);
    let first_fault = faults.map(|fault| fault.range.start).chain([first as u64]).min().unwrap_or(0);
    let intact = before_damage(&log, first_fault);
    drop(log);
    let case = || format!("{} {} seed {seed} at {first}", subject.name, operator.name());
    tally.cases += 1;
    let mut checked = tally.clone();
    let held = catch_unwind(AssertUnwindSafe(|| {
        let spliced = matches!(operator, Operator::Splice | Operator::Interleave);
        check(
            subject,
            spliced.then_some(other),
            &Bytes::from(bytes),
            first,
            &want,
            intact,
            meter,
            &mut checked,
        )
    }));
    *tally = checked;
    match held {
        Ok(Ok(recovered)) => return recovered,
        Ok(Err(why)) => tally.broken.push(format!("{}: {why}", case())),
        Err(_) => tally.broken.push(format!("{}: a panic", case())),
    }
    None
}

/// Checks every property of a damaged log, of which `other` may be a part. Returns the recovered log
/// if it holds records.
#[expect(clippy::too_many_arguments, reason = "one caller, which has them all")]
fn check(
    subject: &Subject,
    other: Option<&[u8]>,
    bytes: &Bytes,
    first: usize,
    want: &Places,
    intact: u64,
    meter: &Meter,
    tally: &mut Tally,
) -> Result<Option<Vec<u8>>, String> {
    let start = Instant::now();
    meter.memory.reset_peak_usage();
    let before = meter.memory.current_usage();
    let opened = read(bytes.clone());
    let recovery = opened.as_ref().ok().map(|it| it.log.recover(&mut io::sink(), &RecoverOptions::default()));
    let (peak, took) = (meter.memory.peak_usage().saturating_sub(before), start.elapsed());
    let codec = if subject.format == "rosbag" { CODEC_MEMORY } else { 0 };
    let unpacked = opened.as_ref().map_or(0, |it| it.content.saturating_sub(bytes.len()));
    let allowed = BASE_MEMORY + codec + MEMORY_TIMES * bytes.len() + CONTENT_TIMES * unpacked;
    if peak > allowed {
        return Err(format!("{peak} bytes of memory, {allowed} are allowed"));
    }
    let start = Instant::now();
    drop(read(Bytes::copy_from_slice(&subject.bytes)));
    drop(other.map(|other| read(Bytes::copy_from_slice(other))));
    let allowed = start.elapsed() * TIME_TIMES + meter.slack;
    if took > allowed {
        return Err(format!("{took:?}, {allowed:?} are allowed"));
    }
    let (Read { log, places, .. }, recovery) = match (opened, recovery) {
        (Ok(opened), Some(recovery)) => (opened, recovery),
        (opened, _) => {
            tally.refused += 1;
            let lost = want.keys().nth(1).is_some_and(|second| *second <= first as u64);
            return match opened {
                Err(error) if lost => Err(format!("records before the damage are refused: {error}")),
                _ => Ok(None),
            };
        }
    };

    // If the log was damaged before, the part between two damages may be too short to be
    // distinguished from noise. Bytes that identify a fault of the writer may also be after the
    // damage.
    check_before(want, &places, intact.min(first as u64), tally)?;
    check_recovered(subject.format, &*log, recovery, tally)
}

/// Checks that the records that end at `first` or before are there, but for the last ones.
fn check_before(want: &Places, found: &Places, first: u64, tally: &mut Tally) -> Result<(), String> {
    let ends = want.keys().skip(1);
    // Records that no intact record follows may be noise: ULog needs a chain of three messages, VEL
    // a header.
    let mut edge = 0;
    for ((at, payloads), _) in want.iter().zip(ends).take_while(|(_, end)| **end <= first) {
        tally.before += payloads.len() as u64;
        if found.get(at) != Some(payloads) {
            edge += payloads.len() as u64;
        } else if edge > 0 {
            return Err(format!("a record before the one at {at}, which is intact, is lost"));
        }
    }
    if edge > EDGE {
        return Err(format!("{edge} records right before the damage are lost"));
    }
    tally.edge += edge;
    Ok(())
}

/// Checks what recovery says of a damaged log, and the recovered log. Returns it if it holds records.
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
    // Both account for loss alike: recovery leaves out what the reader calls lost.
    let lost = &log.info().lost;
    // Recovery of a ULog also leaves out the subscription of a topic that cannot be decoded.
    let more = format == "ulog" && report.lost_bytes() >= lost.bytes;
    // Bytes that were cut before data was appended to a ULog are kept.
    let stays = format == "ulog" && report.unchanged;
    if (report.lost_bytes(), report.missing_records) != (lost.bytes, lost.missing_records) && !more && !stays
    {
        let (a, b) = (report.lost_bytes(), report.missing_records);
        return Err(format!("recovery loses {a} bytes and misses {b} records, reading: {lost:?}"));
    }
    if report.records == 0 {
        return Ok(None);
    }
    let mut out = Vec::new();
    log.recover(&mut out, &RecoverOptions::default()).map_err(|error| error.to_string())?;
    let again = open(&out).map_err(|error| format!("the recovered log: {error}"))?;
    let lost = again.diagnostics().list().iter();
    let lost = lost.filter(|noticed| {
        noticed.rule.severity == Severity::DataLost && !(stays && noticed.rule.name == "cut")
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
