//! Summary of a scan: counts, clocks, and the lines of `info`.

use std::collections::BTreeMap;
use std::ops::Range;

use rovelog_core::layout::TextDecoding;
use rovelog_core::span::{DataSpan, Spread};
use rovelog_core::{Detail, LogInfo, Timestamp, UtcOffset, Value};

use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::index::Era;
use crate::px4::words;
use crate::row::info_value;
use crate::scan::Scanner;
use crate::sessions::Watch;
use crate::utc::{self, GpsClock, GpsOffset};
use crate::wire::{self, FileHeader, HEADER_LEN, Info, Message, kind, level_number};

/// Information and parameters that the summary shows. The last value wins (D26).
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

/// The longest value that is kept as a fact.
const MAX_FACT: usize = 256;

/// Rows of one topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) count: u64,
    /// The last block of the index in which it has rows, from 1.
    pub(crate) block: u32,
    pub(crate) bytes: u64,
    pub(crate) timed: u64,
    /// Microseconds of the first and last timed row.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Rows that are earlier than the one before them, and where the first one is.
    pub(crate) falls: u64,
    pub(crate) falls_at: u64,
    /// Where the last one is.
    fell_at: Option<u64>,
    pub(crate) times: Spread,
}

impl Stats {
    /// Returns what the index asks of a topic before each of its rows.
    #[inline]
    pub(crate) fn seen(&mut self) -> (&mut u32, u64) {
        (&mut self.block, self.count)
    }

    /// Counts a row of `len` bytes at `at`. Returns whether it is earlier than the row before it.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, len: usize, micros: Option<u64>) -> bool {
        self.count += 1;
        self.bytes += len as u64;
        let mut fell = false;
        if let Some(micros) = micros {
            if self.timed == 0 {
                self.first = micros;
            }
            if micros < self.last {
                fell = true;
                self.fall(at);
            }
            self.timed += 1;
            self.last = micros;
            // Times past the range of nanoseconds are no times.
            self.times.push(micros.cast_signed().wrapping_mul(1000), at);
        }
        fell
    }

    #[cold]
    fn fall(&mut self, at: u64) {
        if self.falls == 0 {
            self.falls_at = at;
        }
        self.falls += 1;
        self.fell_at = Some(at);
    }
}

/// Counts over everything that a scan has passed.
#[derive(Debug)]
pub(crate) struct Summary {
    stats: Vec<Stats>,
    /// Messages taken, by type.
    messages: [u64; 256],
    levels: [u64; 8],
    parameters: u64,
    changes: u64,
    dropouts: u64,
    dropped_millis: u64,
    longest_millis: u16,
    facts: BTreeMap<&'static str, Value>,
    gps: GpsClock,
    /// The value of `boot_time_utc_us` by log in the file, where it has one.
    boot_times: Vec<Option<u64>>,
    /// Finds the sessions of the file.
    pub(crate) watch: Watch,
    /// Whether the times of all sessions are those of one clock.
    pub(crate) is_aligned: bool,
    /// The span of the data, once all of the log was scanned.
    data: Option<DataSpan>,
}

impl Summary {
    pub(crate) fn new() -> Self {
        Self {
            stats: Vec::new(),
            messages: [0; 256],
            levels: [0; 8],
            parameters: 0,
            changes: 0,
            dropouts: 0,
            dropped_millis: 0,
            longest_millis: 0,
            facts: BTreeMap::new(),
            gps: GpsClock::default(),
            boot_times: vec![None],
            watch: Watch::default(),
            is_aligned: false,
            data: None,
        }
    }

    /// Returns a summary for another scan of a log whose sessions are known: `watch` has ended.
    pub(crate) fn knowing(watch: Watch, is_aligned: bool) -> Self {
        Self { watch, is_aligned, ..Self::new() }
    }

    /// Counts a row of `len` bytes at `at`; `clock` is the log time before it.
    #[inline]
    pub(crate) fn row(&mut self, series: u32, at: u64, len: usize, micros: Option<u64>, clock: u64) {
        let stats = self.stats(series);
        let fell = stats.row(at, len, micros);
        if fell || self.watch.is_active {
            self.watch_row(series, at, micros, clock);
        }
    }

    /// Looks at a row that was counted, because it is earlier than the row of its topic before it or
    /// because all rows are looked at.
    #[cold]
    pub(crate) fn watch_row(&mut self, series: u32, at: u64, micros: Option<u64>, clock: u64) {
        let stats = self.stats(series);
        let (is_first, fell_at) = (stats.timed <= 1, stats.fell_at);
        if self.watch.is_active {
            self.watch.row(micros, is_first);
        }
        if let Some(micros) = micros.filter(|_| fell_at == Some(at) && !self.is_known()) {
            self.watch.fall(at, micros, clock, self.records().saturating_sub(1));
        }
    }

    /// Returns whether an earlier scan has found the sessions.
    fn is_known(&self) -> bool {
        !self.watch.is_active && self.watch.sessions.len() > 1
    }

    /// Takes the header of another log at `at`.
    pub(crate) fn join(&mut self, at: u64, header: FileHeader, clock: u64) {
        self.boot_times.push(None);
        if !self.is_known() {
            let records = self.records();
            self.watch.join(at, header, clock, records);
        }
    }

    /// Takes lost bytes.
    pub(crate) fn lose(&mut self) {
        if !self.is_known() {
            self.watch.lose();
        }
    }

    /// Returns the number of rows of all topics.
    fn records(&self) -> u64 {
        self.stats.iter().map(|stats| stats.count).sum()
    }

    /// Returns the number of rows of a topic so far.
    #[inline]
    pub(crate) fn rows(&self, series: u32) -> u64 {
        self.stats.get(series as usize).map_or(0, |stats| stats.count)
    }

    /// Returns what is counted of a topic.
    #[inline]
    pub(crate) fn stats(&mut self, series: u32) -> &mut Stats {
        let series = series as usize;
        if series >= self.stats.len() {
            self.stats.resize_with(series + 1, Stats::default);
        }
        &mut self.stats[series]
    }

    /// Takes a row of a topic that tells UTC.
    pub(crate) fn gps_row(&mut self, at: u64, definitions: &Definitions, shape: RowShape, bytes: &[u8]) {
        let topic = &definitions.topics[shape.series as usize];
        if let Ok(row) = definitions.row(topic, bytes) {
            let multi_id = definitions.subscriptions[shape.series as usize].multi_id;
            self.gps.row(at, shape.series, multi_id, &topic.type_name, &row);
        }
    }

    /// Takes a message that is not a row.
    pub(crate) fn message(&mut self, msg_type: u8, message: &Message<'_>, in_data: bool) {
        self.messages[usize::from(msg_type)] += 1;
        match *message {
            Message::Info(info) => {
                self.boot_time(info);
                self.fact(info);
            }
            // What a second log says of itself is not of the first one.
            Message::Parameter(_) if self.boot_times.len() > 1 => {}
            Message::Parameter(parameter) => {
                self.fact(parameter);
                if in_data { self.changes += 1 } else { self.parameters += 1 }
            }
            Message::LoggedString(wire::LoggedString { log_level, .. })
            | Message::TaggedString(wire::TaggedString { log_level, .. }) => {
                self.levels[usize::from(level_number(log_level).unwrap_or(7))] += 1;
            }
            Message::Dropout(wire::Dropout { duration: millis }) => {
                self.dropouts += 1;
                self.dropped_millis += u64::from(millis);
                self.longest_millis = self.longest_millis.max(millis);
            }
            _ => {}
        }
    }

    fn boot_time(&mut self, info: Info<'_>) {
        let key = info.parse_key().filter(|key| key.name == "boot_time_utc_us");
        if let (Some(key), Some(last)) = (key, self.boot_times.last_mut()) {
            *last = number(&info_value(key.ty, info.value, &TextDecoding::default()));
        }
    }

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

    /// Copies the counts of one topic to where users see them.
    pub(crate) fn publish(&self, scanner: &mut Scanner, series: u32) {
        let Some(stats) = self.stats.get(series as usize) else { return };
        let topic = &mut scanner.definitions.topics[series as usize];
        (topic.count, topic.bytes, topic.timed) = (stats.count, stats.bytes, stats.timed);
        let time =
            |micros| (stats.timed > 0).then(|| Timestamp::from_micros(micros, scanner.clock.clock)).flatten();
        (topic.first, topic.last) = (time(stats.first), time(stats.last));
        topic.in_order = stats.times.is_ascending();
    }

    /// Returns the eras in which each topic has rows, in a log that starts at `start`, microseconds.
    pub(crate) fn eras(&self, start: u64, topics: usize) -> Vec<[bool; 3]> {
        let start = i64::try_from(start).unwrap_or(i64::MAX).saturating_mul(1000);
        let of = |stats: &Stats| {
            // A row without a time takes the log time, which is in no era by itself: a log may start
            // at 0, or after the end of its data.
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

    /// Completes the topics when all of the log was scanned, and notes what is outside of the data:
    /// `data`, where a scan before has told.
    pub(crate) fn finish(&mut self, scanner: &mut Scanner, data: Option<DataSpan>) {
        if self.data.is_some() {
            return;
        }
        for series in 0..scanner.definitions.topics.len() {
            self.publish(scanner, u32::try_from(series).expect("ids are u32"));
        }
        let mut times: Vec<_> = self.stats.iter().map(|stats| stats.times.intervals()).collect();
        times.resize(scanner.definitions.topics.len(), Vec::new());
        let start = i64::try_from(self.start(scanner)).unwrap_or(i64::MAX).saturating_mul(1000);
        // Parts that were read may be far from each other.
        let is_whole = scanner.diagnostics.unread() == 0;
        let find = || DataSpan::of(&times, Some(start), scanner.clock.clock);
        let data = data.or_else(|| if is_whole { find() } else { None });
        if !is_whole {
            // A topic may have earlier and later rows than those that were read.
            scanner.definitions.topics.iter_mut().for_each(|topic| (topic.first, topic.last) = (None, None));
        }
        if let Some(data) = &data {
            data.settle(&times, &mut scanner.definitions.topics, &mut scanner.diagnostics);
        }
        self.data = data;
        self.watch.finish();
        if is_whole {
            self.watch.note(&mut scanner.diagnostics);
        }
        self.note_falls(scanner);
        self.gps.note(&self.ranges(), &scanner.definitions.topics, &mut scanner.diagnostics);
    }

    /// Returns the bytes of each session; the last one has no end.
    pub(crate) fn ranges(&self) -> Vec<Range<u64>> {
        let starts = self.watch.sessions.iter().skip(1).map(|session| session.at);
        let ends = starts.clone().chain([u64::MAX]);
        std::iter::once(0).chain(starts).zip(ends).map(|(start, end)| start..end).collect()
    }

    /// Returns the place of each session's own clock on the Unix clock.
    pub(crate) fn offsets(&self, scanner: &Scanner) -> Vec<Option<UtcOffset>> {
        let mut boot_times = self.boot_times.iter().copied();
        let mut offset = |(number, range): (usize, Range<u64>)| {
            let header = match self.watch.sessions.get(number) {
                Some(session) if number > 0 => session.header,
                _ => Some(scanner.header),
            };
            // A clock that restarts within a log has another boot time.
            let boot_time = header.and_then(|_| boot_times.next()).flatten();
            let gps = self.gps.offset(&range);
            let name = |gps: &GpsOffset| scanner.definitions.topics[gps.series as usize].name.as_str();
            let gps = gps.as_ref().map(|gps| (gps, name(gps)));
            utc::offset(header.map_or(0, |header| header.timestamp.get()), boot_time, gps)
        };
        self.ranges().into_iter().enumerate().map(&mut offset).collect()
    }

    /// Notes the rows that are earlier than the one before. "The timestamp must always be monotonic
    /// increasing for a message serie."
    fn note_falls(&mut self, scanner: &mut Scanner) {
        for (stats, topic) in self.stats.iter_mut().zip(&scanner.definitions.topics) {
            let (at, falls) = (stats.falls_at, std::mem::take(&mut stats.falls));
            if falls > 0 {
                scanner.diagnostics.push(&rules::TIMESTAMPS_FALL, at..at + HEADER_LEN, || {
                    let (rows, are) = if falls == 1 { ("row", "is") } else { ("rows", "are") };
                    format!(
                        "{falls} {rows} of {} {are} earlier than the previous row; this is the first",
                        topic.name
                    )
                });
            }
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.facts.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    fn number(&self, name: &str) -> Option<u64> {
        number(self.facts.get(name)?)
    }

    /// Returns the release in one of the information messages of these names.
    fn release(&self, names: &[&str]) -> Option<String> {
        let packed = names.iter().find_map(|name| self.number(name))?;
        Some(words::release(u32::try_from(packed).ok()?))
    }

    /// Returns the place of the log's clock on the Unix clock; `None` if sessions have clocks of their
    /// own that could not be aligned.
    pub(crate) fn utc(&self, scanner: &Scanner) -> Option<UtcOffset> {
        let mut offsets = self.offsets(scanner);
        let is_one = self.is_aligned || offsets.len() == 1;
        is_one.then(|| offsets.swap_remove(0)).flatten()
    }

    /// Returns the summary of what `scanner` has passed of a file of `size` bytes.
    pub(crate) fn info(&self, scanner: &Scanner, size: u64) -> LogInfo {
        let mut info = LogInfo::new(scanner.header.version.to_string(), size);
        info.dialect = (self.text("sys_name") == Some("PX4")).then_some("px4");
        info.set_state(&scanner.diagnostics, &rules::CUT);
        info.start = Timestamp::from_micros(self.start(scanner), scanner.clock.clock);
        info.end = scanner.clock.end();
        info.data.clone_from(&self.data);
        info.utc = self.utc(scanner);
        info.records = self.records();
        info.at_least = info.unread > 0;
        info.details = self.details(scanner, info.records);
        info.set_utc_start(scanner.utc_start);
        info
    }

    /// Returns when logging started, in microseconds. Some writers leave the header's time 0: then the median
    /// of the topics' first times, because a topic's first row may be a value published long before
    /// the log.
    fn start(&self, scanner: &Scanner) -> u64 {
        let start = scanner.header.timestamp.get();
        let mut firsts: Vec<_> = self.stats.iter().filter(|s| s.timed > 0).map(|s| s.first).collect();
        firsts.sort_unstable();
        match firsts.get(firsts.len() / 2) {
            Some(median) if start == 0 && *median > 1_000_000 => *median,
            _ => start,
        }
    }

    fn details(&self, scanner: &Scanner, rows: u64) -> Vec<Detail> {
        let mut details = Vec::new();
        details.extend(self.watch.detail());
        details.extend(self.vehicle());
        details.extend(self.hardware());
        details.extend(self.software());
        details.extend(self.system());
        if let Some(replay) = self.text("replay") {
            details.push(Detail::new("replay", replay, Value::Text(replay.to_owned())));
        }
        let is_whole = scanner.diagnostics.unread() == 0;
        let checked = |detail: Detail| {
            if is_whole { detail } else { Detail::new(detail.key, "not checked", Value::Null) }
        };
        details.push(checked(self.dropouts()));
        let (initial, changed) = (self.parameters, self.changes);
        let text = match changed {
            _ if !is_whole => format!("{initial}; changes not checked"),
            0 => initial.to_string(),
            n => format!("{initial}, {n} changed in the log"),
        };
        details.push(Detail::new(
            "params",
            text,
            Value::record([
                ("initial", Value::count(initial)),
                ("changed", if is_whole { Value::count(changed) } else { Value::Null }),
            ]),
        ));
        details.push(checked(self.console()));
        if !scanner.appended.is_empty() {
            let offsets = scanner.appended.iter().map(|offset| Value::count(*offset)).collect();
            let text = match scanner.appended.len() {
                1 => "1 section".to_owned(),
                n => format!("{n} sections"),
            };
            details.push(Detail::new("appended", text, Value::List(offsets)));
        }
        let unknown = (0..=255).filter(|msg_type| !kind::ALL.contains(msg_type));
        let types = kind::ALL.into_iter().chain(unknown);
        let by_type = types.filter_map(|msg_type| {
            let n = if msg_type == kind::DATA { rows } else { self.messages[usize::from(msg_type)] };
            (n > 0).then(|| (msg_type.escape_ascii().to_string(), Value::count(n)))
        });
        details.push(Detail::hidden("message_types", Value::record(by_type.collect::<Vec<_>>())));
        details
    }

    fn vehicle(&self) -> Option<Detail> {
        let mut parts = Vec::new();
        let mut fields = Vec::new();
        if let Some(mav_type) = self.number("MAV_TYPE") {
            let name = i64::try_from(mav_type).ok().and_then(words::vehicle_type);
            parts.push(name.map_or_else(|| format!("MAV_TYPE {mav_type}"), str::to_owned));
            fields.push(("mav_type", Value::count(mav_type)));
            fields.push(("type", name.map_or(Value::Null, |name| Value::Text(name.to_owned()))));
        }
        if let Some(airframe) = self.number("SYS_AUTOSTART") {
            parts.push(format!("airframe {airframe}"));
            fields.push(("airframe", Value::count(airframe)));
        }
        if let Some(id) = self.text("sys_uuid") {
            parts.push(format!("id {id}"));
            fields.push(("id", Value::Text(id.to_owned())));
        }
        (!parts.is_empty()).then(|| Detail::new("vehicle", parts.join(", "), Value::record(fields)))
    }

    fn hardware(&self) -> Option<Detail> {
        let parts: Vec<_> = ["ver_hw", "ver_hw_subtype", "sys_mcu"]
            .into_iter()
            .filter_map(|name| Some((name, self.text(name)?)))
            .collect();
        joined("hardware", &parts)
    }

    fn software(&self) -> Option<Detail> {
        let release = self.release(&["ver_sw_release"]);
        let commit = self.text("ver_sw").map(|commit| commit.get(..8).unwrap_or(commit));
        let branch = self.text("ver_sw_branch").map(|branch| format!("branch {branch}"));
        let text: Vec<&str> = [self.text("sys_name"), release.as_deref(), commit, branch.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        let value = |name| self.facts.get(name).cloned().unwrap_or(Value::Null);
        (!text.is_empty()).then(|| {
            Detail::new(
                "software",
                text.join(" "),
                Value::record([
                    ("name", value("sys_name")),
                    ("release", release.clone().map_or(Value::Null, Value::Text)),
                    ("commit", value("ver_sw")),
                    ("branch", value("ver_sw_branch")),
                ]),
            )
        })
    }

    fn system(&self) -> Option<Detail> {
        // The specification says `ver_os_release`, PX4 writes `sys_os_ver_release`.
        let release = self.release(&["sys_os_ver_release", "ver_os_release"]);
        let toolchain = [self.text("sys_toolchain"), self.text("sys_toolchain_ver")];
        let toolchain = toolchain.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut parts: Vec<_> = [("sys_os_name", self.text("sys_os_name")), ("release", release.as_deref())]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect();
        if !toolchain.is_empty() {
            parts.push(("toolchain", &toolchain));
        }
        joined("system", &parts)
    }

    fn dropouts(&self) -> Detail {
        let seconds = self.dropped_millis as f64 / 1000.0;
        let text = match self.dropouts {
            0 => "none".to_owned(),
            n => format!("{n}, total {seconds:.3} s, longest {} ms", self.longest_millis),
        };
        Detail::new(
            "dropouts",
            text,
            Value::record([
                ("count", Value::count(self.dropouts)),
                ("total_ms", Value::count(self.dropped_millis)),
                ("longest_ms", Value::count(self.longest_millis.into())),
            ]),
        )
    }

    fn console(&self) -> Detail {
        let names = rovelog_core::record::LEVELS;
        let by_level: Vec<_> = names.iter().zip(self.levels).filter(|(_, n)| *n > 0).collect();
        let text: Vec<_> = by_level.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let text = if text.is_empty() { "none".to_owned() } else { text.join(", ") };
        Detail::new(
            "messages",
            text,
            Value::record(by_level.iter().map(|(name, n)| (**name, Value::count(*n)))),
        )
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::UInt(v, _) => Some(*v),
        Value::Int(v, _) => u64::try_from(*v).ok(),
        _ => None,
    }
}

/// Returns a line of several texts, each under its name in JSON; `None` without any.
fn joined(key: &'static str, parts: &[(&'static str, &str)]) -> Option<Detail> {
    let text = parts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(", ");
    let value = parts.iter().map(|(name, text)| (*name, Value::Text((*text).to_owned())));
    (!parts.is_empty()).then(|| Detail::new(key, text, Value::record(value)))
}
