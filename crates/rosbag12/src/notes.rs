//! Diagnostics of a scanner that have more to say than a line: of a message, at the end of a
//! section, at the end of the bag.

use std::ops::Range;

use rovelog_core::Diagnostics;
use rovelog_core::layout::Fit;
use rovelog_core::text::{count, escape_bytes};

use crate::definitions::Source;
use crate::diagnostics as rules;
use crate::msg::SumMatch;
use crate::scan::Scanner;
use crate::sections::{IndexState, Section};
use crate::tables::Tables;

impl Scanner {
    /// Notes a payload of `len` bytes at `from..end` that does not fit its definition. If its chunk is
    /// compressed, `from` is that of the chunk's data.
    #[cold]
    pub(super) fn note_misfit(&mut self, connection: u32, misfit: Fit, len: usize, (from, end): (u64, u64)) {
        let name = &self.tables.topics[connection as usize].name;
        let in_file = |range| if from + len as u64 == end { range } else { from..from + 1 };
        match misfit {
            Fit::Exact => {}
            Fit::Surplus(bytes) => {
                let (range, bytes) = (in_file(end.saturating_sub(bytes)..end), count(bytes, "byte"));
                self.diagnostics.push(&rules::PAYLOAD_SURPLUS, range, || {
                    format!("a message of {name} has {bytes} after its last field")
                });
            }
            Fit::Short(at) => self.diagnostics.push(&rules::PAYLOAD_SHORT, in_file(from + at..end), || {
                format!("a message of {name} ends inside the field at byte {at} of it")
            }),
        }
    }

    /// Notes what is remarkable about the header at `range`: fields that are repeated, and the op
    /// that is meant where it is damaged.
    pub(super) fn note_head(&mut self, range: Range<u64>, repeated: u32, meant: Option<u8>) {
        if repeated > 0 {
            self.diagnostics.push(&rules::DUPLICATE_FIELD, range.clone(), || {
                format!("{} repeated in the header; the last one counts", count(repeated, "field"))
            });
        }
        if let Some(op) = meant {
            self.note_op(range, "this record", op);
        }
    }

    /// Notes that the op of `record` is damaged, and which one is meant.
    pub(super) fn note_op(&mut self, range: Range<u64>, record: &str, meant: u8) {
        self.diagnostics.push(&rules::OP_DAMAGED, range, || {
            format!("the op of {record} is damaged; its fields are those of op {meant}")
        });
    }
}

impl Section {
    /// What is remarkable about the index of a section that ends at `end`.
    pub(crate) fn note(&self, end: u64, diagnostics: &mut Diagnostics) {
        let head = self.bag_header_at.map_or(self.offset..self.first_record, |(at, end)| at..end);
        match self.index {
            IndexState::Absent => {
                diagnostics.push(&rules::UNINDEXED, head.clone(), || match self.index_pos {
                    Some(0) => "the bag was not closed: it has no index".to_owned(),
                    Some(pos) => format!("no index at byte {pos}, although the bag header points there"),
                    None => "the bag was written without an index".to_owned(),
                });
            }
            IndexState::Differs => {
                let at = self.first_index_at.unwrap_or(end);
                diagnostics.push(&rules::INDEX_DIFFERS, at..end, || {
                    let wrong = self.index_topics.iter().filter(|topic| !topic.exact);
                    let wrong: Vec<_> = wrong
                        .take(5)
                        .map(|t| {
                            let (entries, messages) =
                                (count(t.entries, "entry"), count(t.in_scan, "message"));
                            format!("{} ({entries}, {messages})", escape_bytes(&t.topic))
                        })
                        .collect();
                    let wrong = wrong.iter().chain(&self.why).take(5).map(String::as_str).collect::<Vec<_>>();
                    format!("the index does not match the messages: {}", wrong.join(", "))
                });
            }
            IndexState::Exact | IndexState::Empty | IndexState::Encrypted | IndexState::Believed => {}
        }
        // The records that it points at are ciphertext.
        if self.index == IndexState::Encrypted {
            return;
        }
        // Without messages the recorder points at the end of the file.
        let right = match self.index {
            IndexState::Empty => Some(end),
            _ => self.first_index_at,
        };
        if let (Some(pos), Some(right)) = (self.index_pos, right.map(|at| at - self.offset))
            && pos != right
        {
            diagnostics.push(&rules::INDEX_POS_WRONG, head, || {
                format!("the bag header says {pos}, but the index starts at {right}")
            });
        }
    }
}

impl Tables {
    /// What is remarkable about a connection.
    pub(crate) fn note(&self, number: usize, diagnostics: &mut Diagnostics) {
        let (topic, connection) = (&self.topics[number], &self.connections[number]);
        let stats = &connection.stats;
        if stats.count == 0 {
            return;
        }
        let name = &topic.name;
        let at = stats.first_at..stats.first_at + 1;
        if let Some((at, why)) = &connection.unusable {
            diagnostics.push(&rules::DEFINITION_UNUSABLE, *at..at + 1, || {
                format!("the definition of {name} cannot be used: {why}")
            });
        }
        match &connection.definition {
            Err(why) => diagnostics.push(&rules::NO_DEFINITION, at.clone(), || {
                let ty = escape_bytes(&connection.ty);
                match why {
                    Some(why) => format!("{name}: no usable definition of {ty}: {why}"),
                    None => format!("{name}: no definition of {ty}"),
                }
            }),
            Ok(definition) => {
                if definition.source != Source::Topic {
                    diagnostics.push(&rules::DEFINITION_ELSEWHERE, at.clone(), || {
                        format!(
                            "{name} is decoded with a definition from another source ({})",
                            definition.source.name()
                        )
                    });
                }
                if definition.sum == SumMatch::No {
                    diagnostics.push(&rules::DEFINITION_DIFFERS, at.clone(), || {
                        let said = escape_bytes(&connection.md5);
                        format!(
                            "{name}: the md5 sum of the definition is {}, but the bag states {said}",
                            definition.types.sum_v2().0
                        )
                    });
                }
            }
        }
        if connection.is_further {
            diagnostics.push(&rules::SECOND_TYPE, at.clone(), || {
                format!("{name}: messages of another type on {}", escape_bytes(&connection.topic))
            });
        }
        if stats.min < stats.first {
            diagnostics.push(&rules::FIRST_STAMP_LATE, at, || {
                format!("{name}: the first message is not the earliest; librosbag refuses such a bag")
            });
        }
        if let Some(at) = stats.zero_at {
            diagnostics.push(&rules::STAMP_ZERO, at..at + 1, || format!("{name}: a message of time 0"));
        }
        if let Some(at) = stats.odd_nsec_at {
            diagnostics.push(&rules::STAMP_OUT_OF_RANGE, at..at + 1, || {
                format!("{name}: a time with a second or more of nanoseconds")
            });
        }
    }
}
