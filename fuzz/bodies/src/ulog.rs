//! Fuzz targets for ULog files.

use std::collections::HashMap;
use std::fmt::Write as _;

use arbitrary::{Arbitrary, Unstructured};
use rovelog::ulog_format::wire::Message;
use rovelog::ulog_format::{DefaultOf, FormatBuilder, TopicHandle, UlogWriter};
use rovelog::ulog_format::{Ulog, UlogReader, UlogStream};
use rovelog::{
    Align, Bytes, Format, LogReader, LogStream, ReadOptions, RecoverOptions, Select, Severity, TopicId,
};

use crate::alike::{Pieces, both, check_stream, decode, read_records};

fn open(data: &[u8]) -> Option<UlogReader> {
    UlogReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads a ULog file. Checks that the sizes of the header, the messages and the lost bytes add up
/// to the file size.
pub fn ulog_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let headers = log.usage().into_iter().filter(|usage| usage.kind == "file header");
    let mut accounted: u64 = headers.map(|usage| usage.bytes).sum();
    for (at, _) in log.messages() {
        let header = &data[usize::try_from(at).expect("within the file")..];
        accounted += 3 + u64::from(u16::from_le_bytes([header[0], header[1]]));
    }
    let ledger = &log.info().lost;
    // If the subscription of a data message cannot be used, its bytes count both as a message and
    // as lost bytes.
    let framed = |name: &str| name == "unknown_id" || name == "undecodable";
    let diagnostics = log.diagnostics();
    let kept = diagnostics.list().len() as u64 == diagnostics.total();
    if kept {
        let twice: u64 = diagnostics
            .list()
            .iter()
            .filter(|d| d.rule.severity == Severity::DataLost && framed(d.rule.name))
            .map(|d| d.range.end - d.range.start)
            .sum();
        assert_eq!(accounted + ledger.bytes - twice, data.len() as u64, "bytes are not accounted for");
    }
    read_records(&log, decode);
    log.texts().into_iter().flatten().for_each(drop);
    log.topics().iter().for_each(|topic| drop(log.own(topic).unwrap().definition()));
    drop((log.parameters(), log.infos(), log.multi_infos(), log.dropouts()));
}

/// Checks that a stream returns the same records as the reader, for any division of the input into
/// pieces.
pub fn ulog_stream(data: &[u8]) {
    let stream = UlogStream::new(Pieces(data), &ReadOptions::default());
    let Some((log, mut stream)) = both(open(data), stream) else { return };
    // If the file contains a second log, a stream returns its rows before the UTC of these rows is
    // known. Such files are skipped.
    if !log.sessions().is_empty() {
        return;
    }
    check_stream(&mut stream, &log, log.records_in_file_order(), |record| record.time);
    assert_eq!(format!("{:?}", stream.info()), format!("{:?}", log.info()));
    check_columns(data, &log);
}

/// Checks that each topic has as many rows in its columns as it has records. The columns are read
/// in three ways: with validation, with the index, and from a stream.
fn check_columns(data: &[u8], log: &UlogReader) {
    let want: Vec<_> = log.topics().iter().map(|topic| topic.count).collect();
    let rows = |batches: &mut dyn Iterator<Item = (TopicId, usize)>| {
        let mut rows = vec![0; want.len()];
        batches.for_each(|(topic, count)| rows[topic.index()] += count as u64);
        rows
    };
    let all = Select::all();
    let opened = open(data).expect("it opened before");
    let mut batches = opened.batches(&all).flatten().map(|(topic, batch)| (topic, batch.num_rows()));
    assert_eq!(rows(&mut batches), want, "validated while reading");
    let mut batches = log.batches(&all).flatten().map(|(topic, batch)| (topic, batch.num_rows()));
    assert_eq!(rows(&mut batches), want, "read by the index");
    let stream = UlogStream::new(Pieces(data), &ReadOptions::default()).expect("it opened before");
    let mut batches = stream.batches(&all);
    let mut piped = batches.by_ref().flatten().map(|(topic, batch)| (topic, batch.num_rows()));
    assert_eq!(rows(&mut piped), want, "read from a stream");
    assert_eq!(format!("{:?}", batches.stream().info()), format!("{:?}", log.info()));
    assert_eq!(batches.stream().diagnostics().list(), log.diagnostics().list());
    let opened = open(data).expect("it opened before");
    let mut batches = HashMap::<_, Vec<_>>::new();
    for (topic, batch) in opened.batches(&all).flatten() {
        batches.entry(topic).or_default().push(batch);
    }
    for (topic, table) in log.tables(&all).expect("the tables fit into memory") {
        if let [batch] = &batches[&topic][..] {
            assert!(*batch == table, "the columns of a topic differ");
        }
    }
}

/// Checks that a message has the same bytes after reading it and writing it again.
pub fn ulog_declarations(data: &[u8]) {
    let Some((msg_type, payload)) = data.split_first() else { return };
    if let Some(message) = Message::parse(*msg_type, payload) {
        assert_eq!(message.msg_type(), *msg_type);
        assert_eq!(message.payload().expect("what was read can be written"), payload);
    }
}

/// Recovers, slices and merges a log. Checks that the resulting logs have no losses and contain the
/// expected records.
pub fn ulog_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let reopened = |bytes: &[u8]| {
        let log = open(bytes).expect("a written log opens");
        assert_eq!(log.info().lost.losses, 0, "the written log is damaged");
        log.info().records
    };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    if report.unchanged {
        // If data was appended to a file, the message before it may be cut. Recovery keeps these
        // bytes.
        assert!(out == data, "an unchanged log differs");
        assert_eq!(log.info().records, report.records);
    } else {
        assert_eq!(reopened(&out), report.records);
    }
    let kept = report.kept_bytes + report.lost_bytes() + report.stale_bytes;
    assert_eq!(kept, data.len() as u64, "bytes are not accounted for");

    let middle = log.info().start.zip(log.info().end).map(|(start, end)| start.nanos.midpoint(end.nanos));
    for select in [Select::all(), Select::all().between(middle, None), Select::all().between(None, middle)] {
        out.clear();
        if let Ok(sliced) = log.slice(&select, &mut out) {
            assert_eq!(open(&out).expect("a slice opens").info().records, sliced.records);
        }
    }
    // A merge may fail if one format has two definitions, or if timestamps are shorter than 64
    // bits.
    for logs in [&[&log][..], &[&log, &log]] {
        out.clear();
        if let Ok(merged) = Ulog::merge(logs, Align::AsIs, &mut out) {
            assert_eq!(merged.records, log.info().records * logs.len() as u64);
            assert_eq!(reopened(&out), merged.records);
        }
    }
    log.dropout_losses();
}

/// Calls of the ULog writer in any order. All names are single letters, so that many of them are
/// equal.
#[derive(Arbitrary, Debug)]
struct Model {
    start: u64,
    sync: bool,
    calls: Vec<Call>,
}

#[derive(Arbitrary, Debug)]
enum Call {
    Define(u8, Vec<(u8, Option<u8>)>),
    Info(u8, String),
    MultiInfo(u8, String, bool),
    Parameter(u8, i32),
    FloatParameter(u8, f32),
    Default(u8, i32),
    Subscribe(u8, u8),
    Unsubscribe(u8),
    Row(u8, Vec<u8>),
    Text(u8, Option<u16>, u64, String),
    Dropout(u16),
    Sync,
}

/// Returns one of eight names, which consist of a single letter.
fn name(number: u8) -> String {
    char::from(b'a' + number % 8).to_string()
}

/// Returns a format that starts with a timestamp, as every topic requires. The timestamp is
/// followed by any other fields.
fn format(number: u8, fields: &[(u8, Option<u8>)]) -> FormatBuilder {
    const TYPES: [&str; 13] = [
        "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "float",
        "double", "bool", "char", "a",
    ];
    let mut text = format!("{}:uint64_t timestamp;", name(number));
    for (index, (ty, len)) in fields.iter().enumerate() {
        let other = name(*ty);
        let ty = TYPES.get(usize::from(ty % 16)).copied().unwrap_or(&other);
        let len = len.map_or(String::new(), |len| format!("[{len}]"));
        let name = if index % 7 == 6 { "_padding" } else { "f" };
        let _ = write!(text, "{ty}{len} {name}{index};");
    }
    FormatBuilder::parse(&text).expect("the format follows the grammar")
}

/// Content that a reader must find in a written log.
#[derive(Default)]
struct Written {
    rows: Vec<Vec<u8>>,
    texts: usize,
    dropouts: usize,
}

impl Call {
    /// Makes one call of the writer. If the writer returns an error, it must not have written
    /// anything.
    fn make(&self, log: &mut UlogWriter<&mut Vec<u8>>, topics: &mut Vec<TopicHandle>, written: &mut Written) {
        let topic = |number: u8| topics.get(usize::from(number) % topics.len().max(1)).copied();
        match self {
            Self::Define(name, fields) => drop(log.define(&format(*name, fields))),
            Self::Info(key, value) => drop(log.info(&name(*key), value)),
            Self::MultiInfo(key, value, false) => drop(log.multi_info(&name(*key), value)),
            Self::MultiInfo(key, value, true) => drop(log.multi_info_continued(&name(*key), value)),
            Self::Parameter(key, value) => drop(log.parameter(&name(*key), *value)),
            Self::FloatParameter(key, value) => drop(log.parameter(&name(*key), *value)),
            Self::Default(key, value) => drop(log.default_parameter(&name(*key), *value, DefaultOf::Both)),
            Self::Subscribe(format, multi_id) => topics.extend(log.subscribe(&name(*format), *multi_id)),
            Self::Unsubscribe(number) => drop(topic(*number).map(|topic| log.unsubscribe(topic))),
            Self::Row(number, bytes) => {
                let Some(topic) = topic(*number) else { return };
                let Ok(len) =
                    log.layout(topic).map(|layout| usize::try_from(layout.size().unwrap_or(0)).unwrap_or(0))
                else {
                    return;
                };
                let row: Vec<u8> = bytes.iter().copied().chain(std::iter::repeat(0)).take(len).collect();
                if log.write_row_bytes(topic, &row).is_ok() {
                    written.rows.push(row);
                }
            }
            Self::Text(level, tag, time, text) => {
                let done = match tag {
                    None => log.text(*level, *time, text),
                    Some(tag) => log.tagged_text(*level, *tag, *time, text),
                };
                written.texts += usize::from(done.is_ok());
            }
            Self::Dropout(millis) => written.dropouts += usize::from(log.dropout(*millis).is_ok()),
            Self::Sync => drop(log.sync()),
        }
    }
}

impl Model {
    /// Makes all calls of the writer. Returns the log, and the content that a reader must find.
    /// Returns `None` if the log cannot be finished, for example because a format uses a type that
    /// was never defined.
    fn write(&self) -> Option<(Vec<u8>, Written)> {
        let mut bytes = Vec::new();
        let mut log = UlogWriter::new(&mut bytes, self.start).expect("writing to memory succeeds");
        if self.sync {
            log = log.with_sync();
        }
        let (mut topics, mut written) = (Vec::new(), Written::default());
        for call in &self.calls {
            call.make(&mut log, &mut topics, &mut written);
        }
        log.finish().ok()?;
        Some((bytes, written))
    }
}

/// Generates calls of the writer from the input, and writes the log.
pub(crate) fn from_model(data: &mut Unstructured<'_>) -> Option<Vec<u8>> {
    Some(Model::arbitrary(data).ok()?.write()?.0)
}

/// Checks that a log written by any calls has no losses, and that it contains everything that the
/// writer accepted.
pub fn ulog_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let Some((bytes, written)) = model.write() else { return };
    let log = open(&bytes).expect("a written log opens");
    assert_eq!(log.info().lost.losses, 0, "the written log is damaged: {:?}", log.diagnostics().list());
    assert_eq!(log.info().records, written.rows.len() as u64);
    for (record, row) in log.records_in_file_order().zip(&written.rows) {
        assert_eq!(record.payload, row);
    }
    assert_eq!(log.texts().into_iter().flatten().count(), written.texts);
    assert_eq!(log.dropouts().len(), written.dropouts);
}
