//! Creates diagnostics with long texts about messages, headers, indices and topics.

use std::ops::Range;

use rovelog_core::internal::layout::Fit;
use rovelog_core::internal::text::{count, escape_bytes};
use rovelog_core::{Diagnostics, Rule};

use crate::definitions::{Source, Unusable};
use crate::diagnostics as rules;
use crate::msg::SumMatch;
use crate::position::LastRecord;
use crate::scan::Scanner;
use crate::sections::{IndexState, IndexTopic, MAX_SECTIONS, Section};
use crate::tables::{Connection, Tables};

impl Scanner {
    /// Reports a payload of `len` bytes that does not match its definition. The payload is at
    /// `range` in the file. For a payload in a compressed chunk, start and end of `range` are the
    /// offset of the chunk data.
    #[cold]
    pub(super) fn report_misfit(&mut self, connection: u32, misfit: Fit, len: usize, range: Range<u64>) {
        let Range { start: from, end } = range;
        let name = &self.tables.topics[connection as usize].name;
        let in_file = |range| if from + len as u64 == end { range } else { from..from + 1 };
        match misfit {
            Fit::Exact => {}
            Fit::Surplus(bytes) => {
                let (range, bytes) = (in_file(end.saturating_sub(bytes)..end), count(bytes, "byte"));
                self.diagnostics.push(&rules::PAYLOAD_SURPLUS, range, || {
                    format!("a message of {name} has {bytes} after its last field, which decoding ignores")
                });
            }
            Fit::Short(at) => self.diagnostics.push(&rules::PAYLOAD_SHORT, in_file(from + at..end), || {
                format!(
                    "a message of {name} cannot be decoded, because it ends inside the field at byte {at} of \
                     its payload"
                )
            }),
        }
    }

    /// Reports duplicate fields and a damaged op (record type) in the header at `range`.
    pub(super) fn report_head(&mut self, range: Range<u64>, duplicates: u32, corrected_op: Option<u8>) {
        if duplicates > 0 {
            self.diagnostics.push(&rules::DUPLICATE_FIELD, range.clone(), || {
                let fields = count(duplicates, "field");
                format!("the record header repeats {fields}; the last value of each repeated field is used")
            });
        }
        if let Some(op) = corrected_op {
            self.report_op(range, "this record", op);
        }
    }

    /// Reports that the op (record type) of `record` is damaged. `corrected_op` is the right op
    /// according to the header fields.
    pub(super) fn report_op(&mut self, range: Range<u64>, record: &str, corrected_op: u8) {
        self.diagnostics.push(&rules::OP_DAMAGED, range, || {
            format!(
                "the type (op) of {record} is damaged; by its other fields, it is read as op {corrected_op}"
            )
        });
    }

    /// Reports a record whose op (record type) is unknown.
    pub(super) fn report_unknown_op(&mut self, range: Range<u64>, op: u8) {
        self.diagnostics.push(&rules::UNKNOWN_OP, range, || {
            format!("a record with the unknown type (op) {op} is skipped")
        });
    }

    /// Sets the final statistics of all topics, and reports problems of the topics.
    pub(crate) fn finish_topics(&mut self) {
        let (is_by_index, unread) = (self.content.is_by_index, self.content.unread_span());
        for number in 0..self.tables.connections.len() {
            let id = u32::try_from(number).expect("connections are limited");
            self.tables.resolve(id);
            self.tables.publish(id);
            let topic = &mut self.tables.topics[number];
            if is_by_index {
                // The index does not tell whether messages are in time order, and it does not
                // contain payload sizes.
                (topic.in_order, topic.bytes_known) = (topic.count < 2, topic.count == 0);
            }
            if unread.is_some() {
                // A chunk info has the time span of the whole chunk, not of each topic.
                (topic.first, topic.last) = (None, None);
            }
            self.tables.report(number, &mut self.diagnostics);
        }
        if !is_by_index {
            self.finish_times();
        }
    }

    /// Adds a diagnostic of the kind `rule` for bytes that cannot be read.
    pub(super) fn report_lost_bytes(&mut self, range: Range<u64>, rule: &'static Rule) {
        let (last, tables) = (self.position.last, &self.tables);
        self.diagnostics.push(rule, range.clone(), || loss_message(rule, range, last, tables));
    }
}

/// Returns the text of the diagnostic for lost bytes in `range`. `last` is the record before these
/// bytes.
fn loss_message(rule: &Rule, range: Range<u64>, last: LastRecord, tables: &Tables) -> String {
    let bytes = count(range.end - range.start, "byte");
    let at = range.start;
    if rule == &rules::CUT {
        format!("the file ends inside the record at byte {at}, after {bytes} of it")
    } else if rule == &rules::BAD_RECORD {
        format!("a record of {bytes} is lost, because its header is invalid")
    } else if rule == &rules::TOO_MANY_TOPICS {
        "a record is skipped, because the bag has more than 65536 topics".to_owned()
    } else if rule == &rules::TOO_MANY_SECTIONS {
        format!(
            "the file has more than {MAX_SECTIONS} bags, so the index of the bag at byte {at} is not used"
        )
    } else {
        let before = match last {
            LastRecord::Message(message) if message.end() == at => {
                let name = &tables.topics[message.connection as usize].name;
                format!("; the message of {name} directly before, at byte {}, may be corrupt", message.at)
            }
            _ => String::new(),
        };
        format!("no valid record was found in {bytes}, so this data is lost{before}")
    }
}

impl Section {
    /// Reports the problems of this section's index. `end` is the offset of the end of the section.
    /// `faults` describes the chunks whose records in the index are missing or wrong.
    pub(crate) fn report(&self, end: u64, faults: &[String], diagnostics: &mut Diagnostics) {
        let head = self.bag_header_at.clone().unwrap_or(self.offset..self.first_record);
        match self.index {
            IndexState::Absent => {
                diagnostics.push(&rules::UNINDEXED, head.clone(), || self.absence_message());
            }
            IndexState::Differs => {
                let at = self.records.first_at.unwrap_or(end);
                diagnostics.push(&rules::INDEX_DIFFERS, at..end, || self.difference_message(faults));
            }
            IndexState::Exact | IndexState::Empty | IndexState::Encrypted | IndexState::Believed => {}
        }
        let index_at = match self.index {
            // If the bag is encrypted, the index position refers to encrypted records, so it cannot
            // be checked.
            IndexState::Encrypted => None,
            // For a bag without messages, recorders store the end of the file as index position.
            IndexState::Empty => Some(end),
            _ => self.records.first_at,
        };
        if let (Some(stated), Some(actual)) = (self.index_pos, index_at.map(|at| at - self.offset))
            && stated != actual
        {
            diagnostics.push(&rules::INDEX_POS_WRONG, head, || {
                format!(
                    "the index starts at byte {actual}, but the bag header states byte {stated}, which is \
                     ignored"
                )
            });
        }
    }

    /// Counts the messages that the index lists, but that are not in the section, which ends at
    /// offset `end`. They are reported as a loss if no other loss was reported, because another loss
    /// usually explains why they are missing.
    pub(crate) fn report_missing(&self, missing: u64, end: u64, diagnostics: &mut Diagnostics) {
        diagnostics.count_missing(missing);
        if missing > 0 && diagnostics.ledger().losses == 0 {
            let at = self.records.first_at.unwrap_or(end);
            diagnostics.push(&rules::MESSAGES_MISSING, at..at, || {
                format!("{} in the index cannot be found in the bag", count(missing, "message"))
            });
        }
    }

    fn absence_message(&self) -> String {
        match self.index_pos {
            Some(0) => "the bag has no index, because it was not closed; messages are found by reading the \
                        whole bag"
                .to_owned(),
            Some(pos) => format!(
                "the bag has no index at byte {pos}, where its header states it; messages are found by \
                 reading the whole bag"
            ),
            None => {
                "the bag was written without an index; messages are found by reading the whole bag".to_owned()
            }
        }
    }

    fn difference_message(&self, faults: &[String]) -> String {
        let describe = |topic: &IndexTopic| {
            let (entries, messages) = (count(topic.entries, "entry"), count(topic.in_scan, "message"));
            format!("{} ({entries}, {messages})", escape_bytes(&topic.topic))
        };
        let topics = self.index_topics.iter().filter(|topic| !topic.exact).map(describe);
        let wrong: Vec<String> = topics.chain(faults.iter().cloned()).take(5).collect();
        format!("the index is ignored, because it does not match the messages: {}", wrong.join(", "))
    }
}

impl Tables {
    /// Reports problems of the connection with index `number`.
    pub(crate) fn report(&self, number: usize, diagnostics: &mut Diagnostics) {
        let (topic, connection) = (&self.topics[number], &self.connections[number]);
        let stats = &connection.stats;
        if stats.count == 0 {
            return;
        }
        let name = &topic.name;
        let at = stats.times.first_at..stats.times.first_at + 1;
        connection.report_definition(name, &at, diagnostics);
        if connection.shares_topic {
            diagnostics.push(&rules::SECOND_TYPE, at.clone(), || {
                format!(
                    "topic {} has messages of several types, so those of another type are read as topic \
                     {name}",
                    escape_bytes(&connection.topic)
                )
            });
        }
        if connection.span().is_some_and(|(first, _)| first < stats.times.first) {
            diagnostics.push(&rules::FIRST_STAMP_LATE, at, || {
                format!(
                    "the first message of {name} is not its earliest; all messages are read, but librosbag \
                     refuses such a bag"
                )
            });
        }
        if let Some(at) = stats.times.zero_at {
            diagnostics.push(&rules::STAMP_ZERO, at..at + 1, || {
                format!(
                    "topic {name} has a message with time 0, which is ignored for the start time of the log"
                )
            });
        }
        if let Some(at) = stats.times.odd_nsec_at {
            diagnostics.push(&rules::STAMP_OUT_OF_RANGE, at..at + 1, || {
                format!(
                    "topic {name} has a time with 10^9 nanoseconds or more; the whole seconds in them are \
                     added to its seconds"
                )
            });
        }
    }
}

impl Connection {
    /// Reports problems of the message definition. `name` is the name of the topic, and `at` is the
    /// place of its first message.
    fn report_definition(&self, name: &str, at: &Range<u64>, diagnostics: &mut Diagnostics) {
        if let Some(Unusable { at, why }) = &self.unusable {
            diagnostics.push(&rules::DEFINITION_UNUSABLE, *at..at + 1, || {
                format!("the definition of {name} is not used for decoding: {why}")
            });
        }
        let definition = match &self.definition {
            Ok(definition) => definition,
            Err(why) => {
                return diagnostics.push(&rules::NO_DEFINITION, at.clone(), || {
                    let ty = escape_bytes(&self.ty);
                    let reason = match why {
                        Some(why) => format!("can be used: {why}"),
                        None => "is known".to_owned(),
                    };
                    format!(
                        "messages of {name} stay raw bytes, because no definition of their type {ty} {reason}"
                    )
                });
            }
        };
        if definition.source != Source::Topic {
            diagnostics.push(&rules::DEFINITION_ELSEWHERE, at.clone(), || {
                format!(
                    "topic {name} has no definition of its own, so it is decoded with one from another \
                     source ({})",
                    definition.source.name()
                )
            });
        }
        if definition.sum == SumMatch::No {
            diagnostics.push(&rules::DEFINITION_DIFFERS, at.clone(), || {
                format!(
                    "values of {name} may be wrong, because the md5 sum of its definition is {}, but the bag \
                     states {}",
                    definition.types.sum_v2().0,
                    escape_bytes(&self.md5)
                )
            });
        }
    }
}
