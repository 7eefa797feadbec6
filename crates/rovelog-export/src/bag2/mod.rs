//! ROS bags V2.0, which ROS reads since 2010, from bags of any version.
//!
//! Payloads stay byte for byte, and messages are in time order. The output may be a pipe.

use std::io::Write;

use rovelog::core::text;
pub use rovelog::rosbag12::v2::Compression;
use rovelog::rosbag12::v2::wire::ConnectionHeader;
use rovelog::rosbag12::v2::{self, Writer};
use rovelog::rosbag12::{BagReader, Publisher};
use rovelog::{LogReader as _, Select};

use crate::ros::{ByPublisher, Line};
use crate::{ExportError, Exported, Loss};

/// How a bag of V2.0 is written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Bag2Options {
    /// Use the new names of message types that were renamed without other changes.
    pub modernize: bool,
    /// Compression of the chunks.
    pub compression: Compression,
}

/// What became of the messages of a topic.
#[derive(Clone, Copy, Default)]
struct Tally {
    misfits: u64,
    out_of_range: u64,
    too_large: u64,
}

/// Writes the selected messages.
///
/// # Errors
/// Returns an error if writing to the output fails, the bag cannot be read, or no selected topic has
/// a definition.
pub fn write<W: Write>(
    bag: &BagReader,
    select: &Select,
    options: Bag2Options,
    mut out: W,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<W>, ExportError> {
    Ok(write_all(bag, select, options, &mut out, progress)?.with_out(out))
}

fn write_all(
    bag: &BagReader,
    select: &Select,
    options: Bag2Options,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<()>, ExportError> {
    let selected =
        bag.topics().iter().map(|topic| (select.keeps_topic(topic) && topic.count > 0).then_some(topic));
    let lines: Vec<_> =
        selected.map(|topic| topic.map(|topic| Line::new(bag, topic, options.modernize))).collect();
    let mut found = lines.iter().flatten();
    if found.clone().count() > 0 && found.all(Result::is_err) {
        let why = "no selected topic has a definition, which a V2.0 bag requires";
        return Err(ExportError::Format(why.to_owned()));
    }
    // A large bag is laid twice.
    let (size, mut half) = (bag.info().size, 0);
    let ((messages, tallies), _) = v2::write(out, options.compression, |writer| {
        let laid = lay(bag, select, &lines, writer, &mut |at| progress(u64::midpoint(half, at)));
        half = size;
        laid
    })?;
    Ok(Exported { out: (), messages, losses: losses(bag, &lines, &tallies), notes: Vec::new() })
}

type Lines<'a> = [Option<Result<Line<'a>, Loss>>];

fn lay<'a>(
    bag: &BagReader,
    select: &Select,
    lines: &'a Lines<'a>,
    writer: &mut Writer<'_>,
    progress: &mut dyn FnMut(u64),
) -> Result<(u64, Vec<Tally>), ExportError> {
    let mut connections = ByPublisher::new(bag);
    let mut tallies = vec![Tally::default(); lines.len()];
    let mut messages = 0;
    for record in bag.intact_records(select) {
        let record = record?;
        progress(record.offset);
        let topic = record.topic.id.index();
        let Some(Ok(line)) = &lines[topic] else { continue };
        let tally = &mut tallies[topic];
        let nanos = record.time.map_or(0, |time| time.nanos);
        let (sec, nsec) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        let (Ok(sec), Ok(nsec)) = (u32::try_from(sec), u32::try_from(nsec)) else {
            tally.out_of_range += 1;
            continue;
        };
        if !line.carries(&record.payload) {
            tally.misfits += 1;
            continue;
        }
        let id = *connections.of(bag, &record, |publisher| connect(writer, line, publisher))?;
        if writer.message(id, (sec, nsec), &record.payload)? {
            messages += 1;
        } else {
            tally.too_large += 1;
        }
    }
    Ok((messages, tallies))
}

/// Starts a connection by what was said when the publisher connected.
fn connect(writer: &mut Writer<'_>, line: &Line<'_>, publisher: &Publisher) -> Result<u32, ExportError> {
    let text = line.text();
    let said = ConnectionHeader {
        callerid: publisher.callerid.as_ref().map(String::as_bytes),
        latching: publisher.latching.then_some(b"1"),
        md5sum: Some(line.sum.as_bytes()),
        message_definition: Some(text.as_bytes()),
        topic: Some(line.topic.as_bytes()),
        ty: Some(line.type_name.as_bytes()),
    };
    Ok(writer.connect(line.topic.as_bytes(), &said.to_data())?)
}

fn losses(bag: &BagReader, lines: &Lines<'_>, tallies: &[Tally]) -> Vec<Loss> {
    let mut losses = Vec::new();
    for ((topic, line), tally) in bag.topics().iter().zip(lines).zip(tallies) {
        match line {
            Some(Ok(line)) => {
                losses.extend(line.losses.iter().cloned());
                losses.extend(line.contradiction().map(|why| Loss::new(&topic.name, "", why)));
            }
            Some(Err(loss)) => losses.push(loss.clone()),
            None => {}
        }
        for (count, why) in [
            (tally.misfits, "cannot be read by the only definition"),
            (tally.out_of_range, "with a time that a bag cannot store"),
            (tally.too_large, "too large for a bag"),
        ] {
            if count > 0 {
                losses.push(Loss::new(&topic.name, "", format!("{} {why}", text::count(count, "record"))));
            }
        }
    }
    losses
}
