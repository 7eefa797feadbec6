//! Writing of logs, with a typed API or by copying messages of another log.
//!
//! ```
//! use rovelog_core::{LogReader, ReadOptions, Value};
//! use ulog_format::{FormatBuilder, UlogReader, UlogWriter};
//!
//! // Definitions first. The log starts 1 second after boot; times are microseconds.
//! let mut log = UlogWriter::new(Vec::new(), 1_000_000)?;
//! log.info("sys_name", "PX4")?;
//! log.info("ver_sw_release", 0x010e_00ff_u32)?;
//! log.parameter("MAV_TYPE", 2)?;
//! log.parameter("BAT1_V_EMPTY", 3.6)?;
//! log.define(&FormatBuilder::new("esc").field::<i32>("rpm").field::<f32>("current"))?;
//! log.define(
//!     &FormatBuilder::new("motors")
//!         .field::<u64>("timestamp")
//!         .nested_array("esc", "esc", 2)
//!         .array::<f32>("thrust", 3)
//!         .text("mode", 8)
//!         .padding(4),
//! )?;
//!
//! // A subscription starts the data section.
//! let motors = log.subscribe("motors", 0)?;
//! let esc = |rpm| Value::record([("rpm", Value::Int(rpm, 32)), ("current", Value::F32(1.5))]);
//! log.write_row(
//!     motors,
//!     &Value::record([
//!         ("timestamp", Value::UInt(1_020_000, 64)),
//!         ("esc", Value::List(vec![esc(5200), esc(5180)])),
//!         ("thrust", Value::List(vec![Value::F32(0.0), Value::F32(0.0), Value::F32(-0.7)])),
//!         ("mode", Value::Text("hold".into())),
//!     ]),
//! )?;
//! log.text(6, 1_030_000, "takeoff")?;
//! log.dropout(15)?;
//!
//! // Many rows: look the fields up once and set them in place.
//! let mut row = log.row_buffer(motors)?;
//! let (time, thrust) = (row.place("timestamp")?, row.place("thrust[2]")?);
//! for i in 0..100_u16 {
//!     row.set(time, 1_040_000 + u64::from(i) * 4000)?;
//!     row.set(thrust, -f32::from(i) / 100.0)?;
//!     log.write(&row)?;
//! }
//! let bytes = log.finish()?;
//!
//! let log = UlogReader::new(bytes.into(), &ReadOptions::default())?;
//! assert_eq!((log.info().records, log.diagnostics().total()), (101, 0));
//! let first = log.records_in_file_order().next().unwrap();
//! assert_eq!(log.row(&first)?.get("esc[1].rpm"), Some(Value::Int(5180, 32)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod build;
mod encode;
mod tables;

use std::io::Write;
use std::sync::Arc;

use rovelog_core::Value;
use rovelog_core::internal::output::FailFast;
use rovelog_core::internal::wire::U64Le;
use zerocopy::{FromBytes, IntoBytes};

pub use append::{append, append_to_file};
pub use build::{FormatBuilder, RowBuffer, TopicHandle};
pub use encode::{InfoValue, ParameterValue};

use crate::error::UlogError;
use crate::wire::{
    self, DefaultParameter, Dropout, FLAG_BITS_AT, FileHeader, FlagBits, FlagBitsMessage, Format,
    LoggedString, MAGIC, MSG_ID_LEN, Message, MessageHeader, MultiInfo, SYNC_MAGIC, Subscription, Sync,
    TaggedString, Unsubscription, kind,
};
pub(crate) use encode::encoded;
use encode::{MAX_PAYLOAD, checked_level, header, timestamp};
use tables::Tables;

/// The buffer is written to the output when it contains this number of bytes.
const CHUNK: usize = 64 << 10;

/// Log time between two synchronization messages in microseconds. PX4 uses the same period.
const SYNC_EVERY: u64 = 500_000;

/// Kind of default of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DefaultOf {
    System,
    CurrentSetup,
    Both,
}

/// Section of the log to which the writer currently writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The definitions section of a new log. It remains in the buffer, because a parameter default
    /// changes the flag bits at the start of the log.
    Held,
    /// The definitions section of a copied log, whose flag bits do not change.
    Definitions,
    /// The data section.
    Data,
}

/// Writes a ULog.
///
/// The typed functions return an error if the result would violate the specification.
/// [`write_message`](Self::write_message) copies messages of another log without changes.
///
/// Writes are buffered, so the output does not need its own buffer. The definitions of a new log
/// remain in memory until the data section starts.
///
/// [`finish`](Self::finish) must be called to complete the log. If a writer is dropped before this
/// call, the output ends in the middle of the log.
#[derive(Debug)]
pub struct UlogWriter<W> {
    out: FailFast<W>,
    /// Bytes that have not been written to `out`.
    buffer: Vec<u8>,
    /// Number of bytes written to `out`.
    written: u64,
    stage: Stage,
    tables: Tables,
    /// Log time of the last synchronization message in microseconds. `None` if the writer does not
    /// add such messages.
    sync: Option<u64>,
    /// Log time in microseconds, which is the largest timestamp written so far.
    now: u64,
    /// Buffer for the row that is being encoded. It is kept in the struct so that its memory is
    /// reused.
    row: Vec<u8>,
}

impl<W: Write> UlogWriter<W> {
    /// Creates a writer for a new log. `start` is the start time of the log in microseconds since
    /// boot.
    ///
    /// # Errors
    /// Currently, this function never returns an error, because the header is only buffered.
    pub fn new(out: W, start: u64) -> Result<Self, UlogError> {
        let mut log = Self::at_stage(out, Stage::Held);
        let header = FileHeader { magic: MAGIC, version: 1, timestamp: U64Le::new(start) };
        log.buffer.extend_from_slice(header.as_bytes());
        let flags =
            FlagBits { compat_flags: [0; 8], incompat_flags: [0; 8], appended_offsets: [U64Le::new(0); 3] };
        log.put(&Message::FlagBits(FlagBitsMessage { flags, more: &[] }))?;
        log.now = start;
        Ok(log)
    }

    /// Creates a writer for a copy of another log, which starts with the given header. The copy has
    /// flag bits only if the caller writes them as its first message.
    ///
    /// # Errors
    /// Returns an error if the header does not start with the ULog magic.
    pub fn copying(out: W, header: &FileHeader) -> Result<Self, UlogError> {
        if header.magic != MAGIC {
            return Err(UlogError::NotUlog);
        }
        let mut log = Self::at_stage(out, Stage::Definitions);
        log.buffer.extend_from_slice(header.as_bytes());
        log.now = header.timestamp.get();
        Ok(log)
    }

    fn at_stage(out: W, stage: Stage) -> Self {
        Self {
            out: FailFast::new(out),
            buffer: Vec::new(),
            written: 0,
            stage,
            tables: Tables::default(),
            sync: None,
            now: 0,
            row: Vec::new(),
        }
    }

    /// Enables synchronization messages, which are written after each half second of log time. A
    /// reader can continue at these messages after damage.
    #[must_use]
    pub fn with_sync(mut self) -> Self {
        self.sync = Some(self.now);
        self
    }

    /// Returns the current size of the log in bytes.
    #[doc(hidden)]
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    // --- definitions
    // -------------------------------------------------------------------------------------

    /// Defines a format. The types of its fields must be defined before the data section starts.
    ///
    /// # Errors
    /// Returns an error if a name is invalid or already used, if the format has no fields, or if
    /// the data section has started.
    pub fn define(&mut self, format: &FormatBuilder) -> Result<(), UlogError> {
        self.still_defining(|| format!("format {}", format.name()))?;
        let text = format.definition()?;
        if self.tables.formats.text(format.name()).is_some() {
            return Err(build::bad_format(format.name(), "a format with this name is already defined"));
        }
        self.put_new(&Message::Format(Format { format: text.as_bytes() }))
    }

    /// Writes an information message. It should be written before the data section starts.
    ///
    /// # Errors
    /// Returns an error if the name is already used or not printable, or if ULog has no type for
    /// the value. Also returns an error if the value is too long for a message;
    /// [`multi_info`](Self::multi_info) has no such limit.
    pub fn info(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        if self.tables.infos.contains(name) {
            return Err(encode::bad_key(name, "an info message with this name already exists"));
        }
        let value = value.encode(name)?;
        let key = encode::key(&value.type_name(), name)?;
        encode::fits(&format!("the value of {name}"), value.bytes.len(), MAX_PAYLOAD - 1 - key.len())?;
        self.put_new(&Message::Info(encode::part(&key, &value.bytes)))
    }

    /// Writes a multi information message, which starts a new list. If the value is too long for
    /// one message, it is divided into several messages. Texts are divided between characters.
    ///
    /// # Errors
    /// Returns an error if the name is not printable, or if ULog has no type for the value.
    pub fn multi_info(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        self.multi_parts(name, &value.encode(name)?, false)
    }

    /// Adds a value to the list that the last call of [`multi_info`](Self::multi_info) with this
    /// name has started.
    ///
    /// # Errors
    /// Returns an error if no list with this name was started, and for the same reasons as
    /// `multi_info`.
    pub fn multi_info_continued(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        if !self.tables.multi_infos.contains(name) {
            return Err(encode::bad_key(name, "the log has no list with this name that could be continued"));
        }
        self.multi_parts(name, &value.encode(name)?, true)
    }

    fn multi_parts(
        &mut self,
        name: &str,
        value: &encode::Encoded<'_>,
        mut continued: bool,
    ) -> Result<(), UlogError> {
        for part in value.split(MAX_PAYLOAD - 2 - encode::MAX_KEY) {
            let key = encode::key(&part.type_name(), name)?;
            let info = encode::part(&key, &part.bytes);
            self.put_new(&Message::MultiInfo(MultiInfo { is_continued: continued.into(), info }))?;
            continued = true;
        }
        Ok(())
    }

    /// Writes the value of a parameter. In the definitions section, the value is the initial value
    /// of the parameter. In the data section, the value is a change.
    ///
    /// # Errors
    /// Returns an error if the name is not printable, or if an earlier value of the parameter had
    /// another type.
    pub fn parameter(&mut self, name: &str, value: impl Into<ParameterValue>) -> Result<(), UlogError> {
        let value = value.into();
        if self.tables.parameters.get(name).is_some_and(|ty| **ty != *value.type_name()) {
            return Err(encode::bad_key(name, "the parameter already has another type"));
        }
        let key = encode::key(value.type_name(), name)?;
        self.put_new(&Message::Parameter(encode::part(&key, &value.to_bytes())))
    }

    /// Writes the default of a parameter. The default should be written only if it differs from the
    /// initial value.
    ///
    /// # Errors
    /// Returns an error if no value of the parameter with the same type was written before, or if
    /// the data section has started.
    pub fn default_parameter(
        &mut self,
        name: &str,
        value: impl Into<ParameterValue>,
        of: DefaultOf,
    ) -> Result<(), UlogError> {
        self.still_defining(|| format!("the default of {name}"))?;
        let value = value.into();
        if self.tables.parameters.get(name).is_none_or(|ty| **ty != *value.type_name()) {
            let why = "a parameter with the same name and type must be written before its default";
            return Err(encode::bad_key(name, why));
        }
        let default_types = match of {
            DefaultOf::System => 1,
            DefaultOf::CurrentSetup => 2,
            DefaultOf::Both => 3,
        };
        let key = encode::key(value.type_name(), name)?;
        let bytes = value.to_bytes();
        let info = encode::part(&key, &bytes);
        self.put_new(&Message::DefaultParameter(DefaultParameter { default_types, info }))
    }

    fn still_defining(&self, what: impl FnOnce() -> String) -> Result<(), UlogError> {
        match self.stage {
            Stage::Data => Err(UlogError::DefinitionsClosed { what: what() }),
            _ => Ok(()),
        }
    }

    // --- data
    // --------------------------------------------------------------------------------------------

    /// Subscribes an instance of a topic. This starts the data section.
    ///
    /// # Errors
    /// Returns an error if the instance is already subscribed, or if the format is undefined,
    /// circular, too large, or does not start with `uint64_t timestamp`. The call that starts the
    /// data section also returns an error if any format is invalid.
    pub fn subscribe(&mut self, format: &str, multi_id: u8) -> Result<TopicHandle, UlogError> {
        let msg_id = self.tables.may_subscribe(format, multi_id)?;
        let message_name = format.as_bytes();
        self.put_new(&Message::Subscription(Subscription { multi_id, msg_id, message_name }))?;
        Ok(TopicHandle { msg_id })
    }

    /// Returns the topic with the given format and instance, or `None` if the topic is not
    /// subscribed. Subscriptions that were copied from another log are found too.
    pub fn topic(&self, format: &str, multi_id: u8) -> Option<TopicHandle> {
        self.tables.names.get(&(format.to_owned(), multi_id)).map(|msg_id| TopicHandle { msg_id: *msg_id })
    }

    /// Returns the layout of a topic's rows.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed or cannot be decoded.
    #[doc(hidden)]
    pub fn layout(&self, topic: TopicHandle) -> Result<&rovelog_core::internal::layout::Layout, UlogError> {
        Ok(&self.tables.layout(topic.msg_id)?.record)
    }

    /// Ends the subscription of a topic. The writer then rejects rows of this topic.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed.
    pub fn unsubscribe(&mut self, topic: TopicHandle) -> Result<(), UlogError> {
        self.layout(topic)?;
        self.put_new(&Message::Unsubscription(Unsubscription { msg_id: topic.msg_id }))
    }

    /// Writes a row. `row` must be a [`Value::Struct`] with the values of all fields, as returned
    /// by the reader.
    ///
    /// Integers may have any width, if the value fits into the field. Padding is filled with zeros.
    /// At the end of the row, it is not written.
    ///
    /// # Errors
    /// Returns an error if a field is missing, unknown, or has another type.
    pub fn write_row(&mut self, topic: TopicHandle, row: &Value) -> Result<(), UlogError> {
        // `layout` borrows `self` while the row is encoded, so the buffer is moved out of `self`.
        let mut bytes = std::mem::take(&mut self.row);
        let layout = self.tables.layout(topic.msg_id)?;
        bytes.clear();
        layout
            .record
            .encode(row, &mut bytes)
            .map_err(|misfit| encode::bad_value(&misfit.path, misfit.why))?;
        let time = timestamp(layout, &bytes);
        self.put_row(topic.msg_id, &bytes, time)?;
        self.row = bytes;
        Ok(())
    }

    /// Writes an encoded row. If the row ends with the padding of its format, the padding is
    /// removed.
    ///
    /// # Errors
    /// Returns an error if the size of the row does not match its format.
    pub fn write_row_bytes(&mut self, topic: TopicHandle, row: &[u8]) -> Result<(), UlogError> {
        let layout = self.tables.layout(topic.msg_id)?;
        if row.len() != layout.trimmed_len && row.len() != layout.full_len {
            let (trimmed, full) = (layout.trimmed_len, layout.full_len);
            let topic = layout.record.schema().name.clone();
            return Err(UlogError::RowSize { topic, got: row.len(), trimmed, full });
        }
        let row = &row[..layout.trimmed_len];
        let time = timestamp(layout, row);
        self.put_row(topic.msg_id, row, time)
    }

    /// Creates a buffer for rows of a topic. The buffer can be written any number of times.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed.
    pub fn row_buffer(&self, topic: TopicHandle) -> Result<RowBuffer, UlogError> {
        Ok(RowBuffer::new(topic, Arc::clone(self.tables.layout(topic.msg_id)?)))
    }

    /// Writes a row with the current contents of a row buffer.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed in this log.
    pub fn write(&mut self, row: &RowBuffer) -> Result<(), UlogError> {
        self.write_row_bytes(row.topic(), row.bytes())
    }

    /// Writes a console message. `level` is a number from 0 (emergency) to 7 (debug), and `time` is
    /// in microseconds.
    ///
    /// # Errors
    /// Returns an error if the level is greater than 7, or if the text is too long for a message.
    pub fn text(&mut self, level: u8, time: u64, text: &str) -> Result<(), UlogError> {
        let log_level = b'0' + checked_level(level)?;
        let message = text.as_bytes();
        self.put_new(&Message::LoggedString(LoggedString { log_level, timestamp: time, message }))
    }

    /// Writes a console message with a tag, which is the number of the process or module that
    /// created the message.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`text`](Self::text).
    pub fn tagged_text(&mut self, level: u8, tag: u16, time: u64, text: &str) -> Result<(), UlogError> {
        let log_level = b'0' + checked_level(level)?;
        let message = text.as_bytes();
        self.put_new(&Message::TaggedString(TaggedString { log_level, tag, timestamp: time, message }))
    }

    /// Writes a dropout message, which states that the messages of `millis` milliseconds were lost.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn dropout(&mut self, millis: u16) -> Result<(), UlogError> {
        self.put_new(&Message::Dropout(Dropout { duration: millis }))
    }

    /// Writes a synchronization message. A writer created with [`with_sync`](Self::with_sync)
    /// writes such messages periodically.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn sync(&mut self) -> Result<(), UlogError> {
        self.put_new(&Message::Sync(Sync { sync_magic: SYNC_MAGIC }))
    }

    // --- messages of other logs
    // --------------------------------------------------------------------------

    /// Copies a message of another log without changes. Even invalid values, such as a Boolean of
    /// 2, are preserved.
    ///
    /// Later typed calls can use a definition in this message. The message is not checked
    /// otherwise, so the caller must copy all messages on which other messages depend.
    ///
    /// # Errors
    /// Returns an error if the message contains flag bits but is not the first message, or if its
    /// payload has more than 65 535 bytes.
    pub fn write_message(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        match *message {
            // Most messages are rows. Rows need none of the checks in `put_new`.
            Message::Data(wire::Data { msg_id, row }) => {
                let time = self.tables.layout(msg_id).ok().and_then(|layout| timestamp(layout, row));
                self.put_row(msg_id, row, time)
            }
            Message::FlagBits(_) if self.position() != FLAG_BITS_AT => {
                let why = "the writer already wrote the flag bits as the first message";
                Err(UlogError::BadMessage { letter: 'B', why })
            }
            _ => self.put_new(message),
        }
    }

    /// Copies a message with the type `msg_type` and the given payload. See
    /// [`write_message`](Self::write_message).
    ///
    /// # Errors
    /// Returns an error if the payload is too short or too long for the type, and for the same
    /// reasons as [`write_message`](Self::write_message).
    pub fn write_raw(&mut self, msg_type: u8, payload: &[u8]) -> Result<(), UlogError> {
        let why = "its payload is too short or too long for its type";
        let message = Message::parse(msg_type, payload);
        self.write_message(&message.ok_or(UlogError::BadMessage { letter: msg_type.into(), why })?)
    }

    // --- output
    // ------------------------------------------------------------------------------------------

    /// Completes the log and returns the output.
    ///
    /// # Errors
    /// Returns an error if a format uses an undefined type, or if the output cannot be written.
    pub fn finish(mut self) -> Result<W, UlogError> {
        // If the log has no rows, its definitions are still in the buffer.
        self.begin_data()?;
        self.flush()?;
        self.out.flush()?;
        Ok(self.out.into_inner()?)
    }

    /// Starts the data section of the log, if it has not started.
    fn begin_data(&mut self) -> Result<(), UlogError> {
        if self.stage == Stage::Held {
            self.tables.check_formats()?;
        }
        self.stage = Stage::Data;
        Ok(())
    }

    /// Writes a message that is not a row. If the message is a definition, it is added to the
    /// tables for checking later calls.
    fn put_new(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        if message.is_data() {
            self.begin_data()?;
        }
        self.put(message)?;
        self.tables.add(message);
        match message {
            Message::DefaultParameter(_) if self.stage == Stage::Held => self.announce_defaults(),
            Message::Sync(_) => self.sync = self.sync.map(|_| self.now),
            _ => {}
        }
        Ok(())
    }

    /// Sets the flag for 'Q' messages in the flag bits, which are still in the buffer.
    fn announce_defaults(&mut self) {
        let flags = size_of::<FileHeader>() + size_of::<MessageHeader>();
        if let Ok((flags, _)) = FlagBits::mut_from_prefix(&mut self.buffer[flags..]) {
            flags.compat_flags[0] |= 1;
        }
    }

    fn put(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        let bytes = encoded(message)?;
        self.emit(&bytes, &[])
    }

    #[inline]
    fn put_row(&mut self, msg_id: u16, row: &[u8], time: Option<u64>) -> Result<(), UlogError> {
        if self.stage != Stage::Data {
            self.begin_data()?;
        }
        self.now = self.now.max(time.unwrap_or(0));
        if self.sync.is_some_and(|last| self.now - last >= SYNC_EVERY) {
            self.sync()?;
        }
        let header = header(kind::DATA, MSG_ID_LEN + row.len())?;
        self.buffer.extend_from_slice(header.as_bytes());
        self.emit(&msg_id.to_le_bytes(), row)
    }

    #[inline]
    fn emit(&mut self, head: &[u8], rest: &[u8]) -> Result<(), UlogError> {
        self.buffer.extend_from_slice(head);
        self.buffer.extend_from_slice(rest);
        // The definitions of a new log stay in the buffer until the data section starts, because
        // the flag bits may still change.
        if self.buffer.len() >= CHUNK && self.stage != Stage::Held {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), UlogError> {
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
