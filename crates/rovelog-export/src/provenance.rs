//! Provenance of exported data: the source file and its properties. The output stores it as
//! metadata.

use std::collections::BTreeMap;
use std::io::{self, Read};

use arrow_array::Int64Array;
use rovelog::core::internal::text::hex;
use rovelog::core::internal::topic::instance;
use rovelog::{Clock, LogInfo, LogReader, UtcOffset, Value};
use sha2::{Digest as _, Sha256};

/// Maximum size in bytes of the format-specific information in the metadata of a table. The
/// information is stored as JSON.
const INFO_BYTES: usize = 64 << 10;

/// The source file from which data was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// Name of the source file, without its folder.
    pub source_name: String,
    /// SHA-256 of the source file, in hexadecimal digits. `None` if it was not computed.
    pub source_sha256: Option<String>,
}

impl Provenance {
    /// Creates the provenance of a source file whose hash is unknown.
    pub fn new(source_name: impl Into<String>) -> Self {
        Self { source_name: source_name.into(), source_sha256: None }
    }

    /// Sets the SHA-256 of the source file, in hexadecimal digits.
    #[must_use]
    pub fn with_sha256(mut self, digits: impl Into<String>) -> Self {
        self.source_sha256 = Some(digits.into());
        self
    }

    /// Returns facts about the source file and its log by key, such as the format, version and time
    /// base.
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

    /// Returns the metadata that is the same for all tables of a log: the [facts](Self::facts) and
    /// format-specific information about the log as JSON. The keys start with `rovelog.`. Each table
    /// contains a copy, so long values of the format-specific information are omitted. The names of
    /// omitted values are listed under `left_out`.
    pub(crate) fn of_all_tables(&self, log: &dyn LogReader) -> BTreeMap<String, String> {
        let mut metadata: BTreeMap<_, _> =
            self.facts(log).into_iter().map(|(key, value)| (format!("rovelog.{key}"), value)).collect();
        let (mut details, mut left_out, mut free) = (Vec::new(), Vec::new(), INFO_BYTES);
        // Details are added in their order while they fit below the size limit. A detail that is
        // too long is skipped, and smaller details after it are still added.
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

/// Splits a name such as `t/1` into the name of the topic and its instance number. If a log has
/// several topics with the same name, a mark such as `#2` is appended to the later names. The mark
/// stays part of the instance, so `t/1#2` has the instance `1#2`.
pub(crate) fn name_and_instance(topic: &str) -> (&str, Option<&str>) {
    match instance(topic) {
        Some((name, ..)) => (name, Some(&topic[name.len() + 1..])),
        None => (topic, None),
    }
}

/// Clock that an output uses for its times, such as the column `time` in tables and the log times
/// in MCAP.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeBase {
    /// Unix time. The offset converts times on the log's own clock to Unix time.
    Utc(UtcOffset),
    /// The log's own clock, whose relation to UTC is unknown.
    Own(Clock),
}

impl TimeBase {
    /// Returns the clock for times of a log. This is UTC if the log relates its own clock to UTC.
    /// Otherwise, it is the log's own clock.
    pub fn of(log: &dyn LogReader) -> Self {
        let info = log.info();
        let clock = info.start.or(info.end).map_or(Clock::Boot, |time| time.clock);
        Self::of_clock(clock, info)
    }

    /// Returns the clock for times on `clock`. This is UTC if the log relates `clock` to UTC.
    /// Otherwise, it is `clock` itself.
    pub fn of_clock(clock: Clock, info: &LogInfo) -> Self {
        match (clock, &info.utc) {
            (Clock::Unix, _) => Self::Utc(UtcOffset::new(0, "", "")),
            (_, Some(utc)) => Self::Utc(utc.clone()),
            (clock, None) => Self::Own(clock),
        }
    }

    /// Returns the name of the clock in metadata: `utc`, `boot` or `log_start`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Utc(_) => "utc",
            Self::Own(clock) => clock.name(),
        }
    }

    /// Converts a time on the log's clock in nanoseconds to this time base. Returns `None` if the
    /// result exceeds 64 bits.
    pub fn place(&self, nanos: i64) -> Option<i64> {
        match self {
            Self::Utc(utc) => utc.unix(nanos),
            Self::Own(_) => Some(nanos),
        }
    }

    /// Converts times on the log's clock in nanoseconds to this time base. A time becomes null if
    /// the result exceeds 64 bits.
    pub fn place_all(&self, times: &Int64Array) -> Int64Array {
        let Self::Utc(utc) = self else { return times.clone() };
        let overflows = || times.values().iter().any(|time| time.checked_add(utc.nanos).is_none());
        // If the offset is constant and no sum overflows, the additions can be vectorized.
        if utc.knots.is_empty() && !overflows() {
            return times.unary(|time| time.wrapping_add(utc.nanos));
        }
        times.iter().map(|time| utc.unix(time?)).collect()
    }

    /// Returns the Unix time at which a time axis starts, or `None` if UTC is unknown. Also returns
    /// `None` if the Unix clock was set while the log was recorded, because a linear axis cannot
    /// show the jump.
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
            // A signal interrupted the read, so the read is repeated.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hex(&hash.finalize(), ""))
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
