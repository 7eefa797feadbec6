//! Bodies for ULog.

use std::io::Read;

use rovelog::ulog_format::message::Message;
use rovelog::ulog_format::wire::Payload;
use rovelog::ulog_format::{Ulog, UlogReader, UlogStream};
use rovelog::{Align, Bytes, Format, LogReader, LogStream, ReadOptions, RecoverOptions, Select, Severity};

fn open(data: &[u8]) -> Option<UlogReader> {
    UlogReader::new(Bytes::copy_from_slice(data), &ReadOptions::default()).ok()
}

/// Reads everything there is to read, and adds up the bytes: header, messages and losses are the file.
pub fn ulog_read(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let mut accounted = 16;
    for (at, _) in log.messages() {
        let header = &data[usize::try_from(at).expect("within the file")..];
        accounted += 3 + u64::from(u16::from_le_bytes([header[0], header[1]]));
    }
    let ledger = &log.info().lost;
    // Data that cannot be used is framed like all other: it is among the messages and in the ledger.
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
    let mut rows = 0;
    let mut last = None;
    for record in log.records(&Select::all()) {
        let record = record.expect("a sound record");
        record.value().expect("a sound record decodes").to_json();
        rows += 1;
        last = record.time;
    }
    assert_eq!(rows, log.info().records);
    if let Some(last) = last {
        let select = Select::all().between(Some(last.nanos / 2), Some(last.nanos)).with_latched();
        assert!(log.records(&select).all(|record| record.is_ok()));
    }
    log.texts().into_iter().flatten().for_each(drop);
    log.topics().iter().for_each(|topic| drop(log.definition(topic)));
    drop((log.parameters(), log.infos(), log.multi_infos(), log.dropouts()));
}

/// Hands out bytes in pieces of sizes taken from the bytes themselves.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.first().map_or(0, |b| 1 + usize::from(*b)).min(self.0.len()).min(out.len());
        let (piece, rest) = self.0.split_at(size);
        out[..size].copy_from_slice(piece);
        self.0 = rest;
        Ok(size)
    }
}

/// The stream gives what the slice gives, however its input is split.
pub fn ulog_stream(data: &[u8]) {
    let stream = UlogStream::new(Pieces(data), &ReadOptions::default());
    let (Some(log), Ok(mut stream)) = (open(data), stream) else { return };
    let mut records = log.records_in_file_order();
    while let Some(got) = stream.next_record().expect("memory can be read") {
        let want = records.next().expect("the slice has as many records");
        assert_eq!((got.offset, got.seq, got.time), (want.offset, want.seq, want.time));
        assert_eq!(got.payload, want.payload);
    }
    assert!(records.next().is_none(), "the slice has more records");
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
    assert_eq!(format!("{:?}", stream.info()), format!("{:?}", log.info()));
}

/// The declared struct and the borrowed view of a payload: both or neither; what is read is written back.
pub fn ulog_declarations(data: &[u8]) {
    let Some((msg_type, payload)) = data.split_first() else { return };
    let declared = Payload::from_bytes(*msg_type, payload);
    assert_eq!(declared.is_ok(), Message::view(*msg_type, payload).is_some());
    if let Ok(declared) = declared {
        assert_eq!(declared.to_bytes().expect("what was read can be written"), payload);
    }
}

/// Logs made of any log open without loss, and hold what they are said to hold.
pub fn ulog_rewrite(data: &[u8]) {
    let Some(log) = open(data) else { return };
    let reopened = |bytes: &[u8]| {
        let log = open(bytes).expect("what is written opens");
        assert_eq!(log.info().lost.losses, 0, "what is written is sound");
        log.info().records
    };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    assert_eq!(reopened(&out), report.records);
    let kept = report.kept_bytes + report.lost_bytes() + report.stale_bytes;
    assert_eq!(kept, data.len() as u64, "bytes are not accounted for");

    let middle = log.info().start.zip(log.info().end).map(|(start, end)| start.nanos.midpoint(end.nanos));
    for select in [Select::all(), Select::all().between(middle, None), Select::all().between(None, middle)] {
        out.clear();
        if let Ok(sliced) = log.slice(&select, &mut out) {
            assert_eq!(open(&out).expect("a slice opens").info().records, sliced.records);
        }
    }
    // Two ways to define a format, and short timestamps, may be refused.
    for logs in [&[&log][..], &[&log, &log]] {
        out.clear();
        if let Ok(merged) = Ulog::merge(logs, Align::AsIs, &mut out) {
            assert_eq!(merged.records, log.info().records * logs.len() as u64);
            assert_eq!(reopened(&out), merged.records);
        }
    }
    log.dropout_losses();
}
