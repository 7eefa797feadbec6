//! Writing logs: from scratch through a typed API, or message by message from another log.
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
use rovelog_core::output::FailFast;
use rovelog_core::wire::{U16Le, U64Le};
use zerocopy::{FromBytes, IntoBytes};

pub use append::{append, append_to_file};
pub use build::{FormatBuilder, RowBuffer, TopicHandle};
pub use encode::{InfoValue, ParameterValue};

use crate::error::UlogError;
use crate::layout::Layout;
use crate::wire::{
    self, DefaultParameter, Dropout, FLAG_BITS_AT, FileHeader, FlagBits, FlagBitsMessage, Format,
    LoggedString, MAGIC, MSG_ID_LEN, Message, MessageHeader, MultiInfo, SYNC_MAGIC, Subscription, Sync,
    TaggedString, Unsubscription, kind,
};
use encode::MAX_PAYLOAD;
use tables::Tables;

/// Bytes collected before they are handed to the output.
const CHUNK: usize = 64 << 10;

/// Log time between two synchronization messages, microseconds: what PX4 does.
const SYNC_EVERY: u64 = 500_000;

/// Of what a parameter's default is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum DefaultOf {
    System,
    CurrentSetup,
    Both,
}

/// What may still be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A log from scratch: its definitions are held back, because the flag bits before them depend
    /// on them.
    Held,
    /// A copy: everything goes out as it comes.
    Definitions,
    Data,
}

/// Writes a ULog.
///
/// The typed calls write only what the specification allows and say what is wrong with anything
/// else; [`write_message`](Self::write_message) takes the valid messages of another log as they
/// are. Small writes are collected, so the output needs no buffer of its own; the definitions of a
/// log from scratch are held in memory until the data section starts.
///
/// Only [`finish`](Self::finish) makes a complete log: a writer that is dropped leaves a cut one.
#[derive(Debug)]
pub struct UlogWriter<W> {
    out: FailFast<W>,
    /// What is not yet handed to `out`.
    buffer: Vec<u8>,
    /// Bytes handed to `out`.
    written: u64,
    stage: Stage,
    tables: Tables,
    /// Whether synchronization messages are written, and the log time of the last one.
    sync: Option<u64>,
    /// Log time: the largest timestamp so far.
    now: u64,
    /// Bytes of the row at hand, kept for their memory.
    row: Vec<u8>,
}

impl<W: Write> UlogWriter<W> {
    /// Starts a log that started `start` microseconds after boot.
    ///
    /// # Errors
    /// None so far: nothing is written before the data section starts.
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

    /// Starts a log whose messages come from another one, with that log's header. Flag bits are
    /// written only if the first message has them.
    ///
    /// # Errors
    /// Returns an error if the header's magic is not that of a ULog.
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

    /// Returns the same writer, with a synchronization message after each half second of log time,
    /// so that readers find their way after damage.
    #[must_use]
    pub fn with_sync(mut self) -> Self {
        self.sync = Some(self.now);
        self
    }

    /// Returns the length of the log so far.
    #[doc(hidden)]
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    // --- definitions -------------------------------------------------------------------------------------

    /// Defines a format. Types inside it may be defined later, but before the data section starts.
    ///
    /// # Errors
    /// Returns an error if a name breaks its pattern or is taken, there is no field, or the data
    /// section has started.
    pub fn define(&mut self, format: &FormatBuilder) -> Result<(), UlogError> {
        self.still_defining(|| format!("format {}", format.name()))?;
        let text = format.definition()?;
        if self.tables.formats.text(format.name()).is_some() {
            return Err(build::bad_format(format.name(), "it is defined already"));
        }
        self.put_new(&Message::Format(Format { format: text.as_bytes() }))
    }

    /// Writes an information message, once per name. Its place is before the data section, if
    /// possible.
    ///
    /// # Errors
    /// Returns an error if the name is taken or not printable, the value has no type, or it is too
    /// long for a message: then use [`multi_info`](Self::multi_info).
    pub fn info(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        if self.tables.infos.contains(name) {
            return Err(encode::bad_key(name, "there is an information message of this name already"));
        }
        let value = value.encode(name)?;
        let key = encode::key(&value.type_name(), name)?;
        encode::fits(&format!("the value of {name}"), value.bytes.len(), MAX_PAYLOAD - 1 - key.len())?;
        self.put_new(&Message::Info(encode::part(&key, &value.bytes)))
    }

    /// Starts a list of an information message that may occur several times. What is too long for
    /// one message is split into several, texts between characters.
    ///
    /// # Errors
    /// Returns an error if the name is not printable or the value has no type.
    pub fn multi_info(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        self.multi_parts(name, &value.encode(name)?, false)
    }

    /// Adds a part to the list that the last [`multi_info`](Self::multi_info) of this name started.
    ///
    /// # Errors
    /// As for `multi_info`, and where no list of this name was started.
    pub fn multi_info_continued(&mut self, name: &str, value: impl InfoValue) -> Result<(), UlogError> {
        if !self.tables.multi_infos.contains(name) {
            return Err(encode::bad_key(name, "there is no list of this name to continue"));
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

    /// Writes a parameter: its initial value, or in the data section a change.
    ///
    /// # Errors
    /// Returns an error if the name is not printable, or the parameter was of another type.
    pub fn parameter(&mut self, name: &str, value: impl Into<ParameterValue>) -> Result<(), UlogError> {
        let value = value.into();
        if self.tables.parameters.get(name).is_some_and(|ty| **ty != *value.type_name()) {
            return Err(encode::bad_key(name, "this parameter is of another type"));
        }
        let key = encode::key(value.type_name(), name)?;
        self.put_new(&Message::Parameter(encode::part(&key, &value.to_bytes())))
    }

    /// Writes the default of a parameter, where it differs from the value.
    ///
    /// # Errors
    /// Returns an error if the parameter was not written before with the same type, or the data
    /// section has started.
    pub fn default_parameter(
        &mut self,
        name: &str,
        value: impl Into<ParameterValue>,
        of: DefaultOf,
    ) -> Result<(), UlogError> {
        self.still_defining(|| format!("the default of {name}"))?;
        let value = value.into();
        if self.tables.parameters.get(name).is_none_or(|ty| **ty != *value.type_name()) {
            return Err(encode::bad_key(name, "a default follows a parameter of its name and type"));
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

    // --- data --------------------------------------------------------------------------------------------

    /// Subscribes instance `multi_id` of a topic. This starts the data section.
    ///
    /// # Errors
    /// Returns an error if the format is missing, circular, too large or does not start with
    /// `uint64_t timestamp`, or the instance is subscribed already. When it starts the data
    /// section: where any format uses a type that is not defined.
    pub fn subscribe(&mut self, format: &str, multi_id: u8) -> Result<TopicHandle, UlogError> {
        let msg_id = self.tables.may_subscribe(format, multi_id)?;
        let message_name = format.as_bytes();
        self.put_new(&Message::Subscription(Subscription { multi_id, msg_id, message_name }))?;
        Ok(TopicHandle { msg_id })
    }

    /// Returns the topic that is subscribed under this name and instance, here or in the log that
    /// is copied.
    pub fn topic(&self, format: &str, multi_id: u8) -> Option<TopicHandle> {
        self.tables.names.get(&(format.to_owned(), multi_id)).map(|msg_id| TopicHandle { msg_id: *msg_id })
    }

    /// Returns where the fields of a topic's rows lie.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed, or cannot be decoded.
    #[doc(hidden)]
    pub fn layout(&self, topic: TopicHandle) -> Result<&rovelog_core::layout::Layout, UlogError> {
        Ok(&self.tables.layout(topic.msg_id)?.record)
    }

    /// Ends a subscription; its rows are refused from here on.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed.
    pub fn unsubscribe(&mut self, topic: TopicHandle) -> Result<(), UlogError> {
        self.layout(topic)?;
        self.put_new(&Message::Unsubscription(Unsubscription { msg_id: topic.msg_id }))
    }

    /// Writes a row from the values of its fields, a [`Value::Struct`] as the reader gives it.
    ///
    /// Integers may be of any width that holds them; padding is filled with zeros, and left out at
    /// the end.
    ///
    /// # Errors
    /// Returns an error if a field is missing, unknown, or of another type.
    pub fn write_row(&mut self, topic: TopicHandle, row: &Value) -> Result<(), UlogError> {
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

    /// Writes a row from its bytes, with or without the padding at the end, which is left out.
    ///
    /// # Errors
    /// Returns an error if their number is neither of the two that the format allows.
    pub fn write_row_bytes(&mut self, topic: TopicHandle, row: &[u8]) -> Result<(), UlogError> {
        let layout = self.tables.layout(topic.msg_id)?;
        if row.len() != layout.trimmed && row.len() != layout.full {
            let (trimmed, full) = (layout.trimmed, layout.full);
            let topic = layout.record.schema().name.clone();
            return Err(UlogError::RowSize { topic, got: row.len(), trimmed, full });
        }
        let row = &row[..layout.trimmed];
        let time = timestamp(layout, row);
        self.put_row(topic.msg_id, row, time)
    }

    /// Returns an empty row of a topic, to be filled and written again and again.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed.
    pub fn row_buffer(&self, topic: TopicHandle) -> Result<RowBuffer, UlogError> {
        Ok(RowBuffer::new(topic, Arc::clone(self.tables.layout(topic.msg_id)?)))
    }

    /// Writes a row as it is in its buffer.
    ///
    /// # Errors
    /// Returns an error if the topic is not subscribed in this log.
    pub fn write(&mut self, row: &RowBuffer) -> Result<(), UlogError> {
        self.write_row_bytes(row.topic(), row.bytes())
    }

    /// Writes a line of text; `level` is 0 (emergency) to 7 (debug), `time` microseconds.
    ///
    /// # Errors
    /// Returns an error if the level is another number, or the text too long for a message.
    pub fn text(&mut self, level: u8, time: u64, text: &str) -> Result<(), UlogError> {
        let log_level = b'0' + checked_level(level)?;
        let message = text.as_bytes();
        self.put_new(&Message::LoggedString(LoggedString { log_level, timestamp: time, message }))
    }

    /// Writes a line of text with the number of the process or module it comes from.
    ///
    /// # Errors
    /// As for [`text`](Self::text).
    pub fn tagged_text(&mut self, level: u8, tag: u16, time: u64, text: &str) -> Result<(), UlogError> {
        let log_level = b'0' + checked_level(level)?;
        let message = text.as_bytes();
        self.put_new(&Message::TaggedString(TaggedString { log_level, tag, timestamp: time, message }))
    }

    /// Marks that messages of `millis` milliseconds were lost.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    pub fn dropout(&mut self, millis: u16) -> Result<(), UlogError> {
        self.put_new(&Message::Dropout(Dropout { duration: millis }))
    }

    /// Writes a synchronization message; see [`with_sync`](Self::with_sync).
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    pub fn sync(&mut self) -> Result<(), UlogError> {
        self.put_new(&Message::Sync(Sync { sync_magic: SYNC_MAGIC }))
    }

    // --- messages of other logs --------------------------------------------------------------------------

    /// Writes a message of another log, byte for byte: padding, bool bytes, levels and value
    /// lengths stay.
    ///
    /// It is learned, so that typed calls may follow, and otherwise not checked: to leave some
    /// messages of a log out is the caller's business.
    ///
    /// # Errors
    /// Returns an error if flag bits are not the first message, or a payload has more than 65 535
    /// bytes.
    pub fn write_message(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        match *message {
            // Rows are many: without a detour.
            Message::Data(wire::Data { msg_id, row }) => {
                let time = self.tables.layout(msg_id).ok().and_then(|layout| timestamp(layout, row));
                self.put_row(msg_id, row, time)
            }
            Message::FlagBits(_) if self.position() != FLAG_BITS_AT => {
                let why = "flag bits are the first message, and a log from scratch has its own";
                Err(UlogError::BadMessage { letter: 'B', why })
            }
            _ => self.put_new(message),
        }
    }

    /// Writes a message of type `msg_type` with these bytes, as
    /// [`write_message`](Self::write_message) does.
    ///
    /// # Errors
    /// As there, and where the bytes are too few or too many for the type.
    pub fn write_raw(&mut self, msg_type: u8, payload: &[u8]) -> Result<(), UlogError> {
        let why = "its payload is too short or too long for its type";
        let message = Message::parse(msg_type, payload);
        self.write_message(&message.ok_or(UlogError::BadMessage { letter: msg_type.into(), why })?)
    }

    // --- output ------------------------------------------------------------------------------------------

    /// Completes the log and gives the output back.
    ///
    /// # Errors
    /// Returns an error if a format uses a type that is not defined, or the output refuses.
    pub fn finish(mut self) -> Result<W, UlogError> {
        self.begin_data()?;
        self.flush()?;
        self.out.flush()?;
        Ok(self.out.into_inner()?)
    }

    /// Starts the data section, if it has not started.
    fn begin_data(&mut self) -> Result<(), UlogError> {
        if self.stage == Stage::Held {
            self.tables.check_formats()?;
        }
        self.stage = Stage::Data;
        Ok(())
    }

    /// Learns and writes a message other than a row.
    fn put_new(&mut self, message: &Message<'_>) -> Result<(), UlogError> {
        if matches!(message.msg_type(), b'A' | b'R' | b'D' | b'L' | b'C' | b'S' | b'O') {
            self.begin_data()?;
        }
        self.put(message)?;
        self.tables.learn(message);
        match message {
            Message::DefaultParameter(_) if self.stage == Stage::Held => self.announce_defaults(),
            Message::Sync(_) => self.sync = self.sync.map(|_| self.now),
            _ => {}
        }
        Ok(())
    }

    /// Sets the flag bit that says that 'Q' messages occur.
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

/// Returns the header of a message with a payload of `len` bytes.
#[inline]
fn header(msg_type: u8, len: usize) -> Result<MessageHeader, UlogError> {
    let Ok(msg_size) = u16::try_from(len) else {
        let what = format!("the payload of a '{}' message", msg_type.escape_ascii());
        return Err(UlogError::TooLong { what, len, max: MAX_PAYLOAD });
    };
    Ok(MessageHeader { msg_size: U16Le::new(msg_size), msg_type })
}

/// Returns a message as it is written: header and payload.
pub(crate) fn encoded(message: &Message<'_>) -> Result<Vec<u8>, UlogError> {
    let msg_type = message.msg_type();
    let why = "its key is longer than 255 bytes";
    let payload = message.payload().map_err(|_| UlogError::BadMessage { letter: msg_type.into(), why })?;
    Ok([header(msg_type, payload.len())?.as_bytes(), &payload].concat())
}

/// Returns a level that a text may have.
fn checked_level(level: u8) -> Result<u8, UlogError> {
    if level > 7 {
        let why = format!("level {level} is not 0 (emergency) to 7 (debug)");
        return Err(UlogError::BadValue { field: "level".into(), why });
    }
    Ok(level)
}

/// Returns the 64-bit timestamp of a row.
#[inline]
fn timestamp(layout: &Layout, row: &[u8]) -> Option<u64> {
    let field = layout.timestamp.filter(|field| field.width == crate::layout::TimeWidth::U64Micros)?;
    wire::number::<U64Le>(row, field.offset).map(U64Le::get)
}
