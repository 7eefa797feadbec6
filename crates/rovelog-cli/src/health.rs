//! Prints the health of time stamps, that is, gaps, jitter and order. The commands `check` and
//! `stats` use it.

use std::io::Write as _;

use rovelog::Topic;
use rovelog::core::health::{Gap, Health, TopicHealth};
use serde::Serialize;

use crate::context::Context;
use crate::failure::Failure;
use crate::machine::Count;
use crate::output::Out;
use crate::table::Table;
use crate::text::{cell, count, escape};
use crate::times::Times;

/// Maximum number of topics with bad time stamps that are listed, unless `-v` is given.
const MAX_LISTED: usize = 5;

/// Health of the time stamps in all topics, for machine-readable output.
#[derive(Serialize)]
pub(crate) struct HealthDoc<'a> {
    summary: String,
    topics: Vec<TopicDoc<'a>>,
}

/// Health of the time stamps in one topic, for machine-readable output. The reference of the JSON
/// output documents the keys. Durations are in nanoseconds.
#[derive(Serialize)]
pub(crate) struct TopicDoc<'a> {
    topic: &'a str,
    count: Count,
    /// True if the topic has a steady rate. Gaps are detected only in topics with a steady rate.
    steady: bool,
    nominal_hz: Option<f64>,
    rate_hz: Option<f64>,
    period_ns: Option<String>,
    shortest_ns: Option<String>,
    longest_ns: Option<String>,
    jitter_ns: Option<f64>,
    gaps: Count,
    confirmed: Count,
    missing: Count,
    longest_gaps: Vec<GapDoc>,
    falling: Count,
    repeated: Count,
    silent_ns: Option<String>,
    stuck: bool,
}

#[derive(Serialize)]
struct GapDoc {
    time: Option<String>,
    t_ns: Option<String>,
    length_ns: String,
}

/// Health of the time stamps in a log, together with the topics of the log.
pub(crate) struct Report<'a> {
    health: &'a Health,
    /// All topics of the log, ordered so that `topics[id.index()]` is the topic with the id `id`.
    topics: Vec<&'a Topic>,
    times: &'a Times,
}

impl<'a> Report<'a> {
    pub(crate) fn new(health: &'a Health, topics: &'a [Topic], times: &'a Times) -> Self {
        let mut topics: Vec<_> = topics.iter().collect();
        // A survey sorts its topics by name. The results of the time stamp check refer to topics by
        // index, so the topics are sorted by index here.
        topics.sort_unstable_by_key(|topic| topic.id.index());
        Self { health, topics, times }
    }

    fn topic(&self, health: &TopicHealth) -> &'a Topic {
        self.topics[health.topic.index()]
    }

    /// Returns one sentence that summarizes the health of all time stamps.
    pub(crate) fn sentence(&self) -> String {
        self.health.sentence(&|id| &self.topics[id.index()].name)
    }

    pub(crate) fn doc(&self) -> HealthDoc<'a> {
        HealthDoc { summary: self.sentence(), topics: self.topic_docs().collect() }
    }

    pub(crate) fn topic_docs(&self) -> impl Iterator<Item = TopicDoc<'a>> {
        let text = |nanos: Option<i64>| nanos.map(|nanos| nanos.to_string());
        self.health.topics.iter().map(move |health| TopicDoc {
            topic: &self.topic(health).name,
            count: Count(health.count),
            steady: health.steady,
            nominal_hz: health.nominal_hz(),
            rate_hz: self.topic(health).rate_hz(),
            period_ns: text(health.period),
            shortest_ns: text(health.shortest),
            longest_ns: text(health.longest),
            jitter_ns: health.jitter,
            gaps: Count(health.gaps),
            confirmed: Count(health.confirmed),
            missing: Count(health.missing),
            longest_gaps: health
                .longest_gaps
                .iter()
                .map(|gap| GapDoc {
                    time: self.times.machine(Some(self.times.at(gap.start))),
                    t_ns: self.times.t_ns_text(Some(self.times.at(gap.start))),
                    length_ns: gap.length.to_string(),
                })
                .collect(),
            falling: Count(health.falling),
            repeated: Count(health.repeated),
            silent_ns: text(health.silent),
            stuck: health.is_stuck,
        })
    }

    /// Prints one line for each topic whose time stamps have problems. Topics with missing records
    /// come first. They are ordered by the length of their longest gap. Each line starts with the
    /// text `of`, which names the log if there are several logs.
    pub(crate) fn list(&self, out: &mut Out, of: &str, context: &Context) -> Result<(), Failure> {
        let mut found: Vec<_> = self.health.topics.iter().filter(|topic| topic.is_remarkable()).collect();
        let length = |gap: Option<&Gap>| gap.map(|gap| gap.length);
        // `None` compares as less than any length, so topics without missing records come last.
        found.sort_by_key(|topic| {
            let lacking = length(topic.longest_confirmed.as_ref());
            std::cmp::Reverse((lacking, length(topic.longest_gaps.first())))
        });
        let most = if context.global.verbose { usize::MAX } else { MAX_LISTED };
        for health in found.iter().take(most) {
            let name = escape(&self.topic(health).name);
            writeln!(out, "{of}NOTE   {name}: {}", self.remarks(health))?;
        }
        if found.len() > most {
            let more = count(found.len() - most, "more topic");
            writeln!(out, "{of}NOTE   {more} with gaps or wrong times (-v lists all)")?;
        }
        Ok(())
    }

    /// Describes the gaps and errors of the time stamps in a topic, for example `3 gaps, longest
    /// 0.566 s after 12:01:05; about 141 records missing in 2 of them`.
    fn remarks(&self, health: &TopicHealth) -> String {
        let seconds = |nanos: i64| format!("{:.3} s", nanos as f64 / 1e9);
        let mut said = Vec::new();
        if let Some(longest) = health.longest_gaps.first() {
            let (length, after) = (seconds(longest.length), self.times.brief(self.times.at(longest.start)));
            said.push(format!("{}, longest {length} after {after}", count(health.gaps, "gap")));
        }
        // A gap counts as confirmed if the log contains a dropout or lost bytes there, or if most
        // other topics have a gap too. During an unconfirmed gap, the topic may simply have paused,
        // so no record counts as missing.
        if health.confirmed > 0 {
            let within = match health.confirmed {
                all if all == health.gaps => String::new(),
                some => format!(" in {some} of them"),
            };
            said.push(format!("about {} missing{within}", count(health.missing, "record")));
        }
        if let Some(first) = health.first_fall {
            let records = count(health.falling, "record");
            let are = if health.falling == 1 { "is" } else { "are" };
            let at = self.times.brief(self.times.at(first));
            said.push(format!("{records} {are} earlier than the record before, first {at}"));
        }
        if let Some((silent, latest)) = health.silent.zip(health.latest) {
            let at = self.times.brief(self.times.at(latest));
            said.push(format!("stops {} before the end, at {at}", seconds(silent)));
        }
        if health.is_stuck {
            said.push(format!("{} have the same time", count(health.count, "record")));
        }
        said.join("; ")
    }

    /// Returns a table of all topics for text output.
    pub(crate) fn table(&self) -> Table<'static> {
        let times = ["NOMINAL Hz", "RATE Hz", "JITTER ms", "LONGEST s"];
        let counts = ["GAPS", "MISSING", "FALLING", "REPEATED"];
        let table = Table::default().left(["TOPIC"]).right(["COUNT"]).right(times);
        let mut table = table.right(counts).right(["SILENT s"]);
        let float = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
        let seconds = |nanos: Option<i64>| float(nanos.map(|nanos| nanos as f64 / 1e9));
        for health in &self.health.topics {
            table.row([
                self.topic(health).name.clone(),
                health.count.to_string(),
                float(health.nominal_hz()),
                float(self.topic(health).rate_hz()),
                float(health.jitter.map(|jitter| jitter / 1e6)),
                seconds(health.longest),
                health.gaps.to_string(),
                health.missing.to_string(),
                health.falling.to_string(),
                health.repeated.to_string(),
                seconds(health.silent),
            ]);
        }
        table
    }

    /// Writes all topics as CSV.
    pub(crate) fn csv(&self, mut out: Out) -> Result<(), Failure> {
        #[rustfmt::skip]
        let head = [
            "topic", "count", "steady", "nominal_hz", "rate_hz", "period_ns", "shortest_ns",
            "longest_ns", "jitter_ns", "gaps", "confirmed", "missing", "falling", "repeated",
            "silent_ns", "stuck",
        ];
        let rows = self.topic_docs().map(|doc| {
            [
                doc.topic.to_owned(),
                doc.count.to_string(),
                doc.steady.to_string(),
                cell(doc.nominal_hz),
                cell(doc.rate_hz),
                doc.period_ns.unwrap_or_default(),
                doc.shortest_ns.unwrap_or_default(),
                doc.longest_ns.unwrap_or_default(),
                cell(doc.jitter_ns),
                doc.gaps.to_string(),
                doc.confirmed.to_string(),
                doc.missing.to_string(),
                doc.falling.to_string(),
                doc.repeated.to_string(),
                doc.silent_ns.unwrap_or_default(),
                doc.stuck.to_string(),
            ]
        });
        out.csv(head, rows)
    }
}
