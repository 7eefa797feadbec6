//! Recovery of damaged logs.
//!
//! [`UlogReader`] finds every valid message of a damaged log. [`recover`] writes these messages to
//! a log that any reader accepts, and reports all bytes that it leaves out.
//!
//! # Example
//!
//! A log of 1000 bytes has an unknown message in 600..620, damage in 620..700 and valid rows after
//! that. The first version of the plan keeps 16..620 and 700..1000. The copy is then scanned,
//! because messages that were separated by damage are now adjacent. If a reader of the copy rejects
//! the unknown message, its bytes are mapped back to 600..620 and removed from the plan. Then the
//! new copy is scanned, until no reader would report damage.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::ops::Range;

use rovelog_core::internal::ranges::{self, total_len};
use rovelog_core::internal::splice::Splice;
use rovelog_core::{Detail, LogReader, ReadOptions, RecoverOptions, Recovery, Segment, Value};
use zerocopy::IntoBytes;

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::flags::FLAGS_LEN;
use crate::reader::UlogReader;
use crate::schema::FormatText;
use crate::stream::UlogStream;
use crate::wire::{self, FLAG_BITS_AT, FlagBits, HEADER_LEN, Message, Subscription, kind};

/// Division of the bytes after the header of a log into three lists of byte ranges. Each list is in
/// ascending order, and adjacent ranges are joined.
#[derive(Default)]
struct Plan {
    /// Byte ranges that are copied to the recovered log.
    kept: Vec<Range<u64>>,
    /// Byte ranges with damage, which are not copied.
    lost: Vec<Range<u64>>,
    /// Byte ranges with valid messages from another time, which the user does not want to keep.
    stale: Vec<Range<u64>>,
}

impl Plan {
    /// Moves the ranges in `gone` from `kept` to `lost`. `gone` must be in ascending order.
    fn lose(&mut self, gone: Vec<Range<u64>>) {
        self.kept = subtract(&self.kept, &gone);
        let mut lost = std::mem::take(&mut self.lost);
        lost.extend(gone);
        self.lost = ranges::joined(lost);
    }
}

/// Returns the ranges in `from` without the bytes in `gone`. Both lists must be in ascending order.
fn subtract(from: &[Range<u64>], gone: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut gone = gone.iter().peekable();
    for range in from {
        let mut at = range.start;
        while let Some(hole) = gone.next_if(|hole| hole.start < range.end) {
            if at < hole.start {
                ranges::push(&mut left, at..hole.start);
            }
            at = hole.end;
        }
        if at < range.end {
            ranges::push(&mut left, at..range.end);
        }
    }
    left
}

/// Writes all valid messages of `log` to a new log.
///
/// - Valid messages are copied without changes and in file order.
/// - Damaged bytes are not copied. Rows that cannot be decoded because their subscription or format
///   is missing are not copied either, nor are subscriptions to missing formats.
/// - If the log is damaged, appended data becomes ordinary data. The flag and the offsets of
///   appended data are cleared, because the offsets may have changed.
/// - If the file contains several logs, all headers are copied, because each header starts another
///   clock.
/// - A valid log is copied without any change. This includes a log that was cut before data was
///   appended, because offsets of appended data exist "to reliably append data for logs that may
///   stop in the middle of a message".
///
/// Recovering a recovered log does not change it.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub(crate) fn recover(
    log: &UlogReader,
    mut out: impl Write,
    options: &RecoverOptions,
) -> Result<Recovery, UlogError> {
    let segments = log.segments();
    let stale: &[Segment] = if options.drop_stale { &segments } else { &[] };
    let mut plan = plan(log, stale);
    // A wrong offset of appended data would also be reported for an identical copy. So the flag
    // bits of such a log are replaced.
    let flags_agree = log.diagnostics().list().iter().all(|note| {
        note.rule != &rules::APPENDED_FLAG_MISMATCH && note.rule != &rules::APPENDED_OFFSET_IGNORED
    });
    let unchanged = plan.lost == log.cut_before_appended()
        && plan.stale.is_empty()
        && flags_agree
        && log.scanner().start.damage.is_none();
    if unchanged {
        let len = log.bytes().len() as u64;
        plan = Plan::default();
        ranges::push(&mut plan.kept, log.first()..len);
    } else {
        plan.lose(unusable(log, &plan.kept));
        remove_until_valid(log, &mut plan)?;
    }
    let merged_sections = if unchanged { 0 } else { log.appended_offsets().len() as u64 };

    let (mut records, mut stale_records, mut messages) = (0, 0, BTreeMap::<u8, u64>::new());
    let (mut kept, mut dropped) = (Inside::of(&plan.kept), Inside::of(&plan.stale));
    for msg in log.cursor() {
        if kept.has(msg.at) {
            *messages.entry(msg.msg_type).or_default() += 1;
            records += u64::from(msg.row.is_some());
        } else if dropped.has(msg.at) {
            stale_records += u64::from(msg.row.is_some());
        }
    }
    copy(log, &plan.kept, unchanged).write(&mut out)?;
    out.flush()?;
    let letter = |(letter, count): (u8, u64)| (letter.escape_ascii().to_string(), Value::count(count));
    Ok(Recovery {
        records,
        kept_bytes: log.first() - log.scanner().start.at + total_len(&plan.kept),
        lost: plan.lost,
        stale_bytes: total_len(&plan.stale),
        stale_records,
        segments,
        unchanged,
        details: vec![
            Detail::hidden("merged_sections", Value::UInt(merged_sections, 32)),
            Detail::hidden("messages", Value::record(messages.into_iter().map(letter))),
        ],
        ..Recovery::default()
    })
}

/// Returns the first version of the plan, which keeps all messages that are valid in the original
/// log. `segments` are the segments of the log that may contain stale rows.
fn plan(log: &UlogReader, segments: &[Segment]) -> Plan {
    let mut plan = Plan::default();
    if log.scanner().start.at > 0 {
        plan.lost.push(0..log.scanner().start.at);
    }
    let mut at = log.first();
    let mut known = SeenDefinitions::default();
    let mut segments = segments.iter().peekable();
    let headers = log.boundaries().iter().filter(|boundary| boundary.has_header);
    let mut headers = headers.map(|boundary| boundary.at..boundary.first()).peekable();
    let len = log.bytes().len() as u64;
    // `None` stands for the end of the log.
    for msg in log.cursor().map(Some).chain([None]) {
        let next = msg.as_ref().map_or(len, |msg| msg.at);
        while let Some(header) = headers.next_if(|header| header.end <= next) {
            if at < header.start {
                ranges::push(&mut plan.lost, at..header.start);
            }
            at = header.end;
            ranges::push(&mut plan.kept, header);
        }
        if at < next {
            ranges::push(&mut plan.lost, at..next);
        }
        let Some(msg) = msg else { break };
        at = msg.end();
        while segments.next_if(|segment| segment.range.end <= msg.at).is_some() {}
        let stale = segments.peek().is_some_and(|segment| !segment.in_time_order);
        // A stale segment may contain the only copy of a definition that later rows need. Only
        // formats and subscriptions are parsed, because parsing all messages would be slow.
        let new = matches!(msg.msg_type, kind::FORMAT | kind::SUBSCRIPTION)
            && msg.message().is_some_and(|message| known.is_new(&message));
        // The cursor also returns rows without a usable subscription. No reader can decode such
        // rows, so they are lost.
        let to = if msg.msg_type == kind::DATA && msg.row.is_none() {
            &mut plan.lost
        } else if stale && !new {
            &mut plan.stale
        } else {
            &mut plan.kept
        };
        ranges::push(to, msg.at..at);
    }
    plan
}

/// Returns the recovered log, which consists of the header and the `kept` ranges of the original.
/// Unless the log is `unchanged`, its flag bits are replaced by flag bits without appended data.
fn copy<'a>(log: &'a UlogReader, kept: &[Range<u64>], unchanged: bool) -> Splice<'a> {
    let mut copy = Splice::new([&**log.bytes()]);
    copy.append(log.header().as_bytes());
    let first = log.first();
    let mut from = first;
    if let Some(flags) = log.flag_bits().filter(|_| !unchanged)
        && kept.first().is_some_and(|range| range.start == first)
    {
        copy.copy(0, first..first + HEADER_LEN);
        copy.append(flags.merged().as_bytes());
        // The new flags replace the same number of bytes of the original log.
        from += FLAGS_LEN;
    }
    let later = if unchanged { Vec::new() } else { later_flags(log) };
    let mut later = later.iter().peekable();
    for range in kept {
        let mut at = range.start.max(from);
        while let Some((place, flags)) = later.next_if(|(place, _)| *place < range.end) {
            if *place < at {
                // The message with these flags is not copied.
                continue;
            }
            copy.copy(0, at..*place);
            copy.append(flags.as_bytes());
            at = place + size_of::<FlagBits>() as u64;
        }
        copy.copy(0, at..range.end);
    }
    copy
}

/// For each log in the file after the first, returns the flag bits without appended data, and the
/// offset of the payload that contains them.
fn later_flags(log: &UlogReader) -> Vec<(u64, FlagBits)> {
    let flags = log.messages().filter(|(at, _)| *at != log.first());
    let flags = flags.filter_map(|(at, message)| match message {
        Message::FlagBits(message) => Some((at + HEADER_LEN, message.flags.merged())),
        _ => None,
    });
    if log.boundaries().is_empty() { Vec::new() } else { flags.collect() }
}

/// Formats and subscriptions found so far.
#[derive(Default)]
struct SeenDefinitions<'a> {
    /// Names of the formats found so far.
    formats: HashSet<&'a str>,
    /// Message ids of the subscriptions found so far.
    ids: HashSet<u16>,
    /// Names and instances of the topics subscribed so far.
    topics: HashSet<(&'a [u8], u8)>,
}

impl<'a> SeenDefinitions<'a> {
    /// Adds a definition. Returns `true` for a format if its name is new. Returns `true` for a
    /// subscription if both its id and its topic are new.
    fn is_new(&mut self, message: &Message<'a>) -> bool {
        match *message {
            Message::Format(wire::Format { format: text }) => {
                FormatText::parse(text).is_some_and(|format| self.formats.insert(format.name))
            }
            Message::Subscription(Subscription { multi_id, msg_id, message_name }) => {
                let id = self.ids.insert(msg_id);
                self.topics.insert((message_name, multi_id)) && id
            }
            _ => false,
        }
    }
}

/// Returns the byte ranges of subscriptions without a usable format. According to the
/// specification, the name of a subscription "must match one of the `message_format_s`
/// definitions", so strict readers reject such subscriptions. Their rows are lost anyway.
fn unusable(log: &UlogReader, kept: &[Range<u64>]) -> Vec<Range<u64>> {
    let (definitions, mut usable) = (log.definitions(), HashSet::new());
    for (subscription, topic) in definitions.subscriptions().iter().zip(log.topics()) {
        if subscription.layout.is_ok() {
            usable.insert((subscription.multi_id, subscription.msg_id, topic.type_name.as_str()));
        }
    }
    let mut gone = Vec::new();
    let mut kept = Inside::of(kept);
    for msg in log.cursor().filter(|msg| msg.msg_type == kind::SUBSCRIPTION) {
        if let Some(Message::Subscription(to)) = msg.message()
            && to.name().is_none_or(|name| !usable.contains(&(to.multi_id, to.msg_id, name)))
            && kept.has(msg.at)
        {
            ranges::push(&mut gone, msg.at..msg.end());
        }
    }
    gone
}

/// Removes messages from the plan until a scan of the recovered log finds no damage.
///
/// An unverifiable message is valid only if verifiable messages follow. In the copy, these messages
/// may be missing or preceded by other messages. The unverifiable message is then no longer valid.
fn remove_until_valid(log: &UlogReader, plan: &mut Plan) -> Result<(), UlogError> {
    for pass in 0.. {
        if pass == PASSES {
            drop_unverifiable(log, plan);
        }
        let copy = copy(log, &plan.kept, false);
        let losses = UlogStream::new(copy.reader(), &ReadOptions::default())?.losses()?;
        if losses.is_empty() {
            break;
        }
        let gone = in_source(&losses, &plan.kept);
        plan.lose(gone);
    }
    Ok(())
}

/// Maximum number of scans of the copy before all unverifiable messages are removed. Real logs need
/// one or two scans. A hostile log could need as many scans as it has messages.
const PASSES: usize = 8;

/// Removes unknown messages, and subscriptions whose format is not defined before them.
fn drop_unverifiable(log: &UlogReader, plan: &mut Plan) {
    let (mut known, mut gone) = (SeenDefinitions::default(), Vec::new());
    let mut kept = Inside::of(&plan.kept);
    for msg in log.cursor() {
        if msg.msg_type == kind::DATA || !kept.has(msg.at) {
            continue;
        }
        let unverifiable = match msg.message() {
            Some(Message::Subscription(subscription)) => {
                subscription.name().is_none_or(|name| !known.formats.contains(name))
            }
            Some(Message::Unknown { .. }) => true,
            Some(message) => {
                known.is_new(&message);
                false
            }
            None => false,
        };
        if unverifiable {
            ranges::push(&mut gone, msg.at..msg.end());
        }
    }
    plan.lose(gone);
}

/// Converts byte ranges of the recovered log to byte ranges of the original log. The recovered log
/// consists of a header and the `kept` ranges of the original.
fn in_source(losses: &[Range<u64>], kept: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut losses = losses.iter().peekable();
    let mut base = FLAG_BITS_AT;
    for range in kept {
        let end = base + (range.end - range.start);
        while let Some(loss) = losses.peek().filter(|loss| loss.start < end) {
            let source = |at: u64| range.start + (at.clamp(base, end) - base);
            ranges::push(&mut found, source(loss.start)..source(loss.end));
            if loss.end > end {
                break;
            }
            losses.next();
        }
        base = end;
    }
    found
}

/// Tests whether offsets are inside of byte ranges. The offsets and the ranges must be in ascending
/// order. All tests together then visit each range only once.
struct Inside<'a> {
    ranges: std::iter::Peekable<std::slice::Iter<'a, Range<u64>>>,
}

impl<'a> Inside<'a> {
    fn of(ranges: &'a [Range<u64>]) -> Self {
        Self { ranges: ranges.iter().peekable() }
    }

    fn has(&mut self, at: u64) -> bool {
        while self.ranges.next_if(|range| range.end <= at).is_some() {}
        self.ranges.peek().is_some_and(|range| range.start <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormatBuilder, UlogWriter};

    #[test]
    fn ranges_are_subtracted_from_ranges() {
        let from = [10..20, 30..40, 50..60];
        assert_eq!(subtract(&from, &[12..14, 18..20, 30..40, 59..60]), [10..12, 14..18, 50..59]);
        assert_eq!(subtract(&from, &[]), from);
    }

    #[test]
    fn losses_of_a_copy_are_mapped_to_its_source() {
        // Bytes 16..26 of the copy come from bytes 20..30 of the source, and bytes 26..36 from
        // bytes 40..50.
        let kept = [20..30, 40..50];
        assert_eq!(in_source(&[17..18, 25..27, 36..36], &kept), [21..22, 29..30, 40..41]);
        assert_eq!(in_source(&[24..26, 30..36], &kept), [28..30, 44..50]);
    }

    /// After the last scan of the copy, all unverifiable messages are removed, and the rest of the
    /// log is valid.
    #[test]
    fn unverifiable_messages_are_removed_if_scanning_does_not_end() -> Result<(), UlogError> {
        let mut log = UlogWriter::new(Vec::new(), 0)?;
        log.define(&FormatBuilder::new("t").field::<u64>("timestamp"))?;
        let t = log.subscribe("t", 0)?;
        for i in 0..10u64 {
            log.write_raw(b'Z', b"unknown")?;
            log.write_raw(b'A', b"\0\x07\0later")?;
            log.write_row_bytes(t, &i.to_le_bytes())?;
        }
        let log = UlogReader::new(log.finish()?.into(), &ReadOptions::default())?;
        let mut plan = plan(&log, &[]);
        drop_unverifiable(&log, &mut plan);
        assert_eq!((total_len(&plan.lost), plan.lost.len()), (10 * (10 + 11), 10));
        remove_until_valid(&log, &mut plan)?;
        assert_eq!(total_len(&plan.lost), 10 * (10 + 11));
        Ok(())
    }

    /// A format that is not copied does not define anything in the copy, so the subscription to it
    /// is unverifiable.
    #[test]
    fn subscriptions_are_removed_with_their_format() -> Result<(), UlogError> {
        let mut log = UlogWriter::new(Vec::new(), 0)?;
        log.define(&FormatBuilder::new("t").field::<u64>("timestamp"))?;
        log.subscribe("t", 0)?;
        let log = UlogReader::new(log.finish()?.into(), &ReadOptions::default())?;
        let mut plan = plan(&log, &[]);
        let format = log.cursor().find(|msg| msg.msg_type == kind::FORMAT).expect("it is defined");
        plan.lose(std::iter::once(format.at..format.end()).collect());
        drop_unverifiable(&log, &mut plan);
        assert!(
            log.cursor().all(|msg| msg.msg_type != kind::SUBSCRIPTION || !Inside::of(&plan.kept).has(msg.at))
        );
        Ok(())
    }
}
