//! A complete log format in one file. A log starts with `TOY1`. Each record has 8 bytes: a time in
//! seconds and a number.
//!
//! Run it with `cargo run -p rovelog-core --example toy_format`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::io::Write;
use std::sync::Arc;

use rovelog_core::backend::Backend;
use rovelog_core::internal::layout::{Element, Layout, Len};
use rovelog_core::internal::usage::UsageTally;
use rovelog_core::{
    Bytes, Clock, Decode, Diagnostics, Error, ErrorKind, Fields, FormatInfo, Limits, LogInfo, LogReader,
    Record, Records, RecoverOptions, Recovery, Result, Rule, Scalar, Select, Severity, Signature, Sliced,
    Timestamp, Topic, TopicId, Usage,
};

static INFO: FormatInfo = FormatInfo {
    id: "toy",
    name: "Toy",
    about: "seconds and numbers",
    extensions: &["toy"],
    signatures: &[Signature(b"TOY1")],
    recognizes: None,
    files: None,
};
static CUT: Rule = Rule {
    code: "E-TOY-001",
    name: "cut",
    severity: Severity::DataLost,
    meaning: "the file ends in a record",
};
const HEADER: usize = 4;
const RECORD: usize = 8;

struct ToyReader {
    bytes: Bytes,
    topics: Vec<Topic>,
    info: LogInfo,
    diagnostics: Diagnostics,
    layout: Arc<Layout>,
}

impl ToyReader {
    fn new(bytes: Bytes) -> Result<Self> {
        if !bytes.starts_with(b"TOY1") {
            return Err(Error::new("toy", ErrorKind::NotThisFormat, Some(0), "this is no toy log"));
        }
        let size = bytes.len() as u64;
        let mut layout = Layout::builder("count");
        layout.field("number", Element::Scalar(Scalar::UInt32), Len::One, "u32".into());
        let layout = Arc::new(layout.finish());
        let schema = Arc::clone(layout.schema());
        let mut log = Self {
            topics: vec![Topic::new(TopicId(0), "count".into(), "count".into(), Some(schema))],
            info: LogInfo::new("1", size),
            diagnostics: Diagnostics::new(&Limits::default()),
            layout,
            bytes,
        };
        let rest = log.rows().remainder().len() as u64;
        if rest > 0 {
            log.diagnostics.push(&CUT, size - rest..size, || format!("{rest} bytes of a record"));
        }
        log.info.set_state(&log.diagnostics, &CUT);
        let count = log.rows().len() as u64;
        log.info.records = count;
        (log.info.start, log.info.end) = (log.rows().next().map(time), log.rows().next_back().map(time));
        let topic = &mut log.topics[0];
        (topic.count, topic.timed, topic.bytes) = (count, count, 4 * count);
        (topic.first, topic.last) = (log.info.start, log.info.end);
        Ok(log)
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, u8> {
        self.bytes[HEADER..].chunks_exact(RECORD)
    }

    /// Returns the number and the bytes of each selected record. If the last record before the time
    /// window is also selected, it directly precedes the records in the window, because the times
    /// in a log of this format never decrease.
    fn kept(&self, select: &Select) -> impl Iterator<Item = (u64, &[u8])> + use<'_> {
        let (select, topic) = (select.clone(), &self.topics[0]);
        let start = select.start.filter(|_| select.keeps_last_before(topic));
        let latched = start.and_then(|start| self.rows().rposition(|row| time(row).nanos < start));
        let rows = self.rows().enumerate().filter(move |(number, row)| {
            select.keeps_topic(topic) && select.keeps_time(time(row).nanos) || Some(*number) == latched
        });
        rows.map(|(number, row)| (number as u64, row))
    }

    fn write(&self, select: &Select, out: &mut dyn Write) -> Result<u64> {
        let io = |error| Error::io("toy", error);
        out.write_all(b"TOY1").map_err(io)?;
        let mut records = 0;
        for (_, row) in self.kept(select) {
            out.write_all(row).map_err(io)?;
            records += 1;
        }
        Ok(records)
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn time(row: &[u8]) -> Timestamp {
    Timestamp::new(i64::from(word(row)) * 1_000_000_000, Clock::LogStart)
}

impl Decode for ToyReader {
    fn fields<'a>(&'a self, _: &Topic, payload: &'a [u8]) -> Result<Fields<'a>> {
        Ok(Fields::new(&self.layout, payload))
    }
}

impl LogReader for ToyReader {
    fn format(&self) -> &'static FormatInfo {
        &INFO
    }

    fn info(&self) -> &LogInfo {
        &self.info
    }

    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    fn usage(&self) -> Vec<Usage> {
        let mut tally = UsageTally::default();
        tally.add("header", None, HEADER as u64);
        tally.add_all("data", Some(TopicId(0)), self.info.records, self.info.records * RECORD as u64);
        tally.finish(self.info.size)
    }

    fn recover(&self, out: &mut dyn Write, _: &RecoverOptions) -> Result<Recovery> {
        let records = self.write(&Select::all(), out)?;
        let lost = self.info.lost.ranges.clone();
        let kept_bytes = self.info.size - self.info.lost.bytes;
        Ok(Recovery { records, kept_bytes, unchanged: lost.is_empty(), lost, ..Recovery::default() })
    }

    fn slice(&self, select: &Select, out: &mut dyn Write) -> Result<Sliced> {
        let records = self.write(select, out)?;
        let bytes = HEADER as u64 + records * RECORD as u64;
        Ok(Sliced { records, topics: 1, bytes, ..Sliced::default() })
    }
}

impl Backend for ToyReader {
    fn as_log(&self) -> &dyn LogReader {
        self
    }

    fn read_records<'a>(&'a self, select: &Select) -> Records<'a> {
        Box::new(self.kept(select).map(|(seq, row)| {
            let offset = HEADER as u64 + seq * RECORD as u64;
            Ok(Record::new(&self.topics[0], Some(time(row)), offset, seq, &row[4..], self))
        }))
    }
}

fn main() -> Result<()> {
    let mut bytes = b"TOY1".to_vec();
    for (second, number) in [(0_u32, 7_u32), (1, 8), (2, 9)] {
        bytes.extend([second.to_le_bytes(), number.to_le_bytes()].concat());
    }
    bytes.pop();
    let log = ToyReader::new(bytes.into())?;
    for record in log.records(&Select::all()) {
        let record = record?;
        println!("{:?} {}", record.time.map(|time| time.seconds().to_string()), record.value()?.to_json());
    }
    println!("{}, {} bytes lost", log.info().state.name(), log.info().lost.bytes);
    let mut sound = Vec::new();
    let recovery = log.recover(&mut sound, &RecoverOptions::default())?;
    let window = Select::all().between(Some(1_000_000_000), None).with_last_before();
    let sliced = log.slice(&window, &mut Vec::new())?;
    let (kept, size) = (recovery.kept_bytes, log.info().size);
    println!("{kept} bytes kept of {size}; {} records from 1 s on, with the last before", sliced.records);
    Ok(())
}
