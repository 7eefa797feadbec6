//! The summary of a scan, with counts, clocks and the lines of `rovelog info`.

use std::collections::BTreeMap;
use std::ops::Range;

use rovelog_core::internal::layout::TextDecoding;
use rovelog_core::span::{DataSpan, Spread};
use rovelog_core::{LogInfo, Timestamp, UtcOffset, Value};

use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::index::Era;
use crate::px4::words;
use crate::row::info_value;
use crate::scan::Scanner;
use crate::sessions::SessionDetector;
use crate::utc::{self, GpsClock, GpsOffset};
use crate::wire::{self, FileHeader, HEADER_LEN, Info, Message, level_number};

/// Names of the information messages and parameters whose values the summary shows. If a name
/// occurs several times, the last value is used (rule D26 of docs/formats/ulog.md).
const FACTS: [&str; 17] = [
    "sys_name",
    "sys_mcu",
    "sys_uuid",
    "sys_os_name",
    "sys_os_ver",
    "sys_os_ver_release",
    "ver_os_release",
    "sys_toolchain",
    "sys_toolchain_ver",
    "ver_hw",
    "ver_hw_subtype",
    "ver_sw",
    "ver_sw_branch",
    "ver_sw_release",
    "replay",
    "MAV_TYPE",
    "SYS_AUTOSTART",
];

/// Maximum size in bytes of an information value or parameter that the summary stores.
const MAX_FACT: usize = 256;

/// Statistics of the rows of a topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    /// Number of rows of the topic.
    pub(crate) count: u64,
    /// Number of the last block of the index that contains rows of the topic, counted from 1.
    pub(crate) block: u32,
    /// Total size in bytes of the topic's rows.
    pub(crate) bytes: u64,
    /// Number of rows of the topic that have a time.
    pub(crate) timed: u64,
    /// Time in microseconds of the topic's first row that has a time.
    pub(crate) first: u64,
    /// Time in microseconds of the topic's last row that has a time.
    pub(crate) last: u64,
    /// Number of rows that are earlier than the previous row of the topic.
    pub(crate) decreases: u64,
    /// Offset of the first row that is earlier than the previous row of the topic.
    pub(crate) first_decrease_at: u64,
    /// Distribution of the times of the topic's rows.
    pub(crate) times: Spread,
}

impl Stats {
    /// Counts a row of `len` bytes at the offset `at`. Returns `true` if the row is earlier than
    /// the previous row of the topic.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, len: usize, micros: Option<u64>) -> bool {
        self.count += 1;
        self.bytes += len as u64;
        let mut decreased = false;
        if let Some(micros) = micros {
            if self.timed == 0 {
                self.first = micros;
            }
            if micros < self.last {
                decreased = true;
                self.count_decrease(at);
            }
            self.timed += 1;
            self.last = micros;
            // The multiplication cannot overflow, because callers pass `None` for times after the
            // year 2262.
            self.times.push(micros.cast_signed().wrapping_mul(1000), at);
        }
        decreased
    }

    /// Counts the row at the offset `at`, which is earlier than the previous row of the topic.
    #[cold]
    fn count_decrease(&mut self, at: u64) {
        if self.decreases == 0 {
            self.first_decrease_at = at;
        }
        self.decreases += 1;
    }
}

/// Numbers of the messages that are not rows.
#[derive(Debug, Default)]
pub(crate) struct MessageCounts {
    /// Number of messages by type, without rows.
    pub(crate) types: BTreeMap<u8, u64>,
    /// Number of console messages by severity, from 0 (emergency) to 7 (debug).
    pub(crate) levels: [u64; 8],
    /// Number of parameters with an initial value.
    pub(crate) parameters: u64,
    /// Number of parameter changes in the data section.
    pub(crate) changes: u64,
    pub(crate) dropouts: u64,
    /// Total duration of the dropouts in milliseconds.
    pub(crate) dropped_millis: u64,
    /// Duration of the longest dropout in milliseconds.
    pub(crate) longest_millis: u16,
}

/// Statistics of a log, or of the part of a log that was scanned so far.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Statistics of each topic, by topic number.
    stats: Vec<Stats>,
    pub(crate) counts: MessageCounts,
    /// Values of information messages and parameters whose names are in [`FACTS`].
    pub(crate) facts: BTreeMap<&'static str, Value>,
    gps: GpsClock,
    /// For each log in the file, the value of `boot_time_utc_us`.
    boot_times: Vec<Option<u64>>,
    /// Detects the recordings in the file.
    pub(crate) detector: SessionDetector,
    /// True if the times of all recordings belong to one clock.
    pub(crate) is_aligned: bool,
    /// Unix time at the start of the data, or `None` if the user has not stated it.
    utc_start: Option<i64>,
    /// Time range of the data. `None` until the whole log has been scanned.
    data: Option<DataSpan>,
}

impl Summary {
    pub(crate) fn new(utc_start: Option<i64>) -> Self {
        Self { boot_times: vec![None], utc_start, ..Self::default() }
    }

    /// Counts a row of `len` bytes at the offset `at`. `clock` is the log time before the row.
    #[inline]
    pub(crate) fn row(&mut self, series: u32, at: u64, len: usize, micros: Option<u64>, clock: u64) {
        let stats = self.stats(series);
        let decreased = stats.row(at, len, micros);
        if decreased || self.detector.is_active {
            self.detect_session(series, at, micros, clock, decreased);
        }
    }

    /// Passes a row that was already counted to the detection of recordings. `decreased` is true if
    /// the row is earlier than the previous row of its topic.
    ///
    /// This function is called for each row that is earlier than the previous row of its topic, and
    /// for all rows while the detection is active.
    #[cold]
    pub(crate) fn detect_session(
        &mut self,
        series: u32,
        at: u64,
        micros: Option<u64>,
        now: u64,
        decreased: bool,
    ) {
        if self.detector.is_active {
            let is_first = self.stats(series).timed <= 1;
            self.detector.row(micros, is_first);
        }
        if let Some(micros) = micros.filter(|_| decreased && !self.is_known()) {
            self.detector.time_decreased(at, micros, now, self.records().saturating_sub(1));
        }
    }

    /// Returns `true` if an earlier scan has found the recordings in the file.
    fn is_known(&self) -> bool {
        !self.detector.is_active && self.detector.sessions.len() > 1
    }

    /// Starts another log in the same file, whose header is at the offset `at`.
    pub(crate) fn start_log(&mut self, at: u64, header: FileHeader, clock: u64) {
        self.boot_times.push(None);
        if !self.is_known() {
            let records = self.records();
            self.detector.start_log(at, header, clock, records);
        }
    }

    /// Tells the detection of recordings that bytes are lost.
    pub(crate) fn data_lost(&mut self) {
        if !self.is_known() {
            self.detector.data_lost();
        }
    }

    /// Returns the total number of rows of all topics.
    fn records(&self) -> u64 {
        self.stats.iter().map(|stats| stats.count).sum()
    }

    /// Returns the number of rows of a topic.
    #[inline]
    pub(crate) fn rows(&self, series: u32) -> u64 {
        self.stats.get(series as usize).map_or(0, |stats| stats.count)
    }

    /// Returns the statistics of a topic. If the topic is new, its statistics are created.
    #[inline]
    pub(crate) fn stats(&mut self, series: u32) -> &mut Stats {
        let series = series as usize;
        if series >= self.stats.len() {
            self.stats.resize_with(series + 1, Stats::default);
        }
        &mut self.stats[series]
    }

    /// Adds the UTC in a row from a GPS receiver to the GPS fixes of the log.
    pub(crate) fn gps_row(&mut self, at: u64, definitions: &Definitions, shape: RowShape, bytes: &[u8]) {
        let topic = &definitions.topics[shape.series as usize];
        if let Ok(row) = definitions.row(topic, bytes) {
            let multi_id = definitions.subscriptions[shape.series as usize].multi_id;
            self.gps.row(at, shape.series, multi_id, &topic.type_name, &row);
        }
    }

    /// Counts a message that is not a row.
    pub(crate) fn message(&mut self, msg_type: u8, message: &Message<'_>, in_data: bool) {
        let counts = &mut self.counts;
        *counts.types.entry(msg_type).or_default() += 1;
        match *message {
            Message::Info(info) => {
                self.boot_time(info);
                self.fact(info);
            }
            // The summary describes only the first log in the file, so parameters of other logs are
            // ignored.
            Message::Parameter(_) if self.boot_times.len() > 1 => {}
            Message::Parameter(parameter) => {
                let count = if in_data { &mut counts.changes } else { &mut counts.parameters };
                *count += 1;
                self.fact(parameter);
            }
            Message::LoggedString(wire::LoggedString { log_level, .. })
            | Message::TaggedString(wire::TaggedString { log_level, .. }) => {
                counts.levels[usize::from(level_number(log_level).unwrap_or(7))] += 1;
            }
            Message::Dropout(wire::Dropout { duration: millis }) => {
                counts.dropouts += 1;
                counts.dropped_millis += u64::from(millis);
                counts.longest_millis = counts.longest_millis.max(millis);
            }
            _ => {}
        }
    }

    /// Stores the value of `boot_time_utc_us`, from which UTC is computed (rule U2 of
    /// docs/formats/ulog.md).
    fn boot_time(&mut self, info: Info<'_>) {
        let key = info.parse_key().filter(|key| key.name == "boot_time_utc_us");
        if let (Some(key), Some(last)) = (key, self.boot_times.last_mut()) {
            *last = number(&info_value(key.ty, info.value, &TextDecoding::default()));
        }
    }

    /// Stores an information value or a parameter if its name is in [`FACTS`].
    fn fact(&mut self, info: Info<'_>) {
        if info.value.len() > MAX_FACT || self.boot_times.len() > 1 {
            return;
        }
        if let Some(key) = info.parse_key()
            && let Some(name) = FACTS.iter().find(|name| **name == key.name)
        {
            self.facts.insert(name, info_value(key.ty, info.value, &TextDecoding::default()));
        }
    }

    /// Copies the statistics of a topic to the [`Topic`](rovelog_core::Topic) that users see.
    pub(crate) fn publish(&self, scanner: &mut Scanner, series: u32) {
        let Some(stats) = self.stats.get(series as usize) else { return };
        let topic = &mut scanner.definitions.topics[series as usize];
        (topic.count, topic.bytes, topic.timed) = (stats.count, stats.bytes, stats.timed);
        let time =
            |micros| (stats.timed > 0).then(|| Timestamp::from_micros(micros, scanner.clock.clock)).flatten();
        (topic.first, topic.last) = (time(stats.first), time(stats.last));
        topic.in_order = stats.times.is_ascending();
    }

    /// Returns the time classes ([`Era`]) of the rows of each topic. `start` is the start time of
    /// the log in microseconds.
    pub(crate) fn eras(&self, start: u64, topics: usize) -> Vec<[bool; 3]> {
        let start = crate::clock::nanos_of(start);
        let of = |stats: &Stats| {
            // A row without a time is sorted by the log time, which can belong to any time class.
            // For example, a log may start at 0 or after the end of its data.
            let mut eras = [stats.timed < stats.count; 3];
            for interval in stats.times.intervals() {
                eras[Era::Zero as usize] |= interval.first == 0;
                eras[Era::Old as usize] |= interval.first < start && interval.last > 0;
                eras[Era::Log as usize] |= interval.last >= start && interval.last > 0;
            }
            eras
        };
        (0..topics).map(|series| self.stats.get(series).map_or([false; 3], of)).collect()
    }

    /// Completes the topics and the diagnostics at the end of the log.
    ///
    /// If an earlier scan has computed the time range of the data, it is passed as `data`. Rows
    /// outside of this range are reported.
    pub(crate) fn finish(&mut self, scanner: &mut Scanner, data: Option<DataSpan>) {
        if self.data.is_some() {
            return;
        }
        for series in 0..scanner.definitions.topics.len() {
            self.publish(scanner, u32::try_from(series).expect("ids are u32"));
        }
        let mut times: Vec<_> = self.stats.iter().map(|stats| stats.times.intervals()).collect();
        times.resize(scanner.definitions.topics.len(), Vec::new());
        let start = crate::clock::nanos_of(self.start(scanner));
        // The time range of the data is found by searching for gaps between times. Byte ranges that
        // were not read would cause such gaps.
        let is_whole = scanner.diagnostics.unread() == 0;
        let find = || DataSpan::of(&times, Some(start), scanner.clock.clock);
        let data = data.or_else(|| if is_whole { find() } else { None });
        if !is_whole {
            // Rows that were not read may be earlier than the first row or later than the last row,
            // so these times are unknown.
            scanner.definitions.topics.iter_mut().for_each(|topic| (topic.first, topic.last) = (None, None));
        }
        if let Some(mut data) = data.clone() {
            // Times of a second log in the file belong to another clock, so they are not stale.
            // Another diagnostic reports the second header.
            let second = self.detector.sessions.iter().skip(1).find(|session| session.header.is_some());
            data.outside.retain(|outside| second.is_none_or(|session| outside.offset < session.at));
            data.apply_to(&times, &mut scanner.definitions.topics, &mut scanner.diagnostics);
        }
        self.data = data;
        self.detector.finish();
        if is_whole {
            self.detector.note(&mut scanner.diagnostics);
        }
        self.note_decreases(scanner);
        self.gps.note(&self.ranges(), &scanner.definitions.topics, &mut scanner.diagnostics);
    }

    /// Returns the byte range of each recording in the file. The last range ends at `u64::MAX`.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let starts = self.detector.sessions.iter().skip(1).map(|session| session.at);
        let ends = starts.clone().chain([u64::MAX]);
        std::iter::once(0).chain(starts).zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Returns the difference between Unix time and the recording's own clock, for each recording.
    pub(crate) fn offsets(&self, scanner: &Scanner) -> Vec<Option<UtcOffset>> {
        let mut boot_times = self.boot_times.iter().copied();
        let mut offset = |(number, range): (usize, Range<u64>)| {
            let header = match self.detector.sessions.get(number) {
                Some(session) if number > 0 => session.header,
                _ => Some(scanner.start.header),
            };
            // `boot_time_utc_us` describes the boot before the start of the log. If the clock
            // restarts within the log, the value does not apply to the new boot.
            let boot_time = header.and_then(|_| boot_times.next()).flatten();
            let gps = self.gps.offset(&range);
            let name = |gps: &GpsOffset| scanner.definitions.topics[gps.series as usize].name.as_str();
            let gps = gps.as_ref().map(|gps| (gps, name(gps)));
            utc::offset(header.map_or(0, |header| header.timestamp.get()), boot_time, gps)
        };
        self.ranges().into_iter().enumerate().map(&mut offset).collect()
    }

    /// Reports rows that are earlier than the previous row of their topic. Specification: "The
    /// timestamp must always be monotonic increasing for a message serie."
    fn note_decreases(&mut self, scanner: &mut Scanner) {
        for (stats, topic) in self.stats.iter_mut().zip(&scanner.definitions.topics) {
            let (at, decreases) = (stats.first_decrease_at, std::mem::take(&mut stats.decreases));
            if decreases > 0 {
                scanner.diagnostics.push(&rules::TIMESTAMPS_FALL, at..at + HEADER_LEN, || {
                    let (rows, are) = if decreases == 1 { ("record", "is") } else { ("records", "are") };
                    format!(
                        "{decreases} {rows} of {} {are} earlier than the record before; the first one is \
                         here, and all records are read",
                        topic.name
                    )
                });
            }
        }
    }

    /// Returns the stored text with the given name. Returns `None` if the text is missing or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.facts.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        number(self.facts.get(name)?)
    }

    /// Returns the release number that is stored under the first of `names` with a value, as a
    /// text.
    pub(crate) fn release(&self, names: &[&str]) -> Option<String> {
        let packed = names.iter().find_map(|name| self.number(name))?;
        Some(words::release(u32::try_from(packed).ok()?))
    }

    /// Returns the difference between Unix time and the clock of the log.
    ///
    /// Returns `None` if the difference is unknown, or if the file has several recordings whose
    /// clocks could not be aligned.
    pub(crate) fn utc(&self, scanner: &Scanner) -> Option<UtcOffset> {
        let mut offsets = self.offsets(scanner);
        let is_one = self.is_aligned || offsets.len() == 1;
        is_one.then(|| offsets.swap_remove(0)).flatten()
    }

    /// Returns the summary of a log. `size` is the size of the file in bytes.
    pub(crate) fn info(&self, scanner: &Scanner, size: u64) -> LogInfo {
        let mut info = LogInfo::new(scanner.start.header.version.to_string(), size);
        info.dialect = (self.text("sys_name") == Some("PX4")).then_some("px4");
        info.set_state(&scanner.diagnostics, &rules::CUT);
        info.start = Timestamp::from_micros(self.start(scanner), scanner.clock.clock);
        info.end = scanner.clock.end();
        info.data.clone_from(&self.data);
        info.utc = self.utc(scanner);
        info.records = self.records();
        info.at_least = info.unread > 0;
        info.details = self.details(scanner, info.records);
        info.set_utc_start(self.utc_start);
        info
    }

    /// Returns the time at which logging started, in microseconds.
    ///
    /// Some writers store 0 in the header. The result is then the median of the first times of all
    /// topics. The earliest time would be wrong, because the first row of a topic may contain a
    /// value published long before the log.
    fn start(&self, scanner: &Scanner) -> u64 {
        let start = scanner.start.header.timestamp.get();
        let mut firsts: Vec<_> = self.stats.iter().filter(|s| s.timed > 0).map(|s| s.first).collect();
        firsts.sort_unstable();
        // If the median is within a second of 0, the log may really have started at 0, that is at
        // boot.
        match firsts.get(firsts.len() / 2) {
            Some(median) if start == 0 && *median > 1_000_000 => *median,
            _ => start,
        }
    }
}

/// Returns the value of an integer that is not negative, otherwise `None`.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(v, _) => Some(*v),
        Value::Int(v, _) => u64::try_from(*v).ok(),
        _ => None,
    }
}
