//! Settings that were inferred from a log, with the evidence for each setting. They are shown by
//! `rovelog info --explain`.

use rovelog_core::internal::text::count;
use rovelog_core::{Clock, Detail, LogInfo, Timestamp, Value};

use crate::diagnostics as rules;
use crate::gps::UtcFit;
use crate::indexing::{IndexOrigin, IndexState};
use crate::locate::LocatedBy;
use crate::message::text;
use crate::scan::Scanner;
use crate::schema::raw_topic;
use crate::state::{Conclusions, Counts, Meaning, Summary};

/// A setting that the VEL specification leaves open, and that was inferred from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Name of the setting, for example `size_rule`.
    pub what: &'static str,
    /// Inferred value of the setting.
    pub choice: String,
    /// Evidence for the inferred value.
    pub evidence: String,
    /// True if the value is a default, because the log does not determine it.
    pub assumed: bool,
}

impl Choice {
    fn new(what: &'static str, choice: impl Into<String>, evidence: String, assumed: bool) -> Self {
        Self { what, choice: choice.into(), evidence, assumed }
    }
}

impl Summary {
    /// Creates the summary of a log. `size` is the size of the file in bytes.
    pub(crate) fn info(&self, scanner: &Scanner, conclusions: &Conclusions, size: u64) -> LogInfo {
        let header = scanner.start.header;
        let version = format!("{}.{}", header.major.get(), header.minor.get());
        let mut info = LogInfo::new(version, size);
        let at = |nanos| Timestamp::new(nanos, Clock::LogStart);
        (info.start, info.end) = self.topics.span().map(|(first, last)| (at(first), at(last))).unzip();
        info.data.clone_from(&self.data);
        info.utc = conclusions.meaning.gps.utc.as_ref().map(UtcFit::offset);
        info.records = self.topics.list.iter().map(|topic| topic.count).sum();
        info.set_state(&scanner.diagnostics, &rules::CUT);
        info.at_least = info.unread > 0;
        info.details = self.details(scanner, conclusions, size);
        info.set_utc_start(self.utc_start);
        info
    }

    /// Returns the settings that were inferred from the log, with the evidence for each setting.
    pub(crate) fn choices(&self, scanner: &Scanner, conclusions: &Conclusions) -> Vec<Choice> {
        let counts = &self.counts;
        let Conclusions { index: state, meaning } = conclusions;
        let mut choices = vec![size_rule(scanner), marker(counts), first(scanner)];
        choices.extend(index(state));
        if !self.fixes.is_empty() {
            let gps = &meaning.gps;
            choices.push(Choice::new("position_unit", gps.unit.name(), gps.evidence.clone(), gps.assumed));
            choices.push(match &gps.utc {
                Some(utc) => Choice::new("utc", "gps", utc.offset().evidence, false),
                None => Choice::new("utc", "none", "no usable position with a date".to_owned(), true),
            });
        }
        let pose = &meaning.pose;
        if !pose.unit_evidence.is_empty() {
            let reading = format!("{} {}", pose.order.name(), pose.direction.name());
            choices.push(Choice::new("quaternion", reading, pose.evidence.clone(), pose.assumed));
            let (unit, why) = (pose.unit.name(), pose.unit_evidence.clone());
            choices.push(Choice::new("acceleration_unit", unit, why, pose.unit_assumed));
        }
        if counts.packets > 0 {
            choices.push(match &meaning.velodyne {
                Some(sensor) => {
                    let choice = format!("{} {}", sensor.model.name(), sensor.mode.name());
                    Choice::new("velodyne", choice, sensor.evidence.clone(), sensor.assumed)
                }
                None => Choice::new("velodyne", "unknown", "the packets fit no model".to_owned(), true),
            });
        }
        choices
    }

    fn details(&self, scanner: &Scanner, conclusions: &Conclusions, size: u64) -> Vec<Detail> {
        let choices = self.choices(scanner, conclusions);
        let mut details = vec![index_detail(scanner, &conclusions.index), choices_detail(&choices)];
        let counts = &self.counts;
        details.push(Detail::hidden("messages", Value::count(counts.messages)));
        if counts.invalid > 0 {
            let text = format!("{} marked as invalid", counts.invalid);
            details.push(Detail::new("invalid", text, Value::count(counts.invalid)));
        }
        if let Some(ended) = counts.ended {
            let tail = size.saturating_sub(ended);
            let bytes = count(tail, "byte");
            let text = match (counts.left_out, tail) {
                (0, 0) => "end mark".to_owned(),
                (0, _) => format!("end mark, followed by {bytes}"),
                (left_out, _) => {
                    let messages = count(left_out, "message");
                    format!("end mark, followed by {messages} that are left out ({bytes})")
                }
            };
            let value =
                [("tail_bytes", Value::count(tail)), ("left_out_messages", Value::count(counts.left_out))];
            details.push(Detail::new("end", text, Value::record(value)));
        }
        details.extend(self.unknown_detail());
        details.extend(self.velodyne_detail(&conclusions.meaning));
        details.extend(self.laser_detail());
        details
    }

    fn unknown_detail(&self) -> Option<Detail> {
        let mut unknown: Vec<_> = self
            .topics
            .raws
            .keys()
            .filter(|key| self.topics.decoder.types.find(key.0, key.1).is_none())
            .collect();
        unknown.sort_unstable();
        if unknown.is_empty() {
            return None;
        }
        let name = |(id, version): &(u32, i32)| {
            let name = raw_topic(*id, *version);
            match crate::hash::suggest(*id) {
                Some(likely) => format!("{name} (perhaps {likely})"),
                None => name,
            }
        };
        let value = unknown.iter().map(|(id, version)| {
            Value::record([
                ("type_id", Value::Text(format!("0x{id:08X}"))),
                ("version", Value::Int((*version).into(), 32)),
                ("suggested", text_or_null(crate::hash::suggest(*id))),
            ])
        });
        let text = unknown.iter().map(|key| name(key)).collect::<Vec<_>>().join(", ");
        Some(Detail::new("unknown_types", text, Value::List(value.collect())))
    }

    fn velodyne_detail(&self, meaning: &Meaning) -> Option<Detail> {
        let packets = self.counts.packets;
        if packets == 0 {
            return None;
        }
        let names = meaning.velodyne.as_ref().map(|sensor| (sensor.model.name(), sensor.mode.name()));
        let counted = count(packets, "packet");
        let text = match names {
            Some((model, mode)) => format!("{model}, {mode} returns, {counted}"),
            None => format!("unknown model, {counted}"),
        };
        let (model, mode) = names.unzip();
        let value = Value::record([
            ("model", text_or_null(model)),
            ("returns", text_or_null(mode)),
            ("packets", Value::count(packets)),
        ]);
        Some(Detail::new("velodyne", text, value))
    }

    fn laser_detail(&self) -> Option<Detail> {
        let mut names: Vec<String> = self.topics.lasers.keys().map(|name| text(name).into_owned()).collect();
        names.sort_unstable();
        let value = Value::List(names.iter().map(|name| Value::Text(name.clone())).collect());
        (!names.is_empty()).then(|| Detail::hidden("laser_scanners", value))
    }
}

fn size_rule(scanner: &Scanner) -> Choice {
    let evidence = scanner.start.evidence;
    if evidence.scanned == 0 {
        return Choice::new("size_rule", scanner.rule().name(), "there is no message".to_owned(), true);
    }
    let ends = if evidence.ends || evidence.marked { ", up to the end of the log" } else { "" };
    let (checked, exact) = (count(evidence.scanned, "message"), evidence.exact);
    let why = format!("{checked} checked in sequence{ends}; the length fits the content of {exact}");
    Choice::new("size_rule", scanner.rule().name(), why, exact == 0)
}

fn marker(counts: &Counts) -> Choice {
    let Counts { ascii, printed, .. } = *counts;
    let choice = match (ascii, printed) {
        (0, _) => "0x49",
        (_, 0) => "0x31",
        _ => "mixed",
    };
    let why = format!("{} with 0x49, {ascii} with 0x31", count(printed, "message"));
    Choice::new("marker", choice, why, ascii + printed == 0)
}

fn first(scanner: &Scanner) -> Choice {
    let start = &scanner.start;
    let why = match start.found {
        LocatedBy::AfterIndex => format!("right after the index of {}", count(start.claimed, "entry")),
        LocatedBy::ByEntry => "from an index entry; no message starts right after the index".to_owned(),
        LocatedBy::ByScan => {
            "found by searching every byte; no message starts right after the index".to_owned()
        }
    };
    Choice::new("first_message", format!("byte {}", start.first), why, false)
}

fn index(state: &IndexState) -> Option<Choice> {
    let IndexState::Good(origin) = state else { return None };
    let (choice, what) = match origin {
        IndexOrigin::FirstMessage => ("first_message", "the first message"),
        IndexOrigin::ProgramStart => ("program_start", "the start of the program"),
    };
    let why = format!("counted from {what}, every entry names the first message of its second");
    Some(Choice::new("index_origin", choice, why, false))
}

fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

/// Creates the detail `index` of `info`.
fn index_detail(scanner: &Scanner, state: &IndexState) -> Detail {
    let entries = scanner.start.claimed;
    let counted = count(entries, "entry");
    let (text, origin, why) = match state {
        IndexState::Absent => ("absent".to_owned(), None, None),
        IndexState::Good(IndexOrigin::FirstMessage) => {
            (format!("used, {counted} from the first message"), Some("first_message"), None)
        }
        IndexState::Good(IndexOrigin::ProgramStart) => {
            (format!("used, {counted} from program start"), Some("program_start"), None)
        }
        IndexState::NotChecked => (format!("{counted}, not checked"), None, None),
        IndexState::Rebuilt(why) => (format!("rebuilt: {why}"), None, Some(why.as_str())),
    };
    let value = Value::record([
        ("state", Value::Text(state.name().to_owned())),
        ("entries", Value::UInt(entries.into(), 32)),
        ("origin", text_or_null(origin)),
        ("reason", text_or_null(why)),
    ]);
    Detail::new("index", text, value)
}

/// Creates the detail `choices` of `info`.
fn choices_detail(choices: &[Choice]) -> Detail {
    let short = |choice: &Choice| {
        let assumed = if choice.assumed { " (assumed)" } else { "" };
        format!("{} {}{assumed}", choice.what.replace('_', " "), choice.choice)
    };
    let text = choices.iter().map(short).collect::<Vec<_>>().join("; ");
    let value = choices.iter().map(|choice| {
        Value::record([
            ("what", Value::Text(choice.what.to_owned())),
            ("choice", Value::Text(choice.choice.clone())),
            ("evidence", Value::Text(choice.evidence.clone())),
            ("assumed", Value::Bool(choice.assumed)),
        ])
    });
    Detail::new("choices", text, Value::List(value.collect()))
}
