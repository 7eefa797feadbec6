//! Parts of a bag as bags of their own, and several bags as one. Records stay byte for byte.

use rovelog_core::text::count;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::Write;

use rovelog_core::{Align, Clock, LogReader, Merged, Select, Sliced};

use super::chunked;
use super::output::Output;
use crate::error::BagError;
use crate::index::Record;
use crate::reader::BagReader;
use crate::version::Version;
use crate::wire::Header;

/// Writes the part of `bag` that `select` names, as a bag of its own.
///
/// # Errors
/// Returns an error if the output refuses.
pub(crate) fn slice(bag: &BagReader, select: &Select, out: &mut dyn Write) -> Result<Sliced, BagError> {
    if bag.version() == Version::V2_0 {
        return chunked::slice(bag, select, out);
    }
    let kept: Vec<bool> = bag.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
    // The last message of each topic before the window, by its place.
    let mut last_before: HashMap<u32, (i64, u64)> = HashMap::new();
    if let Some(start) = select.start.filter(|_| select.last_before) {
        let wanted: Vec<bool> = bag.topics().iter().map(|topic| select.keeps_last_before(topic)).collect();
        bag.cursor().messages(u64::MAX, |at, message| {
            if wanted[message.connection as usize] && message.time() < start {
                let place = last_before.entry(message.connection).or_insert((message.time(), at));
                *place = (*place).max((message.time(), at));
            }
        });
    }
    let mut output = Output::new(&[bag]);
    for record in bag.cursor() {
        let Some(message) = &record.message else {
            keep_other(bag, &mut output, &record, &kept);
            continue;
        };
        let is_last_before = last_before.get(&message.connection).is_some_and(|(_, at)| *at == record.at);
        if kept[message.connection as usize] && (select.keeps_time(message.time()) || is_last_before) {
            output.message(0, &record, message);
        }
    }
    let (records, topics) = (output.records, output.topics());
    let bytes = output.write(out)?;
    Ok(Sliced { records, topics, bytes, ..Sliced::default() })
}

/// Keeps records that are no messages: all of unknown kinds, definitions of topics that are kept.
fn keep_other(bag: &BagReader, output: &mut Output<'_>, record: &Record, kept: &[bool]) {
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

/// Writes one bag with the messages of all `logs`, by time.
pub(crate) fn merge(logs: &[&BagReader], align: Align, out: &mut dyn Write) -> Result<Merged, BagError> {
    if logs.iter().any(|log| log.version() == Version::V2_0) {
        return chunked::merge(logs, out);
    }
    let relative = logs.iter().filter(|log| log.scanner.tables.clock != Clock::Unix).count();
    if relative > 0 && align != Align::AsIs {
        return Err(BagError::Clocks("bags of before V1.1 count time from the start of their recording"));
    }
    // Messages of each bag in time order, the next one of each in the heap.
    let mut orders: Vec<_> = logs.iter().map(|log| log.places(&Select::all())).collect();
    let mut heap = BinaryHeap::new();
    for (source, order) in orders.iter_mut().enumerate() {
        heap.extend(order.next().map(|place| Reverse((place.time, source, place.offset))));
    }
    let mut output = Output::new(logs);
    while let Some(Reverse((_, source, offset))) = heap.pop() {
        let next = orders[source].next();
        heap.extend(next.map(|place| Reverse((place.time, source, place.offset))));
        let (record, message) = logs[source].message_at(offset);
        output.message(source, &record, &message);
    }
    let unknown: u64 = logs
        .iter()
        .map(|log| {
            (0..=255u8).filter(|op| !Header::OPS.contains(op)).map(|op| log.records_of(op)).sum::<u64>()
        })
        .sum();
    let (records, topics) = (output.records, output.topics());
    let bytes = output.write(out)?;
    let left_out = if unknown > 0 {
        vec![format!("{} of an unknown kind", count(unknown, "record"))]
    } else {
        Vec::new()
    };
    Ok(Merged { records, topics, bytes, left_out, ..Merged::default() })
}
