//! Effects of a valid message on the scanner: it updates the definitions, the log time and the
//! diagnostics.

use std::ops::Range;

use crate::clock::RowMicros;
use crate::definitions::RowShape;
use crate::diagnostics as rules;
use crate::scan::{Scanner, Step};
use crate::schema::Key;
use crate::wire::{DefaultParameter, FlagBitsMessage, LoggedString, Message, MultiInfo, TaggedString};

impl Scanner {
    /// Processes a message whose content agrees with its type. Updates the definitions and the
    /// clock, and reports deviations from the specification.
    pub(crate) fn accept(&mut self, at: u64, end: u64, msg_type: u8, message: &Message<'_>) -> Step {
        self.position.at = end;
        self.definitions.apply(at, end, message, &mut self.diagnostics);
        match *message {
            Message::Data(data) => {
                let msg_id = data.msg_id;
                let shape = self.definitions.shapes.get(msg_id);
                if shape.flags & RowShape::NOTE != 0 {
                    self.definitions.note_row(at, msg_id, &mut self.diagnostics);
                }
                let before = self.clock.now;
                let time = self.clock.row(shape, data.row);
                // Nanoseconds in 64 bits end in the year 2262. If the timestamp is later, only the
                // time of the row is unusable. The row itself is valid and is kept.
                if time == RowMicros::OutOfRange {
                    self.definitions.note_range(at, shape.series, &mut self.diagnostics);
                }
                self.position.pass_row(at, end, shape.series);
                return Step::Row { at, end, shape, time, before };
            }
            Message::Dropout(dropout) => self.clock.dropout(dropout.duration),
            // The flag bits of the first log in the file were applied before the scan started.
            Message::FlagBits(FlagBitsMessage { flags, .. }) if self.is_second_log() => {
                self.appended.add(&flags, &mut self.diagnostics);
            }
            Message::LoggedString(LoggedString { log_level: level, .. })
            | Message::TaggedString(TaggedString { log_level: level, .. })
                if !level.is_ascii_digit() =>
            {
                self.diagnostics.push(&rules::LEVEL_NOT_A_DIGIT, at..end, || {
                    format!(
                        "the level of this text is stored as the number {level} instead of an ASCII digit"
                    )
                });
            }
            Message::Parameter(parameter)
            | Message::DefaultParameter(DefaultParameter { info: parameter, .. }) => {
                if let Some(key) = parameter.parse_key() {
                    if !matches!(key.ty, "int32_t" | "float") {
                        self.diagnostics.push(&rules::PARAMETER_TYPE, at..end, || {
                            format!(
                                "parameter {} has the type {} instead of int32_t or float; its value is read",
                                key.name, key.ty
                            )
                        });
                    }
                    self.note_key(at..end, key);
                }
            }
            Message::Info(part) => {
                if let Some(key) = part.parse_key() {
                    self.deviations.info(at..end, key, part);
                    self.note_key(at..end, key);
                }
            }
            Message::MultiInfo(MultiInfo { is_continued, info: part }) => {
                let Some(key) = part.parse_key() else { return Step::Message { at, end, msg_type } };
                // A list consists of many messages with the same key, so each key is checked only
                // once.
                if self.deviations.multi_info(at..end, key, part) {
                    self.note_key(at..end, key);
                    if is_continued != 0 {
                        self.diagnostics.push(&rules::CONTINUED_WITHOUT_FIRST, at..end, || {
                            format!(
                                "multi info message {} continues a list whose start is missing; it is read \
                                 as the start of a new list",
                                key.name
                            )
                        });
                    }
                }
            }
            _ => {}
        }
        Step::Message { at, end, msg_type }
    }

    /// Reports the key if it contains characters that PX4 does not use (rule D35 of
    /// docs/formats/ulog.md).
    fn note_key(&mut self, range: Range<u64>, key: Key<'_>) {
        if !key.is_usual() {
            self.diagnostics.push(&rules::UNUSUAL_KEY, range, || {
                format!(
                    "the key \"{} {}\" contains an extra space or a non-ASCII character; its value is read",
                    key.ty, key.name
                )
            });
        }
    }

    /// Skips an unverifiable message, that is a message whose content cannot be checked.
    ///
    /// Rows without a usable subscription are lost. Unknown messages are not interpreted, but they
    /// are kept for copies of the log. See rules D4, D20 and D21 of docs/formats/ulog.md.
    pub(crate) fn skip(&mut self, at: u64, end: u64, msg_type: u8, message: &Message<'_>) -> Step {
        self.position.at = end;
        self.definitions.apply(at, end, message, &mut self.diagnostics);
        match *message {
            Message::Data(data) => {
                let msg_id = data.msg_id;
                let shape = self.definitions.shapes.get(msg_id);
                let rule = if shape.flags & RowShape::UNKNOWN != 0 {
                    &rules::UNKNOWN_ID
                } else {
                    &rules::UNDECODABLE
                };
                let topics = &self.definitions.topics;
                self.diagnostics.push(rule, at..end, || {
                    if rule == &rules::UNKNOWN_ID {
                        format!(
                            "a data message is lost, because no earlier subscription defines its id {msg_id}"
                        )
                    } else {
                        format!(
                            "a data message of {} is lost, because the format of this topic is missing or \
                             unusable",
                            topics[shape.series as usize].name
                        )
                    }
                });
                Step::Lost { at, end, rule }
            }
            Message::Unknown { .. } => {
                self.diagnostics.push(&rules::UNKNOWN_MESSAGE, at..end, || {
                    format!(
                        "a message of type '{}' is skipped, because this type is not in the specification",
                        msg_type.escape_ascii()
                    )
                });
                Step::Message { at, end, msg_type }
            }
            _ => Step::Message { at, end, msg_type },
        }
    }
}
