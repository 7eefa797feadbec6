//! Builder for a test log and its expected result, for all formats.
//!
//! Each step appends bytes to the log, and adds what a reader must find in these bytes to the
//! expected result. Steps are chained, so that a recipe has the same order as the file. For
//! example, `plain().rows(0..5).lose("gap", noise).rows(5..9)` writes five rows, bytes that are
//! lost, and four more rows.
//!
//! The form of expected results is described in `corpus/README.md`. Integers with 64 bits, times
//! and offsets are strings, because many JSON readers would round them.

use std::ops::Range;

use serde_json::{Value as Json, json};

use super::Made;

/// A log that is being built.
#[derive(Default)]
pub(crate) struct Log<Own> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) topics: Vec<Topic>,
    /// Offset and content of each expected record.
    records: Vec<(usize, Json)>,
    /// Times of the expected records in nanoseconds.
    pub(crate) times: Vec<i128>,
    /// Code and byte range of each expected loss.
    pub(crate) lost: Vec<(&'static str, Range<usize>)>,
    /// Offset and code of each expected note.
    pub(crate) notes: Vec<(usize, &'static str)>,
    /// Other members of the expected result.
    pub(crate) expected: Json,
    /// Parts that only logs of one format have.
    pub(crate) own: Own,
}

/// A topic in the expected result.
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) fields: Json,
    pub(crate) count: usize,
}

/// Codes of losses that only occur at the end of a file. A log without other losses is truncated,
/// not damaged.
const MISSING: &[&str] = &["cut", "packed_cut", "packed_unchecked", "rows_missing"];

/// Codes of losses whose range may be empty.
const EMPTY: &[&str] = &["rows_missing", "cut", "chunk_checksum", "lost_in_chunk", "messages_missing"];

impl<Own: Default> Log<Own> {
    /// Creates a log that starts with `bytes`.
    pub(crate) fn of(bytes: Vec<u8>, own: Own) -> Self {
        Self { bytes, own, expected: json!({"open": "ok", "utc": null}), ..Self::default() }
    }

    /// Returns the offset of the next bytes.
    pub(crate) fn at(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `steps` for each item.
    pub(crate) fn each<I: IntoIterator>(self, items: I, steps: impl FnMut(Self, I::Item) -> Self) -> Self {
        items.into_iter().fold(self, steps)
    }

    /// Appends bytes without adding anything to the expected result.
    pub(crate) fn lay(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Overwrites bytes at the offset `at`.
    pub(crate) fn set(mut self, at: usize, bytes: impl AsRef<[u8]>) -> Self {
        self.bytes[at..at + bytes.as_ref().len()].copy_from_slice(bytes.as_ref());
        self
    }

    /// Appends bytes, and expects them to be lost as one range.
    pub(crate) fn lose(self, code: &'static str, bytes: impl AsRef<[u8]>) -> Self {
        let start = self.at();
        let log = self.lay(bytes);
        let end = log.at();
        log.lose_range(code, start..end)
    }

    /// Expects a range of bytes to be lost.
    pub(crate) fn lose_range(mut self, code: &'static str, range: Range<usize>) -> Self {
        self.lost.push((code, range));
        self
    }

    /// Expects a note about the next bytes.
    pub(crate) fn note(self, code: &'static str) -> Self {
        let at = self.at();
        self.note_at(at, code)
    }

    /// Expects a note about the bytes at `offset`.
    pub(crate) fn note_at(mut self, offset: usize, code: &'static str) -> Self {
        self.notes.push((offset, code));
        self
    }

    /// Adds members to the expected result.
    pub(crate) fn expect(mut self, members: Json) -> Self {
        if let Json::Object(members) = members {
            members.into_iter().for_each(|(key, value)| self.expected[key] = value);
        }
        self
    }

    /// Sets the expected time range of the data, for a log with times far outside of this range.
    pub(crate) fn data_between(self, start_ns: i64, end_ns: i64) -> Self {
        self.expect(json!({"data_ns": [start_ns.to_string(), end_ns.to_string()]}))
    }

    /// Adds a topic to the expected result. Returns the index of the topic.
    pub(crate) fn add_topic(&mut self, name: &str, type_name: &str, fields: Json) -> usize {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        self.topics.push(Topic { name, type_name, fields, count: 0 });
        self.topics.len() - 1
    }

    /// Expects a record in the next bytes.
    pub(crate) fn record(&mut self, topic: usize, t_ns: Option<i128>, data: &Json) {
        self.record_at(self.at(), topic, t_ns, data);
    }

    /// Expects a record at the offset `at`.
    pub(crate) fn record_at(&mut self, at: usize, topic: usize, t_ns: Option<i128>, data: &Json) {
        let topic = &mut self.topics[topic];
        self.times.extend(t_ns);
        let t_ns = t_ns.map(|time| time.to_string());
        self.records.push((at, json!({"topic": topic.name, "t_ns": t_ns, "seq": topic.count, "data": data})));
        topic.count += 1;
    }

    /// Inserts bytes before the log.
    pub(crate) fn after(mut self, head: Vec<u8>) -> Self {
        let by = head.len();
        self.bytes = [head, self.bytes].concat();
        self.records.iter_mut().for_each(|record| record.0 += by);
        self.notes.iter_mut().for_each(|note| note.0 += by);
        self.lost.iter_mut().for_each(|lost| lost.1 = lost.1.start + by..lost.1.end + by);
        self
    }

    /// Returns the log and its expected result. The times of its start and end are those of its
    /// records, unless another step has set them.
    pub(crate) fn made(mut self) -> Made {
        self.check_lost();
        let state = match &self.lost[..] {
            [] => "complete",
            lost if lost.iter().all(|lost| MISSING.contains(&lost.0)) => "truncated",
            _ => "damaged",
        };
        self.notes.sort_unstable();
        let topic = |topic: &Topic| {
            let count = topic.count.to_string();
            json!({"name": topic.name, "type": topic.type_name, "count": count, "fields": topic.fields})
        };
        let record = |(at, mut record): (usize, Json)| {
            record["offset"] = at.to_string().into();
            record
        };
        let lost = |(code, range): &(_, Range<usize>)| {
            let [start, end] = [range.start, range.end].map(|offset| offset.to_string());
            json!({"code": code, "start": start, "end": end})
        };
        let note = |(at, code): &(usize, _)| json!({"code": code, "offset": at.to_string()});
        let mut expected = self.expected;
        expected["state"] = state.into();
        expected["topics"] = self.topics.iter().map(topic).collect();
        expected["records"] = self.records.into_iter().map(record).collect();
        expected["lost"] = self.lost.iter().map(lost).collect();
        expected["notes"] = self.notes.iter().map(note).collect();
        for (key, time) in [("start_ns", self.times.iter().min()), ("end_ns", self.times.iter().max())] {
            if expected[key].is_null() {
                expected[key] = time.map(ToString::to_string).into();
            }
        }
        Made { bytes: self.bytes, expected }
    }

    /// Checks that the lost ranges are inside the file and in file order.
    fn check_lost(&self) {
        let mut previous_end = 0;
        for (code, Range { start, end }) in &self.lost {
            // If bytes are missing after the end of the file or of a compressed chunk, or were cut
            // out, the range is empty.
            let may_be_empty = EMPTY.contains(code) || code.starts_with("packed_");
            let is_valid = start < end || may_be_empty && start == end;
            assert!(previous_end <= *start && is_valid, "{code} at {start}");
            previous_end = *end;
        }
        assert!(previous_end <= self.bytes.len(), "a lost range ends after the file");
    }
}

/// Increments a number in an expected result, which starts at 1.
pub(crate) fn increment(number: &mut Json) {
    *number = (number.as_u64().unwrap_or(0) + 1).into();
}

/// Appends an item to a list in an expected result.
pub(crate) fn push(list: &mut Json, item: Json) {
    list.as_array_mut().expect("a list").push(item);
}

impl Made {
    /// Changes the content of the log, but not the expected result.
    pub(crate) fn map(self, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        Self { bytes: change(self.bytes), ..self }
    }
}

/// Returns a log that a reader must reject with an error of this kind, whose message contains
/// `contains`.
pub(crate) fn refused(bytes: impl AsRef<[u8]>, [id, version]: [&str; 2], kind: &str, contains: &str) -> Made {
    let format = json!({"id": id, "version": version});
    let expected =
        json!({"format": format, "open": "refused", "error": {"kind": kind, "contains": contains}});
    Made { bytes: bytes.as_ref().to_vec(), expected }
}
