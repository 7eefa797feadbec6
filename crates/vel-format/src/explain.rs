//! Every choice that was made from the file at hand, with its evidence: `rovelog info --explain`.

use rovelog_core::text::count;
use rovelog_core::{Detail, Value};

use crate::frame::Walk;
use crate::indexing::{IndexOrigin, IndexState};
use crate::locate::Found;
use crate::summary::{Counts, Meaning};

/// A point that the specification leaves open, as it was settled for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// What was open: `size_rule`.
    pub what: &'static str,
    /// What was chosen.
    pub choice: String,
    /// What that rests on.
    pub evidence: String,
    /// Whether it is a default that nothing in the file confirms.
    pub assumed: bool,
}

impl Choice {
    fn new(what: &'static str, choice: impl Into<String>, evidence: String, assumed: bool) -> Self {
        Self { what, choice: choice.into(), evidence, assumed }
    }
}

pub(crate) fn choices(
    walk: &Walk,
    counts: &Counts,
    state: &IndexState,
    meaning: &Meaning,
    has_positions: bool,
) -> Vec<Choice> {
    let mut choices = vec![size_rule(walk), marker(counts), first(walk)];
    choices.extend(index(state));
    if has_positions {
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
        let unit = pose.unit.name();
        choices.push(Choice::new("acceleration_unit", unit, pose.unit_evidence.clone(), pose.unit_assumed));
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

fn size_rule(walk: &Walk) -> Choice {
    let evidence = walk.start.evidence;
    if evidence.walked == 0 {
        return Choice::new("size_rule", walk.rule.name(), "there is no message".to_owned(), true);
    }
    let ends = if evidence.ends { ", up to the end of the log" } else { "" };
    let why = format!(
        "{} in a chain{ends}; the length fits the content of {}",
        count(evidence.walked, "message"),
        evidence.exact
    );
    Choice::new("size_rule", walk.rule.name(), why, evidence.exact == 0)
}

fn marker(counts: &Counts) -> Choice {
    let Counts { ascii, printed, .. } = *counts;
    let choice = match (ascii, printed) {
        (0, 0) => "0x49",
        (_, 0) => "0x31",
        (0, _) => "0x49",
        _ => "mixed",
    };
    Choice::new(
        "marker",
        choice,
        format!("{} with 0x49, {ascii} with 0x31", count(printed, "message")),
        ascii + printed == 0,
    )
}

fn first(walk: &Walk) -> Choice {
    let start = &walk.start;
    let why = match start.found {
        Found::BehindIndex => format!("right behind the index of {}", count(start.claimed, "entry")),
        Found::ByEntry => "named by an index entry; none begins right behind the index".to_owned(),
        Found::ByScan => "found by looking at every byte; none begins right behind the index".to_owned(),
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

/// The detail `index`.
pub(crate) fn index_detail(walk: &Walk, state: &IndexState) -> Detail {
    let entries = walk.start.claimed;
    let (text, origin, why) = match state {
        IndexState::Absent => ("absent".to_owned(), None, None),
        IndexState::Good(IndexOrigin::FirstMessage) => {
            (format!("used, {} from the first message", count(entries, "entry")), Some("first_message"), None)
        }
        IndexState::Good(IndexOrigin::ProgramStart) => {
            (format!("used, {} from program start", count(entries, "entry")), Some("program_start"), None)
        }
        IndexState::Rebuilt(why) => (format!("rebuilt: {why}"), None, Some(why.clone())),
    };
    let text_or_null = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    let value = Value::record([
        ("state", Value::Text(state.name().to_owned())),
        ("entries", Value::UInt(entries.into(), 32)),
        ("origin", text_or_null(origin.map(str::to_owned))),
        ("reason", text_or_null(why)),
    ]);
    Detail::new("index", text, value)
}

/// The detail `choices`.
pub(crate) fn choices_detail(choices: &[Choice]) -> Detail {
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
