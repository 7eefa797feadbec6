//! Recovery: the best valid log that a damaged one still holds.
//!
//! [`UlogReader`] already finds every valid message of a damaged log. [`recover`] writes them out
//! as a log that any reader can take, and accounts for every byte that it leaves out.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::ops::Range;

use rovelog_core::ranges::{self, total};
use rovelog_core::splice::Splice;
use rovelog_core::{Detail, LogReader, ReadOptions, RecoverOptions, Recovery, Segment, Value};
use zerocopy::IntoBytes;

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::reader::UlogReader;
use crate::scan::FLAGS_LEN;
use crate::schema::FormatText;
use crate::stream::UlogStream;
use crate::wire::{self, FLAG_BITS_AT, FlagBits, HEADER_LEN, Message, Subscription, kind};

/// Which bytes of a log to keep: ascending ranges behind the header, neighbours joined.
#[derive(Default)]
struct Plan {
    kept: Vec<Range<u64>>,
    lost: Vec<Range<u64>>,
    stale: Vec<Range<u64>>,
}

impl Plan {
    /// Moves `gone`, ascending parts of what is kept, to what is lost.
    fn lose(&mut self, gone: Vec<Range<u64>>) {
        self.kept = subtract(&self.kept, &gone);
        let mut lost = std::mem::take(&mut self.lost);
        lost.extend(gone);
        self.lost = ranges::joined(lost);
    }
}

/// Takes `gone`, ascending parts of `from`, out of it.
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

/// Writes the best valid log that `log` still holds.
///
/// Every valid message is kept byte for byte and in order. Left out are damaged bytes, and rows
/// that no reader can decode because their subscription or format is missing, with subscriptions to
/// such formats. In a log with damage, appended data becomes ordinary data where it is, and the
/// flag and offsets that announced it are cleared, because what is before it may have moved. Headers
/// of further logs in the file stay where they are, because the clock changes there. A
/// valid log is copied as it is, and so is one whose only flaw is that it was cut before data was
/// appended: that is what offsets of appended data are for. To recover a recovered log changes
/// nothing.
///
/// # Errors
/// Returns an error if the output refuses.
pub(crate) fn recover(
    log: &UlogReader,
    mut out: impl Write,
    options: &RecoverOptions,
) -> Result<Recovery, UlogError> {
    let segments = log.segments();
    let stale: &[Segment] = if options.drop_stale { &segments } else { &[] };
    let mut plan = plan(log, stale);
    let flags_agree = log.diagnostics().list().iter().all(|note| {
        note.rule != &rules::APPENDED_FLAG_MISMATCH && note.rule != &rules::APPENDED_OFFSET_IGNORED
    });
    let unchanged = plan.lost == log.cut_before_appended()
        && plan.stale.is_empty()
        && flags_agree
        && log.scanner().is_intact;
    if unchanged {
        let len = log.bytes().len() as u64;
        plan = Plan::default();
        ranges::push(&mut plan.kept, log.first()..len);
    } else {
        plan.lose(unusable(log, &plan.kept));
        settle(log, &mut plan)?;
    }
    let merged_sections = if unchanged { 0 } else { log.appended_offsets().len() as u64 };

    let (mut records, mut stale_records, mut messages) = (0, 0, BTreeMap::<u8, u64>::new());
    let (mut kept, mut dropped) = (Inside::of(&plan.kept), Inside::of(&plan.stale));
    for met in log.cursor() {
        if kept.has(met.at) {
            *messages.entry(met.msg_type).or_default() += 1;
            records += u64::from(met.row.is_some());
        } else if dropped.has(met.at) {
            stale_records += u64::from(met.row.is_some());
        }
    }
    copy(log, &plan.kept, unchanged).write(&mut out)?;
    out.flush()?;
    let letter = |(letter, count): (u8, u64)| (letter.escape_ascii().to_string(), Value::count(count));
    Ok(Recovery {
        records,
        kept_bytes: log.first() - log.scanner().header_at + total(&plan.kept),
        lost: plan.lost,
        stale_bytes: total(&plan.stale),
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

/// Returns what to keep, as far as the log itself tells.
fn plan(log: &UlogReader, segments: &[Segment]) -> Plan {
    let mut plan = Plan::default();
    if log.scanner().header_at > 0 {
        plan.lost.push(0..log.scanner().header_at);
    }
    let mut at = log.first();
    let mut known = Known::default();
    let mut segments = segments.iter().peekable();
    let headers = log.boundaries().iter().filter(|boundary| boundary.has_header);
    let mut headers = headers.map(|boundary| boundary.at..boundary.first()).peekable();
    for met in log.cursor() {
        let end = met.end();
        while segments.next_if(|segment| segment.range.end <= met.at).is_some() {}
        let stale = segments.peek().is_some_and(|segment| !segment.in_time_order);
        while let Some(header) = headers.next_if(|header| header.end <= met.at) {
            if at < header.start {
                ranges::push(&mut plan.lost, at..header.start);
            }
            at = header.end;
            ranges::push(&mut plan.kept, header);
        }
        if at < met.at {
            ranges::push(&mut plan.lost, at..met.at);
        }
        at = end;
        // Only what changes tables need be looked at.
        let new = matches!(met.msg_type, kind::FORMAT | kind::SUBSCRIPTION)
            && met.message().is_some_and(|message| known.is_new(&message));
        let to = if met.msg_type == kind::DATA && met.row.is_none() {
            &mut plan.lost
        } else if stale && !new {
            &mut plan.stale
        } else {
            &mut plan.kept
        };
        ranges::push(to, met.at..end);
    }
    for header in headers {
        if at < header.start {
            ranges::push(&mut plan.lost, at..header.start);
        }
        at = header.end;
        ranges::push(&mut plan.kept, header);
    }
    let len = log.bytes().len() as u64;
    if at < len {
        ranges::push(&mut plan.lost, at..len);
    }
    plan
}

/// Returns the recovered log: the header, the flag bits with no data appended unless it is
/// unchanged, and what is kept.
fn copy<'a>(log: &'a UlogReader, kept: &[Range<u64>], unchanged: bool) -> Splice<'a> {
    let mut copy = Splice::new([&**log.bytes()]);
    copy.make(log.header().as_bytes());
    let first = log.first();
    let mut from = first;
    if let Some(flags) = log.flag_bits().filter(|_| !unchanged)
        && kept.first().is_some_and(|range| range.start == first)
    {
        copy.copy(0, first..first + HEADER_LEN);
        copy.make(flags.merged().as_bytes());
        // What was made replaces as many bytes of the file.
        from += FLAGS_LEN;
    }
    let later = if unchanged { Vec::new() } else { later_flags(log) };
    let mut later = later.iter().peekable();
    for range in kept {
        let mut at = range.start.max(from);
        while let Some((place, flags)) = later.next_if(|(place, _)| *place < range.end) {
            if *place < at {
                // Their message is lost.
                continue;
            }
            copy.copy(0, at..*place);
            copy.make(flags.as_bytes());
            at = place + size_of::<FlagBits>() as u64;
        }
        copy.copy(0, at..range.end);
    }
    copy
}

/// Returns the flag bits of further logs in the file, with no data appended, and their offsets: those
/// of the flags behind the header of the message.
fn later_flags(log: &UlogReader) -> Vec<(u64, FlagBits)> {
    let flags = log.messages().filter(|(at, _)| *at != log.first());
    let flags = flags.filter_map(|(at, message)| match message {
        Message::FlagBits(message) => Some((at + HEADER_LEN, message.flags.merged())),
        _ => None,
    });
    if log.boundaries().is_empty() { Vec::new() } else { flags.collect() }
}

/// Definitions met, to tell new ones in stale segments.
#[derive(Default)]
struct Known<'a> {
    formats: HashSet<&'a str>,
    ids: HashSet<u16>,
    topics: HashSet<(&'a [u8], u8)>,
}

impl<'a> Known<'a> {
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

/// Subscriptions that none of the log's formats fits: "Must match one of the `message_format_s`
/// definitions". Their rows are lost anyway, and strict readers stumble over them.
fn unusable(log: &UlogReader, kept: &[Range<u64>]) -> Vec<Range<u64>> {
    let (definitions, mut usable) = (log.definitions(), HashSet::new());
    for (subscription, topic) in definitions.subscriptions().iter().zip(log.topics()) {
        if subscription.layout.is_ok() {
            usable.insert((subscription.multi_id, subscription.msg_id, topic.type_name.as_str()));
        }
    }
    let mut gone = Vec::new();
    let mut kept = Inside::of(kept);
    for met in log.cursor().filter(|met| met.msg_type == kind::SUBSCRIPTION) {
        if let Some(Message::Subscription(to)) = met.message()
            && to.name().is_none_or(|name| !usable.contains(&(to.multi_id, to.msg_id, name)))
            && kept.has(met.at)
        {
            ranges::push(&mut gone, met.at..met.end());
        }
    }
    gone
}

/// Scans the copy until it is valid: something of which nothing can be said but that valid messages
/// follow is no longer valid where these followed only in another section.
fn settle(log: &UlogReader, plan: &mut Plan) -> Result<(), UlogError> {
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

/// Scans the copy before everything goes that can be the reason for another one. Real logs take one
/// or two; a hostile one could ask for as many as it has messages.
const PASSES: usize = 8;

/// Takes out unknown messages, and subscriptions whose format is not defined before them.
fn drop_unverifiable(log: &UlogReader, plan: &mut Plan) {
    let (mut known, mut gone) = (Known::default(), Vec::new());
    let mut kept = Inside::of(&plan.kept);
    for met in log.cursor() {
        if met.msg_type == kind::DATA || !kept.has(met.at) {
            continue;
        }
        let unverifiable = match met.message() {
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
            ranges::push(&mut gone, met.at..met.end());
        }
    }
    plan.lose(gone);
}

/// Returns ranges of the copy that keeps `kept` behind its header, as ranges of the source.
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

/// Whether ascending offsets lie in ascending ranges.
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
    fn ranges_are_taken_out_of_ranges() {
        let from = [10..20, 30..40, 50..60];
        assert_eq!(subtract(&from, &[12..14, 18..20, 30..40, 59..60]), [10..12, 14..18, 50..59]);
        assert_eq!(subtract(&from, &[]), from);
    }

    #[test]
    fn losses_of_a_copy_are_found_in_its_source() {
        // The copy: 16..26 is 20..30, 26..36 is 40..50.
        let kept = [20..30, 40..50];
        assert_eq!(in_source(&[17..18, 25..27, 36..36], &kept), [21..22, 29..30, 40..41]);
        assert_eq!(in_source(&[24..26, 30..36], &kept), [28..30, 44..50]);
    }

    /// What cannot be validated goes at last, and what is left is valid.
    #[test]
    fn unverifiable_messages_go_when_scanning_does_not_end() -> Result<(), UlogError> {
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
        assert_eq!((total(&plan.lost), plan.lost.len()), (10 * (10 + 11), 10));
        settle(&log, &mut plan)?;
        assert_eq!(total(&plan.lost), 10 * (10 + 11));
        Ok(())
    }

    /// A format that is not kept defines nothing.
    #[test]
    fn subscriptions_go_with_their_format() -> Result<(), UlogError> {
        let mut log = UlogWriter::new(Vec::new(), 0)?;
        log.define(&FormatBuilder::new("t").field::<u64>("timestamp"))?;
        log.subscribe("t", 0)?;
        let log = UlogReader::new(log.finish()?.into(), &ReadOptions::default())?;
        let mut plan = plan(&log, &[]);
        let format = log.cursor().find(|met| met.msg_type == kind::FORMAT).expect("it is defined");
        plan.lose(std::iter::once(format.at..format.end()).collect());
        drop_unverifiable(&log, &mut plan);
        assert!(
            log.cursor().all(|met| met.msg_type != kind::SUBSCRIPTION || !Inside::of(&plan.kept).has(met.at))
        );
        Ok(())
    }
}
