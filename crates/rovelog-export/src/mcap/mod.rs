//! Writes all topics of a log to one MCAP file, for Foxglove, Lichtblick, Rerun and PlotJuggler.
//!
//! Records become protobuf messages with the types of the log. Records of ROS bags are written
//! unchanged, or converted to ROS 2. VEL and ULog logs can be converted to ROS 2, too.
//!
//! The file also contains messages that viewers can draw without configuration:
//!
//! - positions as `foxglove.LocationFix`,
//! - console lines as `foxglove.Log`,
//! - poses as `foxglove.PoseInFrame` and `foxglove.FrameTransform`,
//! - sensor data as `foxglove.PointCloud`, `foxglove.LaserScan` and images.
//!
//! The implementations of the trait `Extras` create these messages for each log format.

mod chunk;
mod encode;
mod extras;
mod file;
mod foxglove;
mod options;
mod output;
mod plain;
mod proto;
mod px4;
mod rld;
mod ros;
mod types;
mod vel;

use std::io::Write;

pub use options::{McapCompression, McapOptions, RosForm};
use rovelog::core::internal::parallel::in_order;
use rovelog::{AnyLog, Select};

use self::chunk::{Buffers, Packer};
use self::extras::{Extras, RecordForm};
use self::file::File;
use self::output::{Output, Part, Summary, Written};
use crate::ros::convert;
use crate::{ExportError, Exported, Provenance};

/// Writes the selected records of a log, and the messages that are derived from them.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write(
    log: &AnyLog,
    select: &Select,
    options: &McapOptions,
    provenance: &Provenance,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported, ExportError> {
    let mut extras: Box<dyn Extras + '_> = match log {
        AnyLog::Ulog(_) | AnyLog::Vel(_) if options.ros == RosForm::Ros2 => {
            Box::new(plain::Plain::new(log, options))
        }
        AnyLog::Ulog(reader) => Box::new(px4::Px4::new(reader, options)?),
        AnyLog::Vel(reader) => Box::new(vel::Vel::new(reader, select, options)),
        AnyLog::Rld(reader) => Box::new(rld::Rld::new(reader, select, options)?),
        _ => Box::new(plain::Plain::new(log, options)),
    };
    let buffers = Buffers::default();
    let mut output = Output::new(extras.profile(), &buffers, out)?;
    let mut done = None;
    // If the compression is not built in, each thread would return this error.
    Packer::new(options.compression)?;
    in_order(
        options.jobs,
        || Packer::new(options.compression),
        |packer, part| match (part, packer) {
            (Part::Metadata(metadata), _) => Ok(Written::Metadata(metadata)),
            (Part::Chunk(chunk), Ok(packer)) => packer.pack(chunk, &buffers).map(Written::Chunk),
            (Part::Chunk(_), Err(error)) => Err(ExportError::Format(error.to_string())),
        },
        |push| {
            let mut file = File::new(log, &*extras, &buffers, push);
            file.facts(provenance, &*extras)?;
            done = Some(messages(log, select, options, file, &mut *extras, progress)?);
            Ok(())
        },
        |written: Result<Written, ExportError>| output.part(written?),
    )?;
    let Some((exported, summary)) = done else {
        return Err(ExportError::Format("the end of the messages is missing".to_owned()));
    };
    Ok(Exported { messages: output.finish(&summary)?, ..exported })
}

/// Writes all messages in time order. Returns the losses and notes, and the data for the summary at
/// the end of the file.
fn messages<'a>(
    log: &'a AnyLog,
    select: &Select,
    options: &McapOptions,
    mut file: File<'_, 'a>,
    extras: &mut dyn Extras,
    progress: &mut dyn FnMut(u64),
) -> Result<(Exported, Summary), ExportError> {
    if options.ros == RosForm::Ros2 && matches!(log, AnyLog::Ulog(_) | AnyLog::Vel(_)) {
        let mut sink = ros::Ros2Sink::new(&mut file);
        let converted = convert::write(log, select, &options.velodyne, &mut sink, progress)?;
        let (_, summary) = file.finish(extras)?;
        return Ok((converted, summary));
    }
    let mut bag = if let AnyLog::Rosbag(bag) = log { Some(ros::Ros::new(bag, options.ros)) } else { None };
    let mut extra_messages = extras.messages(select.start);
    extra_messages.retain(|extra| select.keeps_time(extra.nanos));
    extra_messages.sort_by_key(|extra| extra.nanos);
    let mut extra_messages = extra_messages.into_iter().peekable();
    let (mut now, mut more) = (None, Vec::new());
    let records = extras.wants_records().then(|| log.intact_records(select));
    for record in records.into_iter().flatten() {
        let record = record?;
        progress(record.offset);
        // A record without a time gets the time of the previous record.
        now = record.time.map(|time| time.nanos).or(now);
        let nanos = now.unwrap_or(0);
        file.catch_up(extras, &mut extra_messages, Some(nanos), progress)?;
        if let Some(bag) = &mut bag {
            match file.times(&record, nanos) {
                Some(times) => bag.record(&mut file, &record, times)?,
                None => file.losses(record.topic).out_of_range += 1,
            }
            continue;
        }
        if options.typed {
            let at = file.base.place(nanos).unwrap_or(nanos);
            extras.on_record(&record, at, &mut more);
        }
        if file.record_forms[record.topic.id.index()] != RecordForm::Omitted {
            file.record(&record, nanos)?;
        }
        for mut extra in more.drain(..) {
            extra.nanos = nanos;
            file.extra(&extra)?;
        }
    }
    file.catch_up(extras, &mut extra_messages, None, progress)?;
    let (mut exported, summary) = file.finish(extras)?;
    let (losses, notes) = bag.map(ros::Ros::outcome).unwrap_or_default();
    exported.losses.extend(losses);
    exported.notes.extend(notes);
    Ok((exported, summary))
}
