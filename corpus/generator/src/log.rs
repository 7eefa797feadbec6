//! A test file during construction, and its expected result; for all formats.
//!
//! Each step writes bytes and notes at once what its author knows about them. Steps are called one
//! after the other, so that a recipe reads like the file. The expected results are described in
//! `corpus/README.md`; 64-bit integers, times and offsets are texts, because many JSON readers
//! would round them.

use std::ops::Range;

use serde_json::{Value as Json, json};

use super::Made;

/// A log; `Own` holds the format-specific parts.
pub(crate) struct Log<Own> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) topics: Vec<Topic>,
    records: Vec<(usize, Json)>,
    pub(crate) texts: Vec<Json>,
    pub(crate) lost: Vec<(&'static str, Range<usize>)>,
    notes: Vec<(usize, &'static str)>,
    /// Start and end of the data, if some times are far outside of it.
    data_ns: Option<[i64; 2]>,
    pub(crate) own: Own,
}

/// A topic of the expected result.
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) fields: Json,
    pub(crate) count: usize,
}

/// Codes of losses at the end of a file.
const MISSING: &[&str] = &["cut", "packed_cut", "packed_unchecked", "rows_missing"];

impl<Own> Log<Own> {
    /// Returns a log of these bytes.
    pub(crate) fn of(bytes: Vec<u8>, own: Own) -> Self {
        let (topics, records, texts) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, topics, records, texts, lost: Vec::new(), notes: Vec::new(), data_ns: None, own }
    }

    /// Returns the offset of the next bytes.
    pub(crate) fn at(&self) -> usize {
        self.bytes.len()
    }

    /// Applies steps for each item.
    pub(crate) fn each<T>(
        self,
        items: impl IntoIterator<Item = T>,
        steps: impl FnMut(Self, T) -> Self,
    ) -> Self {
        items.into_iter().fold(self, steps)
    }

    /// Adds bytes that the expected result does not mention.
    pub(crate) fn lay(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.bytes.extend_from_slice(bytes.as_ref());
        self
    }

    /// Overwrites existing bytes.
    pub(crate) fn set(mut self, at: usize, bytes: impl AsRef<[u8]>) -> Self {
        self.bytes[at..at + bytes.as_ref().len()].copy_from_slice(bytes.as_ref());
        self
    }

    /// Adds bytes that are lost, as one range.
    pub(crate) fn lose(self, code: &'static str, bytes: impl AsRef<[u8]>) -> Self {
        let start = self.at();
        let log = self.lay(bytes);
        let end = log.at();
        log.lose_range(code, start..end)
    }

    /// Marks a range as lost.
    pub(crate) fn lose_range(mut self, code: &'static str, range: Range<usize>) -> Self {
        self.lost.push((code, range));
        self
    }

    /// Adds a note about the next bytes.
    pub(crate) fn note(self, code: &'static str) -> Self {
        let at = self.at();
        self.note_at(at, code)
    }

    /// Adds a note about another offset.
    pub(crate) fn note_at(mut self, offset: usize, code: &'static str) -> Self {
        self.notes.push((offset, code));
        self
    }

    /// Sets the start and the end of the data, in a log with times far outside of it.
    pub(crate) fn data_between(mut self, start_ns: i64, end_ns: i64) -> Self {
        self.data_ns = Some([start_ns, end_ns]);
        self
    }

    /// Adds a topic. Returns its number.
    pub(crate) fn add_topic(&mut self, name: &str, type_name: &str, fields: Json) -> usize {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        self.topics.push(Topic { name, type_name, fields, count: 0 });
        self.topics.len() - 1
    }

    /// Adds a record, whose bytes follow.
    pub(crate) fn record(&mut self, topic: usize, t_ns: Option<i128>, data: &Json) {
        self.record_at(self.at(), topic, t_ns, data);
    }

    /// Adds a record at another offset.
    pub(crate) fn record_at(&mut self, at: usize, topic: usize, t_ns: Option<i128>, data: &Json) {
        let topic = &mut self.topics[topic];
        let t_ns = t_ns.map(|time| time.to_string());
        self.records.push((at, json!({"topic": topic.name, "t_ns": t_ns, "seq": topic.count, "data": data})));
        topic.count += 1;
    }

    /// Puts bytes before the log.
    pub(crate) fn after(mut self, head: Vec<u8>) -> Self {
        let by = head.len();
        self.bytes = [head, self.bytes].concat();
        self.records.iter_mut().for_each(|record| record.0 += by);
        self.notes.iter_mut().for_each(|note| note.0 += by);
        self.lost.iter_mut().for_each(|lost| lost.1 = lost.1.start + by..lost.1.end + by);
        self
    }

    /// Returns the file and its expected result; `head` adds what the steps do not say.
    pub(crate) fn made(mut self, head: Json) -> Made {
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
        let lost = |(code, range): &(_, Range<usize>)| json!({"code": code, "start": range.start.to_string(), "end": range.end.to_string()});
        let note = |(at, code): &(usize, _)| json!({"code": code, "offset": at.to_string()});
        let mut expected = json!({
            "open": "ok",
            "state": state,
            "utc": null,
            "topics": self.topics.iter().map(topic).collect::<Json>(),
            "records": self.records.into_iter().map(record).collect::<Json>(),
            "lost": self.lost.iter().map(lost).collect::<Json>(),
            "notes": self.notes.iter().map(note).collect::<Json>(),
        });
        if let Some(ends) = self.data_ns {
            expected["data_ns"] = json!(ends.map(|end| end.to_string()));
        }
        if let Json::Object(head) = head {
            head.into_iter().for_each(|(key, value)| expected[key] = value);
        }
        Made { bytes: self.bytes, expected }
    }
}

impl Made {
    /// Keeps the expected result for a changed file.
    pub(crate) fn map(self, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Self {
        Self { bytes: change(self.bytes), ..self }
    }

    /// Returns a file that must be refused: the kind of the error, and words of its message.
    pub(crate) fn refused(bytes: Vec<u8>, [id, version]: [&str; 2], kind: &str, contains: &str) -> Self {
        let expected = json!({
            "format": {"id": id, "version": version},
            "open": "refused",
            "error": {"kind": kind, "contains": contains},
        });
        Self { bytes, expected }
    }
}
