//! Functions for VEL logs, which Python calls in `log.vel`. They return stored images, and the
//! revolutions of a Velodyne sensor.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::core::internal::limits::read_description_text;
use rovelog::core::select::Names;
use rovelog::vel_format::declared::Types;
use rovelog::vel_format::velodyne::{Calibration, PointOptions};
use rovelog::vel_format::{Payload, VelReader};
use rovelog::{AnyLog, Error, ReadOptions, Result, Select};

use crate::errors;
use crate::reader::{Reader, Window};
use crate::stream::LogBatches;
use crate::table::Batches;

/// Returns options for opening a log with the message types that the file `types` declares.
///
/// This file is read before the log is opened, so that its errors name this file and not the log.
pub(crate) fn options_with_types(py: Python<'_>, types: Option<PathBuf>) -> PyResult<ReadOptions> {
    let mut options = ReadOptions::default();
    let Some(path) = types else { return Ok(options) };
    options.declarations = errors::run_on(py, Some(&path.to_string_lossy()), || {
        let file = File::open(&path).map_err(|error| Error::io("vel", error))?;
        Ok(Types::read(file)?.declarations().to_owned())
    })?;
    Ok(options)
}

/// Returns the VEL reader of a log, or an exception if the log has another format.
fn vel<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a VelReader> {
    reader.format_reader(py, "VEL log", |log| if let AnyLog::Vel(log) = log { Some(log) } else { None })
}

/// Returns the images in a time window, in file order. Each row consists of the offset of the
/// message and the topic.
#[pyfunction]
pub(crate) fn vel_images(py: Python<'_>, reader: &Reader, window: Window) -> PyResult<Vec<(u64, String)>> {
    let log = vel(py, reader)?;
    let select = window.limit(Select::all());
    reader.run(py, || {
        let wanted = |record: &rovelog::Record<'_>| {
            let time = record.time.is_none_or(|time| select.keeps_time(time.nanos));
            time && image_at(log, record.offset).is_some()
        };
        let records = log.records_in_file_order().filter(wanted);
        Ok(records.map(|record| (record.offset, record.topic.name.clone())).collect())
    })
}

/// Returns the time and the image of the message at an offset. Returns `None` if the message is not
/// an image.
fn image_at(log: &VelReader, offset: u64) -> Option<(i64, rovelog::vel_format::wire::ImageData<'_>)> {
    let message = log.message_at(offset)?;
    match message.payload()? {
        Payload::Image(image) => Some((message.nanos, image)),
        _ => None,
    }
}

/// Returns the image of the message at an offset. Returns `None` if the message is not an image.
///
/// The row consists of the time, the bytes, the encoding, the width and the height.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn vel_image<'py>(
    py: Python<'py>,
    reader: &Reader,
    offset: u64,
) -> PyResult<Option<(i64, Bound<'py, PyBytes>, &'static str, i32, i32)>> {
    let log = vel(py, reader)?;
    reader.origin.checked(py, || {
        Ok(image_at(log, offset).map(|(nanos, image)| {
            let (width, height) = (image.width.get(), image.height.get());
            (nanos, PyBytes::new(py, &image.data), image.encoding().name(), width, height)
        }))
    })
}

/// Reads the calibration of a Velodyne sensor from a file.
pub(crate) fn read_calibration(py: Python<'_>, path: &Path) -> PyResult<Calibration> {
    errors::run_on(py, Some(&path.to_string_lossy()), || {
        // The function `read_description_text` limits the size of the file, so that a wrong path
        // cannot fill the memory.
        let text =
            File::open(path).and_then(read_description_text).map_err(|error| Error::io("vel", error))?;
        Ok(Calibration::parse(&text)?)
    })
}

/// Returns the revolutions that start in a time window, as one table each. `fields` are the names
/// of the columns to return.
#[pyfunction]
pub(crate) fn vel_revolutions(
    py: Python<'_>,
    reader: &Reader,
    fields: Option<Vec<String>>,
    calibration: Option<PathBuf>,
    window: Window,
) -> PyResult<Batches> {
    vel(py, reader)?;
    let calibration = calibration.map(|path| read_calibration(py, &path)).transpose()?;
    let mut select = window.limit(Select::all());
    select.fields = fields.map(Names::from_iter);
    let log = Arc::clone(reader.whole_log(py)?);
    let batches = reader.run(py, || {
        LogBatches::try_new(log, |log| -> Result<rovelog::core::Batches<'_>> {
            let AnyLog::Vel(log) = &**log else { unreachable!("`vel` has checked the format") };
            Ok(Box::new(log.point_batches(None, calibration.as_ref(), PointOptions::default(), &select)?))
        })
    })?;
    Ok(Batches::new(reader, batches))
}
