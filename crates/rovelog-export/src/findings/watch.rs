//! Building blocks of rules: watches of topics, and spans in which a condition holds.

use std::ops::Range;

use super::{Evidence, Finding, Kind, Severity};

/// A rule that examines the rows of one topic. The rows are passed in file order.
pub(super) trait Watch {
    /// Examines a row. `values` has the fields that were passed to `Scan::add`, in the same order.
    /// A field that the topic lacks is NaN.
    fn row(&mut self, time: i64, values: &[f64]);

    /// Appends the findings to `found`. The method is called after the last row. `_topic` is the
    /// name of the topic.
    fn finish(&mut self, _topic: &str, _found: &mut Vec<Finding>) {}
}

/// A value and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) time: i64,
    pub(super) value: f64,
}

/// Time span in which a condition held, with interruptions shorter than [`JOIN`].
#[derive(Clone, Debug)]
pub(super) struct Span {
    /// Time of the first row for which the condition held.
    pub(super) start: i64,
    /// Time of the last row for which the condition held.
    pub(super) end: i64,
    /// Row with the worst value.
    pub(super) worst: Sample,
    /// Longest time in nanoseconds for which the condition held without interruption.
    pub(super) longest: i64,
}

impl Span {
    /// Creates a finding whose evidence is the worst value of `signal`.
    pub(super) fn finding(
        &self,
        kind: Kind,
        severity: Severity,
        sentence: String,
        signal: String,
        limit: f64,
    ) -> Finding {
        let evidence = Evidence::value(signal, self.worst.time, self.worst.value).with_limit(limit);
        Finding::new(kind, severity, self.start..self.end, sentence, vec![evidence])
    }

    /// Extends this span to the end of a later span.
    fn join(&mut self, later: &Self, is_higher_worse: bool) {
        self.end = later.end;
        self.longest = self.longest.max(later.longest);
        let (worst, value) = (self.worst.value, later.worst.value);
        if (is_higher_worse && value.abs() > worst.abs()) || (!is_higher_worse && value < worst) {
            self.worst = later.worst;
        }
    }

    /// Returns the severity `High` if the condition held for at least `critical` nanoseconds
    /// without interruption. Otherwise, returns `Medium`.
    pub(super) const fn severity(&self, critical: i64) -> Severity {
        if self.longest >= critical { Severity::High } else { Severity::Medium }
    }
}

/// A rule that consists of a condition and a report.
///
/// - `test` is called with the time and the fields of each row. If the condition holds, `test`
///   returns a value that measures the problem, such as a voltage. Otherwise, it returns `None`.
/// - `holds` collects the spans in which the condition held.
/// - `report` is called with the name of the topic and each span, and returns the finding.
pub(super) struct Check<T, R> {
    pub(super) holds: Holds,
    pub(super) test: T,
    pub(super) report: R,
}

impl<T, R> Watch for Check<T, R>
where
    T: FnMut(i64, &[f64]) -> Option<f64>,
    R: Fn(&str, &Span) -> Finding,
{
    fn row(&mut self, time: i64, values: &[f64]) {
        let value = (self.test)(time, values);
        self.holds.push(time, value);
    }

    fn finish(&mut self, topic: &str, found: &mut Vec<Finding>) {
        found.extend(self.holds.finish().iter().map(|span| (self.report)(topic, span)));
    }
}

/// Spans that are less than this time in nanoseconds apart are joined. Otherwise, a value that
/// oscillates around its limit would result in many findings instead of one.
const JOIN: i64 = 10_000_000_000;

/// Maximum number of spans of a rule. Further spans are joined to the last one, so that a rule
/// needs little memory.
const MAX_SPANS: usize = 64;

/// Finds the spans in which a condition holds for at least `min` nanoseconds.
///
/// For example, `min` is 2 s, and a condition holds from 10 s to 13 s, from 15 s to 16 s, and from
/// 40 s to 42 s. The result is the spans 10 s to 13 s and 40 s to 42 s. The span in between is too
/// short, and the two others are too far apart to be joined.
pub(super) struct Holds {
    min: i64,
    is_higher_worse: bool,
    /// Span that is not yet finished.
    open: Option<Span>,
    found: Vec<Span>,
}

impl Holds {
    /// Creates a collector of spans for a condition whose values are worse if their magnitudes are
    /// higher.
    pub(super) const fn above(min: i64) -> Self {
        Self { min, is_higher_worse: true, open: None, found: Vec::new() }
    }

    /// Creates a collector of spans for a condition whose values are worse if they are lower.
    pub(super) const fn below(min: i64) -> Self {
        Self { min, is_higher_worse: false, open: None, found: Vec::new() }
    }

    /// Adds a row. `value` is `None` if the condition does not hold.
    pub(super) fn push(&mut self, time: i64, value: Option<f64>) {
        let Some(value) = value else { return self.close() };
        let worst = Sample { time, value };
        let row = Span { start: time, end: time, worst, longest: 0 };
        let open = self.open.get_or_insert_with(|| row.clone());
        open.longest = time.saturating_sub(open.start);
        open.join(&row, self.is_higher_worse);
    }

    fn close(&mut self) {
        let Some(span) = self.open.take().filter(|span| span.longest >= self.min) else { return };
        let is_full = self.found.len() >= MAX_SPANS;
        match self.found.last_mut() {
            Some(last) if is_full || span.start.saturating_sub(last.end) < JOIN => {
                last.join(&span, self.is_higher_worse);
            }
            _ => self.found.push(span),
        }
    }

    /// Finishes the last span and returns all spans. It is called after the last row.
    pub(super) fn finish(&mut self) -> Vec<Span> {
        self.close();
        std::mem::take(&mut self.found)
    }
}

/// Time ranges in which a state was active, in time order.
#[derive(Debug, Default)]
pub(super) struct States {
    spans: Vec<Range<i64>>,
    is_on: bool,
}

impl States {
    /// Adds the state at a time. It lasts until the next call.
    pub(super) fn push(&mut self, time: i64, is_on: bool) {
        match (self.is_on, is_on) {
            // The end is unknown until the state changes again.
            (false, true) => self.spans.push(time..i64::MAX),
            (true, false) => {
                if let Some(last) = self.spans.last_mut() {
                    last.end = time;
                }
            }
            _ => {}
        }
        self.is_on = is_on;
    }

    /// Returns the time spans in which the state was active until `end`.
    pub(super) fn spans(&self, end: i64) -> impl Iterator<Item = Range<i64>> {
        self.spans.iter().map(move |span| span.start.min(end)..span.end.min(end))
    }

    /// Returns whether the state was active at any time of a span.
    pub(super) fn overlaps(&self, span: &Span) -> bool {
        self.spans.iter().any(|active| active.start <= span.end && active.end > span.start)
    }

    /// Returns whether the state was active at a time.
    pub(super) fn is_on(&self, time: i64) -> bool {
        let after = self.spans.partition_point(|span| span.start <= time);
        after.checked_sub(1).is_some_and(|last| time < self.spans[last].end)
    }
}
