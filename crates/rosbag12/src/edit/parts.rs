//! Slices and merges V1.2 bags. Records are copied byte for byte.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io::Write;

use rovelog_core::internal::text::count;
use rovelog_core::{Align, Clock, LogReader, Merged, Select, Sliced, Topic};

use super::output::Output;
use super::{chunked, clock_detail, latched_detail};
use crate::error::BagError;
use crate::index::RecordRef;
use crate::message::MessageRef;
use crate::reader::BagReader;
use crate::tables::Connection;
use crate::version::Version;
use crate::wire::Header;

/// Writes the selected part of a bag.
///
/// # Errors
/// Returns an error if the output returns an error.
pub(crate) fn slice(bag: &BagReader, select: &Select, out: &mut dyn Write) -> Result<Sliced, BagError> {
    if bag.version() == Version::V2_0 {
        return chunked::slice(bag, select, out);
    }
    let kept: Vec<bool> = bag.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
    let (before, latched) = before_window(bag, select);
    let mut output = Output::new(&[bag]);
    for record in bag.full_cursor() {
        let Some(message) = &record.message else {
            keep_other(bag, &mut output, &record, &kept);
            continue;
        };
        let is_wanted = select.keeps_time(message.time()) || before.contains(&record.at);
        if kept[message.connection as usize] && is_wanted {
            output.message(0, message);
        }
    }
    let (records, topics) = (output.records, output.topics());
    let bytes = output.write(out)?;
    let details = latched_detail(latched).into_iter().chain(clock_detail(bag)).collect();
    Ok(Sliced { records, topics, bytes, details, ..Sliced::default() })
}

/// Returns the offsets of the messages before the selected time window that are kept. Also returns
/// the number of messages that are kept only because their publisher is latching, that is, because
/// the publisher sends its last message to every new subscriber.
fn before_window(bag: &BagReader, select: &Select) -> (HashSet<u64>, u64) {
    let Some(start) = select.start else { return (HashSet::new(), 0) };
    let topics = || bag.topics().iter().zip(bag.connections());
    let wanted: Vec<bool> = topics().map(|(topic, _)| select.keeps_last_before(topic)).collect();
    let is_latched = |(topic, connection): (&Topic, &Connection)| {
        select.latched && select.keeps_topic(topic) && connection.latched() > 0
    };
    let may_latch: Vec<bool> = topics().map(is_latched).collect();
    if !wanted.contains(&true) && !may_latch.contains(&true) {
        return (HashSet::new(), 0);
    }
    // Time and offset of the last message before the window, for each topic and for each latching
    // publisher.
    let mut of_topics: HashMap<u32, (i64, u64)> = HashMap::new();
    let mut of_publishers: HashMap<(u32, Option<String>), (i64, u64)> = HashMap::new();
    bag.full_cursor().messages(u64::MAX, |message| {
        let MessageRef { connection, at, .. } = message;
        let position = (message.time(), at);
        if message.time() >= start {
            return;
        }
        if wanted[connection as usize] {
            let last = of_topics.entry(connection).or_insert(position);
            *last = position.max(*last);
        }
        if may_latch[connection as usize]
            && let Some(publisher) = bag.publisher_at(at).filter(|publisher| publisher.latching)
        {
            let last = of_publishers.entry((connection, publisher.callerid)).or_insert(position);
            *last = position.max(*last);
        }
    });
    let mut before: HashSet<u64> = of_topics.into_values().map(|(_, at)| at).collect();
    let of_topics_count = before.len();
    before.extend(of_publishers.into_values().map(|(_, at)| at));
    let latched = (before.len() - of_topics_count) as u64;
    (before, latched)
}

/// Adds a record that is not a message. Only records of undefined op (record type) and definitions
/// of kept topics are added.
fn keep_other(bag: &BagReader, output: &mut Output<'_>, record: &RecordRef, kept: &[bool]) {
    let is_wanted = match bag.wire_record(record).map(|record| record.header) {
        Some(Header::Definition(definition)) => {
            let number = bag.scanner.tables.number(definition.topic, definition.ty, definition.md5);
            number.is_none_or(|number| kept[number as usize])
        }
        _ => true,
    };
    if is_wanted {
        output.other(0, record);
    }
}

/// Writes one bag that contains the messages of all `logs` in time order.
pub(crate) fn merge(logs: &[&BagReader], align: Align, out: &mut dyn Write) -> Result<Merged, BagError> {
    if logs.iter().any(|log| log.version() == Version::V2_0) {
        return chunked::merge(logs, out);
    }
    let relative = logs.iter().filter(|log| log.scanner.tables.clock != Clock::Unix).count();
    if relative > 0 && align != Align::AsIs {
        return Err(BagError::Clocks(
            "bags older than V1.1 cannot be aligned, because their times count from the start of the \
             recording",
        ));
    }
    // The heap contains the next message of each source bag.
    let mut orders: Vec<_> = logs.iter().map(|log| log.places(&Select::all())).collect();
    let mut heap = BinaryHeap::new();
    for (source, order) in orders.iter_mut().enumerate() {
        heap.extend(order.next().map(|place| Reverse((place.time, source, place.offset))));
    }
    let mut output = Output::new(logs);
    while let Some(Reverse((_, source, offset))) = heap.pop() {
        let next = orders[source].next();
        heap.extend(next.map(|place| Reverse((place.time, source, place.offset))));
        output.message(source, &logs[source].message_at(offset)?);
    }
    output.rest();
    let ops = (0..=255u8).filter(|op| !Header::OPS.contains(op));
    let unknown: u64 = ops.flat_map(|op| logs.iter().map(move |log| log.records_of(op))).sum();
    let (records, topics) = (output.records, output.topics());
    let bytes = output.write(out)?;
    let left_out = (unknown > 0).then(|| format!("{} of an unknown kind", count(unknown, "record")));
    let left_out = left_out.into_iter().collect();
    Ok(Merged { records, topics, bytes, left_out, ..Merged::default() })
}
