//! Provenance of exported data: facts for the output's metadata.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Read};

use arrow_array::Int64Array;
use rovelog::core::topic::instance;
use rovelog::{Clock, LogInfo, LogReader, Topic, UtcOffset, Value};
use sha2::{Digest as _, Sha256};

/// Maximum bytes of format-specific information, as JSON, in each table.
const INFO_BYTES: usize = 64 << 10;

/// The source file of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// File name without the folder.
    pub source_name: String,
    /// SHA-256 of the file, in hexadecimal digits.
    pub source_sha256: Option<String>,
}

impl Provenance {
    /// Returns a source of which only the name is known.
    pub fn new(source_name: impl Into<String>) -> Self {
        Self { source_name: source_name.into(), source_sha256: None }
    }

    /// Returns the same source with the SHA-256 of its bytes.
    #[must_use]
    pub fn with_sha256(mut self, digits: impl Into<String>) -> Self {
        self.source_sha256 = Some(digits.into());
        self
    }

    /// Returns the facts about all data of `log`, by key.
    pub fn facts(&self, log: &dyn LogReader) -> BTreeMap<&'static str, String> {
        let info = log.info();
        let mut facts = BTreeMap::from([
            ("format", log.format().id.to_owned()),
            ("version", info.version.clone()),
            ("source_name", self.source_name.clone()),
            ("tool", concat!("rovelog ", env!("CARGO_PKG_VERSION")).to_owned()),
            ("time_base", TimeBase::of(log).name().to_owned()),
            ("state", info.state.name().to_owned()),
        ]);
        facts.extend(self.source_sha256.clone().map(|digits| ("source_sha256", digits)));
        if let Some(utc) = &info.utc {
            facts.insert("utc_offset_ns", utc.nanos.to_string());
            facts.insert("utc_rule", utc.rule.to_owned());
        }
        facts
    }

    /// Returns the metadata of a table that holds `topic`: the facts, the topic, and
    /// format-specific information about the log, as JSON. The keys start with `rovelog.`.
    pub fn metadata(&self, log: &dyn LogReader, topic: &Topic) -> BTreeMap<String, String> {
        let mut metadata = self.of_all_tables(log);
        metadata.extend(of_table(topic));
        metadata
    }

    /// Returns the metadata that all tables of a log share. Each table holds a copy, so long values
    /// are left out and only named.
    pub(crate) fn of_all_tables(&self, log: &dyn LogReader) -> BTreeMap<String, String> {
        let mut metadata: BTreeMap<_, _> =
            self.facts(log).into_iter().map(|(key, value)| (format!("rovelog.{key}"), value)).collect();
        let (mut details, mut left_out, mut free) = (Vec::new(), Vec::new(), INFO_BYTES);
        for detail in &log.info().details {
            match free.checked_sub(detail.value.to_json().len()) {
                Some(rest) => {
                    free = rest;
                    details.push((detail.key, detail.value.clone()));
                }
                None => left_out.push(Value::Text(detail.key.to_owned())),
            }
        }
        if !left_out.is_empty() {
            details.push(("left_out", Value::List(left_out)));
        }
        metadata.insert("rovelog.info".to_owned(), Value::record(details).to_json());
        metadata
    }
}

/// Returns the metadata that only the table of `topic` has.
pub(crate) fn of_table(topic: &Topic) -> impl Iterator<Item = (String, String)> {
    let (name, instance) = name_and_instance(&topic.name);
    let pairs = [
        ("rovelog.topic", Some(name)),
        ("rovelog.instance", instance),
        ("rovelog.type", Some(&*topic.type_name)),
    ];
    pairs.map(|(key, value)| Some((key.to_owned(), value?.to_owned()))).into_iter().flatten()
}

/// Splits `t/1` into the topic's name and its instance; a second series `t/1#2` keeps its mark.
pub(crate) fn name_and_instance(topic: &str) -> (&str, Option<&str>) {
    match instance(topic) {
        Some((name, ..)) => (name, Some(&topic[name.len() + 1..])),
        None => (topic, None),
    }
}

/// Zero of the column `time` and of MCAP's log times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeBase {
    /// 1970-01-01T00:00:00Z; the offset is added to the log's own times.
    Utc(UtcOffset),
    /// The zero of the log's own clock.
    Own(Clock),
}

impl TimeBase {
    /// Returns UTC if the log has it, otherwise the log's own clock.
    pub fn of(log: &dyn LogReader) -> Self {
        let info = log.info();
        let clock = info.start.or(info.end).map_or(Clock::Boot, |time| time.clock);
        Self::of_clock(clock, info)
    }

    /// Returns UTC if the log places this clock on it, otherwise the clock.
    pub fn of_clock(clock: Clock, info: &LogInfo) -> Self {
        match (clock, &info.utc) {
            (Clock::Unix, _) => Self::Utc(UtcOffset::new(0, "", "")),
            (_, Some(utc)) => Self::Utc(utc.clone()),
            (clock, None) => Self::Own(clock),
        }
    }

    /// Returns the name in metadata: `utc`, `boot` or `log_start`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Utc(_) => "utc",
            Self::Own(clock) => clock.name(),
        }
    }

    /// Converts a time of the log's clock to this base; `None` if it exceeds the range of
    /// nanoseconds.
    pub fn place(&self, nanos: i64) -> Option<i64> {
        match self {
            Self::Utc(utc) => utc.unix(nanos),
            Self::Own(_) => Some(nanos),
        }
    }

    /// Converts times of the log's clock to this base; null if they exceed the range of
    /// nanoseconds.
    pub fn place_all(&self, times: &Int64Array) -> Int64Array {
        match self {
            Self::Own(_) => times.clone(),
            Self::Utc(utc) if utc.knots.is_empty() && utc.nanos == 0 => times.clone(),
            Self::Utc(utc) if utc.knots.is_empty() => {
                let past = times.values().iter().any(|time| time.checked_add(utc.nanos).is_none());
                if past {
                    times.iter().map(|time| utc.unix(time?)).collect()
                } else {
                    times.unary(|time| time.wrapping_add(utc.nanos))
                }
            }
            Self::Utc(utc) => times.iter().map(|time| utc.unix(time?)).collect(),
        }
    }

    /// Returns the Unix time of the start of a time axis; `None` without UTC, and if the Unix clock
    /// was set during the log, because no axis of seconds shows its times.
    pub fn axis_start(&self, start: i64) -> Option<i64> {
        match self {
            Self::Utc(utc) if utc.constant().is_some() => utc.unix(start),
            _ => None,
        }
    }
}

/// Returns the SHA-256 of `input` in hexadecimal digits.
///
/// # Errors
/// Returns an error if the input cannot be read.
pub fn sha256(mut input: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let mut digits = String::new();
    for byte in hash.finalize() {
        let _ = write!(digits, "{byte:02x}");
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_a_name_and_an_instance() {
        assert_eq!(name_and_instance("imu/10"), ("imu", Some("10")));
        assert_eq!(name_and_instance("a/b/0#2"), ("a/b", Some("0#2")));
        assert_eq!(name_and_instance("/camera/image"), ("/camera/image", None));
        assert_eq!(name_and_instance("/imu/3dm"), ("/imu/3dm", None));
    }

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let digits = sha256(&b"abc"[..]).unwrap();
        assert_eq!(digits, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
