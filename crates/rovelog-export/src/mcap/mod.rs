//! MCAP: all topics in one file, for Foxglove, Lichtblick, Rerun and PlotJuggler.
//!
//! Messages are protobuf with the types of the log, except those of ROS 1, which keep their own
//! bytes. In addition there is what viewers draw without configuration: positions as
//! `foxglove.LocationFix`, console lines as `foxglove.Log`, poses as `foxglove.PoseInFrame` and
//! `foxglove.FrameTransform`, sensor data as `foxglove.PointCloud`, `LaserScan` and images.
//! Everything that a format adds is in its implementation of `Extras`.

mod extras;
mod file;
mod foxglove;
mod options;
mod plain;
mod proto;
mod px4;
mod rld;
mod ros;
mod types;
mod vel;

use std::io::Write;

pub use options::{McapOptions, RosForm, VelodyneOptions};
use rovelog::{AnyLog, Select};

use self::extras::{Carried, Extras};
use self::file::File;
use crate::{ExportError, Exported, Provenance};

/// Writes the selected records, and the messages derived from them. Returns the complete output.
///
/// # Errors
/// Returns an error if writing to the output fails, or the log cannot be read.
pub fn write<W: Write>(
    log: &AnyLog,
    select: &Select,
    options: &McapOptions,
    provenance: &Provenance,
    mut out: W,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<W>, ExportError> {
    Ok(write_all(log, select, options, provenance, &mut out, progress)?.with_out(out))
}

fn write_all(
    log: &AnyLog,
    select: &Select,
    options: &McapOptions,
    provenance: &Provenance,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<Exported<()>, ExportError> {
    let mut bag = if let AnyLog::Rosbag(bag) = log { Some(ros::Ros::new(bag, options.ros)) } else { None };
    let mut extras: Box<dyn Extras + '_> = match log {
        AnyLog::Ulog(reader) => Box::new(px4::Px4::new(reader, options)?),
        AnyLog::Vel(reader) => Box::new(vel::Vel::new(reader, select, options)),
        AnyLog::Rld(reader) => Box::new(rld::Rld::new(reader, select, options)?),
        _ => Box::new(plain::Plain::new(log, options)),
    };
    let extras = &mut *extras;
    let mut file = File::create(log, extras, out)?;
    file.metadata("rovelog", provenance.facts(&**log).into_iter().map(|(k, v)| (k.to_owned(), v)).collect())?;
    let info = extras.info();
    if !info.is_empty() {
        file.metadata("info", info)?;
    }
    let mut extra_messages = extras.messages();
    extra_messages.retain(|extra| select.keeps_time(extra.nanos));
    extra_messages.sort_by_key(|extra| extra.nanos);
    let mut extra_messages = extra_messages.into_iter().peekable();
    let (mut now, mut value_bytes, mut more) = (None, Vec::new(), Vec::new());
    let records = extras.wants_records().then(|| log.records(select));
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
                None => file.tally(record.topic).out_of_range += 1,
            }
            continue;
        }
        let value = match file.carried[record.topic.id.index()] {
            Carried::Typed => {
                let Ok(value) = record.value() else {
                    file.tally(record.topic).undecodable += 1;
                    continue;
                };
                Some(value)
            }
            Carried::Bytes | Carried::Otherwise => None,
        };
        value_bytes.clear();
        file.record(&record, value.as_ref(), nanos, &mut value_bytes)?;
        if options.typed {
            let at = file.base.place(nanos).unwrap_or(nanos);
            extras.on_record(&record, value.as_ref(), at, &mut more);
            for mut extra in more.drain(..) {
                extra.nanos = nanos;
                file.extra(&extra)?;
            }
        }
    }
    file.catch_up(extras, &mut extra_messages, None, progress)?;
    let mut done = file.finish(extras)?;
    let (losses, notes) = bag.map(ros::Ros::outcome).unwrap_or_default();
    done.losses.extend(losses);
    done.notes.extend(notes);
    Ok(done)
}
