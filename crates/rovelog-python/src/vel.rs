//! What only a VEL log has: images as they lie in it, and the revolutions of its Velodyne.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::core::Batches;
use rovelog::vel_format::declared::Types;
use rovelog::vel_format::velodyne::{Calibration, PointOptions};
use rovelog::vel_format::{Payload, VelReader};
use rovelog::{AnyLog, Error, ErrorKind, ReadOptions, Result, Select};
use self_cell::self_cell;

use crate::errors;
use crate::reader::Reader;
use crate::table::Table;

/// Bytes of a file of declarations at most.
const DECLARATIONS: u64 = 1 << 20;

/// Options with the message types that a file declares. They are checked before any log is opened, so that what is
/// wrong with them is not said of a log.
pub(crate) fn declaring(py: Python<'_>, types: Option<PathBuf>) -> PyResult<ReadOptions> {
    let mut options = ReadOptions::default();
    let Some(path) = types else { return Ok(options) };
    let read = || -> Result<String> {
        let mut text = String::new();
        let file = File::open(&path).and_then(|file| file.take(DECLARATIONS + 1).read_to_string(&mut text));
        file.map_err(|error| Error::io("vel", error))?;
        if text.len() as u64 > DECLARATIONS {
            let what = "declarations are not longer than 1 MiB";
            return Err(Error::new("vel", ErrorKind::LimitExceeded, None, what));
        }
        Types::parse(&text)?;
        Ok(text)
    };
    let read = errors::run(py, read)?;
    options.declarations = read.map_err(|error| errors::raise(py, &error, Some(&path.to_string_lossy())))?;
    Ok(options)
}

fn vel<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a VelReader> {
    reader.only(py, "VEL log", |log| if let AnyLog::Vel(log) = log { Some(log) } else { None })
}

/// The images of a time window, in file order: offset of the message, and topic.
#[pyfunction]
pub(crate) fn vel_images(
    py: Python<'_>,
    reader: &Reader,
    start: Option<i64>,
    end: Option<i64>,
) -> PyResult<Vec<(u64, String)>> {
    let log = vel(py, reader)?;
    let select = Select::all().between(start, end);
    errors::run(py, || {
        let wanted = |record: &rovelog::Record<'_>| {
            let time = record.time.is_none_or(|time| select.keeps_time(time.nanos));
            time && matches!(image(log, record.offset), Some((_, _)))
        };
        let records = log.records_in_file_order().filter(wanted);
        records.map(|record| (record.offset, record.topic.name.clone())).collect()
    })
}

fn image(log: &VelReader, offset: u64) -> Option<(i64, rovelog::vel_format::message::ImageRef<'_>)> {
    let message = log.message_at(offset)?;
    match message.payload()? {
        Payload::Image(image) => Some((message.nanos, image)),
        _ => None,
    }
}

/// The image of the message at an offset: time, bytes, encoding, width, height; none where there is none.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn vel_image<'py>(
    py: Python<'py>,
    reader: &Reader,
    offset: u64,
) -> PyResult<Option<(i64, Bound<'py, PyBytes>, &'static str, i32, i32)>> {
    let found = image(vel(py, reader)?, offset);
    Ok(found.map(|(nanos, image)| {
        let (width, height) = (image.head.width.get(), image.head.height.get());
        (nanos, PyBytes::new(py, image.data), image.encoding().name(), width, height)
    }))
}

self_cell!(
    struct Cell {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: Batches,
    }
);

/// An iterator over revolutions, each as columns.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Revolutions {
    cell: Mutex<Cell>,
    path: Option<String>,
}

/// The calibration in a file.
pub(crate) fn calibration_of(py: Python<'_>, path: &Path) -> PyResult<Calibration> {
    let read = || -> Result<Calibration> {
        let text = fs::read_to_string(path).map_err(|error| Error::io("vel", error))?;
        Ok(Calibration::parse(&text)?)
    };
    errors::run(py, read)?.map_err(|error| errors::raise(py, &error, Some(&path.to_string_lossy())))
}

/// The revolutions that begin in a time window; `fields` are names of columns.
#[pyfunction]
pub(crate) fn vel_revolutions(
    py: Python<'_>,
    reader: &Reader,
    fields: Option<Vec<String>>,
    calibration: Option<PathBuf>,
    start: Option<i64>,
    end: Option<i64>,
) -> PyResult<Revolutions> {
    vel(py, reader)?;
    let calibration = calibration.map(|path| calibration_of(py, &path)).transpose()?;
    let mut select = Select::all().between(start, end);
    select.fields = fields;
    let log = Arc::clone(&reader.log);
    let cell = errors::run(py, || {
        Cell::try_new(log, |log| -> Result<Batches<'_>> {
            let AnyLog::Vel(log) = &**log else { unreachable!("looked at above") };
            Ok(Box::new(log.point_batches(None, calibration.as_ref(), PointOptions::default(), &select)?))
        })
    })?;
    let cell = Mutex::new(cell.map_err(|error| reader.raise(py, &error))?);
    Ok(Revolutions { cell, path: reader.path.clone() })
}

#[pymethods]
impl Revolutions {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        py.check_signals()?;
        let next = || {
            let mut cell = self.cell.lock().unwrap_or_else(PoisonError::into_inner);
            cell.with_dependent_mut(|_, batches| batches.next()).transpose()
        };
        match errors::run(py, next)? {
            Ok(batch) => Ok(batch.map(|batch| Table { batch })),
            Err(error) => Err(errors::raise(py, &errors::columns(error), self.path.as_deref())),
        }
    }
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Revolutions>()?;
    module.add_function(wrap_pyfunction!(vel_images, module)?)?;
    module.add_function(wrap_pyfunction!(vel_image, module)?)?;
    module.add_function(wrap_pyfunction!(vel_revolutions, module)?)
}
