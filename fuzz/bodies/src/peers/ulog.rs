//! Compares our reader of ULog files with the crates px4-ulog and `yule_log`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::rc::Rc;

use arbitrary::Unstructured;
use px4_ulog::stream_parser::LogParser;
use px4_ulog::stream_parser::model::{self, FlattenedFieldType};
use rovelog::ulog_format::{Ulog, UlogReader};
use rovelog::{Align, Bytes, Format, LogReader, ReadOptions, Record, Scalar};
use yule_log::builder::ULogParserBuilder;
use yule_log::model::inst::{self, FieldValue};
use yule_log::model::msg::UlogMessage;

use super::ulog_sound::{FILE_HEADER_LEN, HEADER_LEN, SoundPart, sound_parts};
use super::{call_peer, check_rewritten};
use crate::ulog::from_model;

fn open(data: &[u8]) -> Option<UlogReader> {
    UlogReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads a file with px4-ulog and `yule_log`. Checks that our reader returns all rows that they return
/// from the parts of the file that follow the specification, and the texts and dropouts of px4-ulog.
pub fn ulog_peers(data: &[u8]) {
    compare(data);
}

/// Slices, merges and recovers a log. Checks that the peers read the same rows from the resulting
/// logs as our reader, and that a log without damage stays without damage.
pub fn ulog_peers_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let sound = is_sound(data);
    let check = |written: &[u8]| {
        assert!(!sound || is_sound(written), "not as specified: {}", written.escape_ascii());
        check_written(written);
    };
    check_rewritten(&log, check);
    let mut out = Vec::new();
    if Ulog::merge(&[&log, &log], Align::AsIs, &mut out).is_ok() {
        check(&out);
    }
}

/// Checks that the peers read all rows of a log that was written by any calls of our writer.
pub fn ulog_peers_write(data: &[u8]) {
    let Some(written) = from_model(&mut Unstructured::new(data)) else { return };
    assert!(is_sound(&written), "not as specified: {}", written.escape_ascii());
    check_written(&written);
}

/// Compares our reader with the peers. Also checks that the peers return all our rows of a written
/// log, unless they stop at an error.
fn check_written(written: &[u8]) {
    let Some(compared) = compare(written) else { return };
    for rows in [compared.px4_rows, compared.yule_rows].into_iter().flatten() {
        assert_eq!(rows, compared.our_rows, "a peer returns fewer rows of a written log");
    }
}

/// Returns true if all messages of a file are known and follow the specification.
fn is_sound(data: &[u8]) -> bool {
    let parts = sound_parts(data);
    let is_complete = parts.last().is_some_and(|part| part.complete && part.range.end == data.len());
    is_complete && parts.iter().all(|part| part.all_known)
}

/// Number of rows that each reader returned.
struct Compared {
    /// Number of rows that were compared with a peer.
    #[cfg_attr(not(test), expect(dead_code, reason = "only a test counts the comparisons"))]
    comparisons: usize,
    our_rows: usize,
    /// `None` if the peer did not read the whole file, or if the file is damaged.
    px4_rows: Option<usize>,
    yule_rows: Option<usize>,
}

/// Content that a peer returned.
struct Returned<T> {
    rows: Vec<T>,
    /// Time in microseconds, level and text of each logged text.
    texts: Vec<(u64, u8, String)>,
    /// Durations in milliseconds of the dropouts.
    dropouts: Vec<u16>,
    /// True if the peer read everything without an error.
    complete: bool,
}

impl<T> Default for Returned<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), texts: Vec::new(), dropouts: Vec::new(), complete: false }
    }
}

/// A row that px4-ulog returned.
struct Px4Row {
    offset: usize,
    format: String,
    instance: u8,
    payload: Vec<u8>,
    time: Option<u64>,
    /// Name, type, and offset in the payload of each field.
    fields: Vec<(String, FlattenedFieldType, usize)>,
}

/// A row that `yule_log` returned.
struct YuleRow {
    offset: usize,
    format: String,
    instance: u8,
    row: inst::Format,
}

/// Compares our reader with the peers. Returns `None` if the file is no ULog file.
fn compare(data: &[u8]) -> Option<Compared> {
    let parts = sound_parts(data);
    let first = parts.first()?;
    let Some(log) = open(data) else {
        assert!(
            first.range.len() <= FILE_HEADER_LEN,
            "our reader refuses a log that follows the specification"
        );
        return None;
    };
    // The times of a second log in the same file are counted from another start.
    let one_log = log.sessions().is_empty();
    let ours: BTreeMap<usize, Record<'_>> = log
        .records_in_file_order()
        .map(|record| (record.offset.try_into().expect("an index"), record))
        .collect();
    let is_compared = |at: usize| {
        let before_damage = |part: &SoundPart| part.range.start <= at && at < part.compared_until;
        parts.iter().any(|part| before_damage(part) && !part.before_unknown.contains(&at))
    };
    let px4 = px4(data, &parts);
    let (mut comparisons, mut with_fields) = (0, BTreeSet::new());
    for row in px4.rows.iter().filter(|row| is_compared(row.offset)) {
        let record =
            ours.get(&row.offset).unwrap_or_else(|| panic!("no row at {}, as in px4-ulog", row.offset));
        check_row(record, &row.format, row.instance);
        assert_eq!(record.payload, row.payload);
        if let Some(nanos) =
            row.time.and_then(|time| i64::try_from(time).ok()?.checked_mul(1000)).filter(|_| one_log)
        {
            assert_eq!(record.time.map(|time| time.nanos), Some(nanos));
        }
        comparisons += 1;
        if with_fields.insert(record.topic.id) {
            check_fields(&log, record, &row.fields);
        }
    }
    let end = |parts: &[SoundPart]| parts.last().map_or(0, |part| part.compared_until);
    let uncertain = first.before_unknown.first().copied().unwrap_or(first.compared_until);
    let compared_until = uncertain.min(first.compared_until);
    check_messages(&log, &px4, compared_until, compared_until == data.len());
    let yule = yule(&data[first.range.clone()]);
    for YuleRow { offset, format, instance, row } in yule.rows.iter().filter(|row| is_compared(row.offset)) {
        // The specification says that fields whose names start with `_padding` have any type.
        // yule_log passes over such a field only if it is an array, and counts its elements as
        // bytes.
        if !pads_with_bytes(row) {
            continue;
        }
        let record = ours.get(offset).unwrap_or_else(|| panic!("no row at {offset}, as in yule_log"));
        check_row(record, format, *instance);
        comparisons += 1;
        let mut rest = &record.payload[..];
        assert!(strip_row(row, &mut rest) && rest.is_empty(), "the values of a row differ from yule_log");
    }
    let is_whole = parts.iter().all(|part| part.complete && part.all_known) && end(&parts) == data.len();
    Some(Compared {
        comparisons,
        our_rows: ours.len(),
        px4_rows: (is_whole && px4.complete).then_some(px4.rows.len()),
        yule_rows: (is_whole && yule.complete && parts.len() == 1).then_some(yule.rows.len()),
    })
}

/// Checks that a record belongs to the same topic as the row of a peer.
fn check_row(record: &Record<'_>, format: &str, instance: u8) {
    assert_eq!(record.topic.type_name, format);
    let name = record.topic.name.split('#').next();
    assert_eq!(name, Some(&*format!("{format}/{instance}")));
}

/// Checks that the fields that a peer found have the same types and offsets in our layout.
fn check_fields(log: &UlogReader, record: &Record<'_>, fields: &[(String, FlattenedFieldType, usize)]) {
    let row = log.row(record).expect("a row of the log");
    for (name, ty, offset) in fields {
        // Our layout has a text as one field.
        let first = name.strip_suffix("[0]").unwrap_or(name);
        let is_text = *ty == FlattenedFieldType::Char;
        let path = if is_text { first } else { name };
        if is_text && path.ends_with(']') && first == name {
            continue;
        }
        let place = row.layout().place(path).unwrap_or_else(|| panic!("no field {name}, as in px4-ulog"));
        assert_eq!((place.offset(), place.scalar()), (*offset, scalar(ty)), "{name}");
    }
}

fn scalar(ty: &FlattenedFieldType) -> Option<Scalar> {
    Some(match ty {
        FlattenedFieldType::Int8 => Scalar::Int8,
        FlattenedFieldType::UInt8 => Scalar::UInt8,
        FlattenedFieldType::Int16 => Scalar::Int16,
        FlattenedFieldType::UInt16 => Scalar::UInt16,
        FlattenedFieldType::Int32 => Scalar::Int32,
        FlattenedFieldType::UInt32 => Scalar::UInt32,
        FlattenedFieldType::Int64 => Scalar::Int64,
        FlattenedFieldType::UInt64 => Scalar::UInt64,
        FlattenedFieldType::Float => Scalar::Float32,
        FlattenedFieldType::Double => Scalar::Float64,
        FlattenedFieldType::Bool => Scalar::Bool,
        FlattenedFieldType::Char => return None,
    })
}

/// Checks that the texts and dropouts before an offset are those that a peer returned. If `is_whole`
/// is true, the peer must not have returned more of them.
fn check_messages<T>(log: &UlogReader, peer: &Returned<T>, end: usize, is_whole: bool) {
    let before = |offset: u64| offset < end as u64;
    let texts: Vec<_> = log.texts().into_iter().flatten().filter(|text| before(text.offset)).collect();
    for (ours, (time, level, text)) in texts.iter().zip(&peer.texts) {
        assert_eq!(ours.level, level - b'0');
        // The two readers replace bytes that are not UTF-8 in different ways.
        assert!(ours.text == *text || text.contains('\u{fffd}'), "{:?} differs from {text:?}", ours.text);
        if let (Some(time), Some(ours)) =
            (i64::try_from(*time).ok().and_then(|time| time.checked_mul(1000)), ours.time)
        {
            assert_eq!(ours.nanos, time);
        }
    }
    let dropouts: Vec<_> =
        log.dropouts().iter().filter(|dropout| before(dropout.offset)).map(|d| d.millis).collect();
    let common = dropouts.len().min(peer.dropouts.len());
    assert_eq!(dropouts[..common], peer.dropouts[..common]);
    if peer.complete {
        assert!(texts.len() <= peer.texts.len() && dropouts.len() <= peer.dropouts.len());
        if is_whole {
            assert_eq!((texts.len(), dropouts.len()), (peer.texts.len(), peer.dropouts.len()));
        }
    }
}

/// Reads parts of a file with px4-ulog.
fn px4(data: &[u8], parts: &[SoundPart]) -> Returned<Px4Row> {
    let mut returned = Returned::default();
    let (rows, dropouts, texts) = (&mut returned.rows, &mut returned.dropouts, RefCell::new(Vec::new()));
    let mut on_data = |message: &model::DataMessage<'_>| rows.push(px4_row(data, message));
    let mut on_text = |text: &model::LoggedStringMessage<'_>| {
        texts.borrow_mut().push((text.timestamp, text.log_level, text.logged_message.to_owned()));
    };
    let mut on_tagged = |text: &model::TaggedLoggedStringMessage<'_>| {
        texts.borrow_mut().push((text.timestamp, text.log_level, text.logged_message.to_owned()));
    };
    let mut on_dropout = |dropout: &model::DropoutMessage| dropouts.push(dropout.duration_ms);
    let complete = call_peer(|| {
        let mut parser = LogParser::default();
        parser.set_data_message_callback(&mut on_data);
        parser.set_logged_string_message_callback(&mut on_text);
        parser.set_tagged_logged_string_message_callback(&mut on_tagged);
        parser.set_dropout_message_callback(&mut on_dropout);
        parts.iter().all(|part| parser.consume_bytes(&data[part.range.clone()]).is_ok())
    });
    returned.texts = texts.into_inner();
    returned.complete = complete == Some(true);
    returned
}

fn px4_row(data: &[u8], message: &model::DataMessage<'_>) -> Px4Row {
    // px4-ulog passes slices of its input, so their addresses are offsets in the file.
    let payload_at = message.data.as_ptr().addr() - data.as_ptr().addr();
    let format = message.flattened_format;
    let fields = format.field_iter();
    Px4Row {
        offset: payload_at - HEADER_LEN,
        format: format.message_name.clone(),
        instance: message.multi_id.value(),
        payload: message.data[2..].to_vec(),
        time: format.timestamp_field.as_ref().map(|field| field.parse_timestamp(message.data)),
        fields: fields
            .map(|field| {
                (field.flattened_field_name.clone(), field.field_type.clone(), usize::from(field.offset) - 2)
            })
            .collect(),
    }
}

/// A source of bytes whose position can be read while a parser owns it.
struct Counted<'a> {
    bytes: &'a [u8],
    position: Rc<Cell<usize>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(out)?;
        self.position.set(self.position.get() + read);
        Ok(read)
    }
}

/// Reads the first part of a file with `yule_log`, which does not read appended data.
fn yule(part: &[u8]) -> Returned<YuleRow> {
    let mut returned = Returned::default();
    call_peer(|| {
        let position = Rc::new(Cell::new(0));
        let source = Counted { bytes: part, position: Rc::clone(&position) };
        let builder = ULogParserBuilder::new(source).include_header(true).include_timestamp(true);
        let Ok(mut parser) = builder.include_padding(true).build() else { return };
        let mut had_errors = false;
        while position.get() < part.len() {
            let offset = position.get();
            match parser.next() {
                None => break,
                Some(Err(_)) => had_errors = true,
                Some(Ok(UlogMessage::LoggedData(row))) => {
                    let Ok(subscription) = parser.get_subscription(row.msg_id) else { continue };
                    let (format, instance) = (subscription.message_name.clone(), subscription.multi_id);
                    returned.rows.push(YuleRow { offset, format, instance, row: row.data });
                }
                Some(Ok(_)) => {}
            }
        }
        returned.complete = !had_errors;
    });
    returned
}

/// Returns true if all padding fields of a row are arrays of bytes.
fn pads_with_bytes(row: &inst::Format) -> bool {
    use yule_log::model::def::BaseType;
    let is_byte =
        |ty: &BaseType| matches!(ty, BaseType::UINT8 | BaseType::INT8 | BaseType::CHAR | BaseType::BOOL);
    let padding = row.def_format.fields.iter().filter(|field| field.name.starts_with("_padding"));
    padding.clone().all(|field| field.r#type.array_size.is_some() && is_byte(&field.r#type.base_type))
        && row.fields.iter().all(|field| match &field.value {
            FieldValue::ScalarOther(nested) => pads_with_bytes(nested),
            FieldValue::ArrayOther(nested) => nested.iter().all(pads_with_bytes),
            _ => true,
        })
}

/// Removes the values of a row from the start of its bytes. Returns false if the bytes differ.
fn strip_row(row: &inst::Format, bytes: &mut &[u8]) -> bool {
    row.fields.iter().all(|field| strip_value(&field.value, bytes))
}

fn strip_value(value: &FieldValue, bytes: &mut &[u8]) -> bool {
    let mut strip = |want: &[u8]| {
        let rest = bytes.strip_prefix(want);
        *bytes = rest.unwrap_or_default();
        rest.is_some()
    };
    match value {
        FieldValue::ScalarU8(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarU16(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarU32(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarU64(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarI8(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarI16(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarI32(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarI64(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarF32(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarF64(value) => strip(&value.to_le_bytes()),
        FieldValue::ScalarChar(value) => strip(&[value.0]),
        // Any byte other than 0 is true, and yule_log does not keep the byte.
        FieldValue::ScalarBool(value) => {
            let Some((byte, rest)) = bytes.split_first() else { return false };
            *bytes = rest;
            (*byte != 0) == *value
        }
        FieldValue::ScalarOther(row) => strip_row(row, bytes),
        arrays => {
            arrays.to_scalars().is_some_and(|values| values.iter().all(|value| strip_value(value, bytes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::corpus;
    use super::*;

    // If the peers stop at once, or if no part of a log counts as undamaged, nothing is compared.
    #[test]
    fn most_rows_of_the_corpus_are_compared() {
        let (mut compared, mut ours) = (0, 0);
        for bytes in corpus("ulog") {
            if let Some(log) = compare(&bytes) {
                compared += log.comparisons;
                ours += log.our_rows;
            }
        }
        assert!(compared > ours, "{compared} comparisons of {ours} rows");
    }
}
