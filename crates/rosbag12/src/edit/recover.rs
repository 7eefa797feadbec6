//! Recovers all intact messages of a damaged bag, and reports for every byte whether it was
//! recovered.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::{Detail, LogReader, Recovery, Rule, Value};

use super::lost::{self, LostMessage};
use super::output::Output;
use super::{chunked, clock_detail};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::headers::Fields;
use crate::message::nanos;
use crate::reader::BagReader;
use crate::sections::IndexState;
use crate::version::Version;
use crate::wire::{Header, IndexEntry, Record, RecordHead};

/// Kind of a byte range in a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Records that are valid.
    Records,
    /// Valid bytes outside of records: a version line, a table of topics, or padding that belongs
    /// to no record.
    Frame,
    /// Bytes that cannot be read.
    Lost,
    /// The last record, which is truncated at the end of the file.
    Tail,
}

/// Writes all intact messages of a bag to a new bag.
///
/// An intact bag is copied, unless its chunks must be compressed in another way. A damaged bag is
/// written in the same way as [`BagReader::reindex`] does.
///
/// # Errors
/// Returns an error if the output returns an error.
pub(crate) fn recover(bag: &BagReader, out: &mut dyn Write) -> Result<Recovery, BagError> {
    let scanned = bag.scanned();
    let bag = scanned.as_deref().unwrap_or(bag);
    if bag.is_intact() && !bag.recompresses() {
        return Ok(Recovery::copied(bag.info().records, &bag.bytes, out)?);
    }
    let lost = bag.index.lost().to_vec();
    let size = bag.bytes.len() as u64;
    if bag.version() == Version::V2_0 {
        return chunked::recover(bag, lost, out);
    }
    let output = bag.rewritten();
    let records = output.records;
    output.write(out)?;
    let details = lost::detail(&bag.lost_messages()).into_iter().chain([bag.ledger_detail()]);
    let details = details.chain(clock_detail(bag)).collect();
    let missing_records = bag.info().lost.missing_records;
    Ok(Recovery { records, missing_records, details, ..Recovery::of(size, lost, &[]) })
}

impl BagReader {
    /// Returns the kind of every byte in the bag. The ranges cover the whole bag in ascending
    /// order.
    pub fn ledger(&self) -> Vec<(Part, Range<u64>)> {
        let size = self.bytes.len() as u64;
        let cut = self.diagnostics().list().iter().rfind(|d| d.rule == &rules::CUT).map(|d| d.range.start);
        let mut ledger: Vec<(Part, Range<u64>)> = Vec::new();
        let mut push = |part: Part, range: Range<u64>| {
            if range.start < range.end {
                match ledger.last_mut() {
                    Some((last, known)) if *last == part => known.end = range.end,
                    _ => ledger.push((part, range)),
                }
            }
        };
        let mut at = 0;
        let mut lost = self.index.lost().iter().peekable();
        for skipped in self.index.blocks.skips() {
            push(Part::Records, at..skipped.start);
            at = skipped.start;
            while let Some(range) = lost.next_if(|range| range.end <= skipped.end) {
                push(Part::Frame, at..range.start);
                let tail = cut.filter(|cut| range.contains(cut)).unwrap_or(range.end);
                push(Part::Lost, range.start..tail);
                push(Part::Tail, tail..range.end);
                at = range.end;
            }
            push(Part::Frame, at..skipped.end);
            at = skipped.end;
        }
        push(Part::Records, at..size);
        ledger
    }

    /// Returns the messages that the index lists, but that are not in the bag. The result is empty
    /// for V2.0 bags, and for bags without a usable index.
    pub fn lost_messages(&self) -> Vec<LostMessage> {
        let mut found = Vec::new();
        if self.info().lost.losses == 0 || self.version() == Version::V2_0 {
            return found;
        }
        let lost = self.index.lost();
        let is_lost = |offset| {
            let place = lost.partition_point(|range| range.end <= offset);
            lost.get(place).is_some_and(|range| range.start <= offset)
        };
        let others: Vec<_> = self.full_cursor().filter(|record| record.message.is_none()).collect();
        // Offsets of all definitions in ascending order. Looking up an offset in this list is
        // faster than reading a record for each index entry.
        let is_definition = |record: &Record<'_>| matches!(record.header, Header::Definition(_));
        let definitions =
            others.iter().filter(|other| self.wire_record(other).as_ref().is_some_and(is_definition));
        let definitions: Vec<u64> = definitions.map(|record| record.at).collect();
        for record in &others {
            let Some(Record { header: Header::Index(index), data }) = self.wire_record(record) else {
                continue;
            };
            let section = self.sections().iter().rfind(|section| section.offset <= record.at);
            let base = section.map_or(0, |section| section.offset);
            let topic = Arc::from(index.topic);
            for entry in IndexEntry::all_of(data).iter().take(index.count.get() as usize) {
                // Positions in the index are relative to the start of the section, that is, of the
                // bag within the file.
                let mut offset = base.saturating_add(entry.pos.get());
                if is_lost(offset) || definitions.binary_search(&offset).is_ok() {
                    offset = self.end_of_definition(offset).unwrap_or(offset);
                }
                if is_lost(offset) {
                    let nanos = nanos(entry.sec.get(), entry.nsec.get());
                    found.push(LostMessage { topic: Arc::clone(&topic), nanos, offset });
                }
            }
        }
        found.sort_by_key(|message| message.offset);
        found
    }

    /// If a definition record is at `offset`, returns the offset of its end.
    fn end_of_definition(&self, offset: u64) -> Option<u64> {
        let head = RecordHead::read(self.bytes.get(usize::try_from(offset).ok()?..)?)?;
        let (header, _) = Header::interpret(&Fields::read(head.header)?)?;
        matches!(header, Header::Definition(_)).then_some(offset + head.size() as u64)
    }

    /// Returns whether every topic in the index has messages, and the first index entry of every
    /// topic refers to the definition of the topic. A recorder whose disk was full may leave a bag
    /// without these properties, and the reference readers refuse such a bag.
    fn is_indexed_as_recorded(&self) -> bool {
        self.full_cursor().filter(|record| record.message.is_none()).all(|record| {
            let Some(Record { header: Header::Index(_), data }) = self.wire_record(&record) else {
                return true;
            };
            let first = IndexEntry::all_of(data).first();
            first.is_some_and(|entry| self.end_of_definition(entry.pos.get()).is_some())
        })
    }

    /// Returns whether the bag has the form in which a recorder leaves it. Such a bag is closed,
    /// has no losses, and has an index that lists all messages.
    pub fn is_intact(&self) -> bool {
        if self.version() == Version::V2_0 {
            return self.scanned().as_deref().unwrap_or(self).is_closed();
        }
        let wrong =
            [&rules::OP_DAMAGED, &rules::INDEX_POS_WRONG, &rules::RAW_PADDING, &rules::TEXT_MODE_COPY];
        self.version() == Version::V1_2
            && self.is_as_recorded("#ROSRECORD V1.2", &wrong)
            && self.is_indexed_as_recorded()
    }

    /// Returns whether the bag has this version line, one section with a right index, no losses, and
    /// no diagnostics of the rules `wrong`.
    pub(super) fn is_as_recorded(&self, line: &str, wrong: &[&Rule]) -> bool {
        let counts = self.diagnostics().counts();
        self.info().lost.losses == 0
            && self.scanner.line.text == line
            && !self.scanner.line.crlf
            && wrong.iter().all(|rule| !counts.contains_key(rule.code))
            && matches!(self.sections(), [section]
                if matches!(section.index, IndexState::Exact | IndexState::Empty) && section.index_pos.is_some())
    }

    /// Writes all valid messages to a new bag with an index. The reference readers accept the new
    /// bag.
    ///
    /// A V2.0 bag is written as V2.0, and any other bag is written as V1.2. Records are copied byte
    /// for byte, and each topic gets a definition before its first message. An intact V1.2 bag does
    /// not change.
    ///
    /// # Errors
    /// Returns an error if the output returns an error.
    pub fn reindex(&self, out: &mut dyn Write) -> Result<u64, BagError> {
        if self.version() == Version::V2_0 {
            return Ok(self.reindex_chunked(out)?.bytes);
        }
        self.rewritten().write(out)
    }

    fn rewritten(&self) -> Output<'_> {
        let mut output = Output::new(&[self]);
        for record in self.full_cursor() {
            match &record.message {
                Some(message) => output.message(0, message),
                None => output.other(0, &record),
            }
        }
        output
    }

    /// Returns the kind of every byte in the bag as a detail for JSON output.
    pub(super) fn ledger_detail(&self) -> Detail {
        let word = |part: Part| match part {
            Part::Records => "records",
            Part::Frame => "frame",
            Part::Lost => "lost",
            Part::Tail => "tail",
        };
        let ledger = self.ledger().into_iter().map(|(part, range)| {
            [Value::Text(word(part).to_owned()), Value::count(range.start), Value::count(range.end)]
        });
        Detail::hidden("ledger", Value::table(["part", "start", "end"], ledger))
    }
}
