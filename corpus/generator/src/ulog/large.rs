//! Large `ULog` files, in which the messages of a small file are repeated.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};

use anyhow::{Context, Result, ensure};

use super::log::{SYNC, header, keyed, message, shape, subscription};
use crate::large::{Large, Order};
use crate::lay::{lay, random_bytes};
use crate::place::real;

/// If the real logs are available, PX4's sample log is repeated, so that results can be compared
/// with other benchmarks. Otherwise, a synthetic flight is repeated.
pub(super) const LARGE: Large = Large {
    stem: "synthetic",
    default: 400_000_000,
    from: Some(|| real().map(|real| real.join("ulog/sample.ulg")).filter(|sample| sample.is_file())),
    write,
};

/// Writes definitions and subscriptions once, and then rows, texts and dropouts repeatedly.
fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let base = match &order.from {
        Some(path) => fs::read(path).with_context(|| format!("reading {}", path.display()))?,
        None => flight(),
    };
    let sections = Sections::of(&base)?;
    ensure!(!sections.again.is_empty(), "the log has no rows to repeat");
    let (_, messages) = sections.write(out, order.size)?;
    Ok(format!("{messages} messages repeated"))
}

/// An intact log, split into a part that is written once and a part that can be repeated. The times
/// are increased in each repetition. The parser supports only the necessary parts of `ULog`.
struct Sections {
    /// Header, definitions and subscriptions.
    once: Vec<u8>,
    /// Rows, texts and dropouts.
    again: Vec<u8>,
    /// End offset of each message of `again`.
    ends: Vec<usize>,
    /// Offsets in `again` of times that are not zero, and their values.
    times: Vec<(usize, u64)>,
}

impl Sections {
    /// Splits a log. Returns an error if the log is not intact.
    fn of(log: &[u8]) -> Result<Self> {
        ensure!(log.starts_with(b"ULog\x01\x12\x35"), "not a ULog");
        let (header, mut rest) = log.split_at_checked(16).context("no whole header")?;
        let mut sections =
            Self { once: header.to_vec(), again: Vec::new(), ends: Vec::new(), times: Vec::new() };
        let mut formats: BTreeMap<String, String> = BTreeMap::new();
        let mut times: BTreeMap<u16, Option<usize>> = BTreeMap::new();
        while let Some((&[low, high, kind], body)) = rest.split_first_chunk() {
            let size = usize::from(u16::from_le_bytes([low, high]));
            let Some((payload, behind)) = body.split_at_checked(size) else {
                break; // cut: what is cut is not repeated
            };
            let message = &rest[..3 + size];
            rest = behind;
            // Offset of the time in a message that is repeated.
            let time_at = match kind {
                b'D' => {
                    let id = payload.first_chunk().context("a short D")?;
                    let at = times.get(&u16::from_le_bytes(*id)).context("a row of an unknown id")?;
                    at.map(|at| 3 + 2 + at)
                }
                b'L' => Some(3 + 1),
                b'O' => None,
                // A sync message is not needed. The other messages belong to a fixed time and
                // cannot be repeated.
                b'S' | b'C' | b'R' => continue,
                _ => {
                    sections.once.extend_from_slice(message);
                    if kind == b'B' {
                        let is_appended = payload.get(8).is_none_or(|bits| bits & 1 == 1);
                        ensure!(!is_appended, "a log with appended data cannot be repeated");
                    } else if kind == b'F' {
                        let text = std::str::from_utf8(payload)?;
                        let (name, fields) = text.split_once(':').context("a format without `:`")?;
                        formats.insert(name.to_owned(), fields.to_owned());
                    } else if kind == b'A' {
                        let (id, name) = payload.split_at_checked(3).context("a short A")?;
                        let name = std::str::from_utf8(name)?;
                        ensure!(formats.contains_key(name), "a subscription to no format");
                        let place = shape(&formats, name).place("timestamp");
                        ensure!(place.is_none_or(|place| place.1 == 8), "{name} has a narrow timestamp");
                        times.insert(u16::from_le_bytes([id[1], id[2]]), place.map(|place| place.0));
                    }
                    continue;
                }
            };
            let time = time_at.and_then(|at| message.get(at..)?.first_chunk());
            let us = time.copied().map_or(0, u64::from_le_bytes);
            if let Some(at) = time_at.filter(|_| us != 0) {
                sections.times.push((sections.again.len() + at, us));
            }
            sections.again.extend_from_slice(message);
            sections.ends.push(sections.again.len());
        }
        Ok(sections)
    }

    /// Returns the time between repetitions in microseconds.
    fn step_us(&self) -> u64 {
        let times = || self.times.iter().map(|time| time.1);
        times().min().zip(times().max()).map_or(0, |(first, last)| last - first + 1000)
    }

    /// Writes complete messages until `size` bytes are reached. Returns the number of bytes and
    /// messages.
    fn write(&self, mut to: impl Write, size: u64) -> Result<(u64, u64)> {
        to.write_all(&self.once)?;
        let (mut written, mut messages) = (self.once.len() as u64, 0);
        let mut again = self.again.clone();
        let (step, mut shift) = (self.step_us(), 0);
        while written < size {
            for &(at, us) in &self.times {
                again[at..at + 8].copy_from_slice(&(us + shift).to_le_bytes());
            }
            let last = self.ends.partition_point(|&end| written + (end as u64) < size);
            let last = last.min(self.ends.len() - 1);
            to.write_all(&again[..self.ends[last]])?;
            written += self.ends[last] as u64;
            messages += last as u64 + 1;
            shift += step;
        }
        Ok((written, messages))
    }
}

/// Each line has the number of instances of a topic, the microseconds between rows, and the format.
/// A nested format has no instances.
const TOPICS: &str = include_str!("flight.txt");

const START: u64 = 60_000_000;
const LENGTH: u64 = 10_000_000;

/// Returns ten seconds of a synthetic flight, with about forty topics that have the layouts and rates
/// of PX4 logs.
fn flight() -> Vec<u8> {
    let topic = |line: &'static str| {
        let [instances, step, format] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { return None };
        Some((instances.parse().ok()?, step.parse().ok()?, format))
    };
    let topics: Vec<(u8, u64, &str)> = TOPICS.lines().map(|line| topic(line).expect("three parts")).collect();
    let named = |text: &str| text.split_once(':').map(|(name, fields)| (name.to_owned(), fields.to_owned()));
    let formats = topics.iter().filter_map(|topic| named(topic.2)).collect();

    let mut log = header(1, START);
    let mut say = |kind, payload: &[u8]| log.extend(message(kind, payload));
    say(b'B', &[0; 40]);
    for (_, _, format) in &topics {
        say(b'F', format.as_bytes());
    }
    say(b'I', &keyed("char[3] sys_name", b"PX4"));
    for i in 0..600u16 {
        say(b'P', &keyed(&format!("float PARAM_{i}"), &lay![f32::from(i)]));
    }

    // Each entry has the time of the next row, the id, the microseconds between rows, and the size
    // in bytes of a row after its time.
    let mut series = Vec::new();
    for (instances, step, format) in topics {
        let name = format.split(':').next().unwrap_or_default();
        for instance in 0..instances {
            let id = u16::try_from(series.len()).expect("a few dozen series");
            say(b'A', &subscription(instance, id, name));
            // The topics start at slightly different times, as on a real vehicle.
            series.push((START + 137 * u64::from(id), id, step, shape(&formats, name).trimmed_size() - 8));
        }
    }
    say(b'S', &SYNC);

    let mut random = random_bytes(1);
    let mut next_sync = START + 500_000;
    while let Some(due) = series.iter_mut().min_by_key(|s| (s.0, s.1)) {
        let (time, id, step, size) = *due;
        if time >= START + LENGTH {
            break;
        }
        due.0 += step;
        if time >= next_sync {
            next_sync += 500_000;
            say(b'S', &SYNC);
            say(b'L', &lay![b'6', time, "[commander] still flying\t"]);
        }
        let mut row = lay![time];
        row.extend(random.by_ref().take(size));
        say(b'D', &lay![id, row]);
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_follow_each_other_in_time() {
        let sections = Sections::of(&flight()).unwrap();
        let mut out = Vec::new();
        let wanted = (sections.once.len() + 2 * sections.again.len()) as u64;
        let (bytes, messages) = sections.write(&mut out, wanted).unwrap();
        assert_eq!((bytes, messages), (wanted, 2 * sections.ends.len() as u64));

        let twice = Sections::of(&out).unwrap();
        assert_eq!(twice.once, sections.once);
        let half = sections.times.len();
        assert_eq!(twice.times.len(), 2 * half);
        for (a, b) in twice.times[..half].iter().zip(&twice.times[half..]) {
            assert_eq!(b.1 - a.1, sections.step_us());
        }
    }
}
