//! Access to RLD logs for the drop-in replacement of the Python package rocketlogger: the header,
//! raw values, a matrix of physical values, and times.

use std::fs;
use std::path::PathBuf;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rovelog::rld_format::clock::{TimeAxis, TimeBase, TimeOptions};
use rovelog::rld_format::{ColumnOptions, RldReader};
use rovelog::{AnyLog, Error, ReadOptions, Select};

use crate::compat::matrix::{MatrixColumn, matrix, no_channel, rows};
use crate::errors::{self, from_arrow};
use crate::memory::Memory;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::rld::rld;

/// Opens the files of a split recording as one log. `paths` must contain the files in the order in
/// which they were recorded.
#[pyfunction]
pub(crate) fn rld_join(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Reader> {
    let path = paths.first().map(|path| path.to_string_lossy().into_owned());
    let log = errors::run_on(py, path.as_deref(), || {
        // The files are read into memory, because several files cannot be memory-mapped as one.
        let parts = paths.iter().map(|path| fs::read(path).map(Into::into));
        let parts = parts.collect::<std::io::Result<Vec<_>>>().map_err(|error| Error::io("rld", error))?;
        Ok(RldReader::join(parts, &ReadOptions::default())?)
    })?;
    Ok(Reader::new(AnyLog::Rld(log), Origin::named(path), None))
}

/// Returns the header of the first file. The number of rows in it is replaced by the number of rows
/// in all files. The keys are those of `RldHeader` in Python.
#[pyfunction]
pub(crate) fn rld_header<'py>(py: Python<'py>, reader: &Reader) -> PyResult<Bound<'py, PyDict>> {
    let log = rld(py, reader)?;
    let header = log.header();
    let lead_in = &header.lead_in;
    let dict = PyDict::new(py);
    dict.set_item("file_magic", u32::from_le_bytes(lead_in.magic))?;
    dict.set_item("header_length", lead_in.header_length.get())?;
    dict.set_item("comment_length", lead_in.comment_length.get())?;
    dict.set_item("file_version", lead_in.file_version.get())?;
    dict.set_item("data_block_size", lead_in.data_block_size.get())?;
    dict.set_item("sample_rate", lead_in.sample_rate.get())?;
    dict.set_item("mac_address", PyBytes::new(py, &lead_in.mac))?;
    dict.set_item("start_sec", lead_in.start_sec.get())?;
    dict.set_item("start_nsec", lead_in.start_nsec.get())?;
    dict.set_item("comment", PyBytes::new(py, &header.comment))?;
    dict.set_item("rows", log.rows())?;
    let channels = log.channels().iter().zip(&header.channels).map(|(channel, record)| {
        (&*channel.name, record.unit.get(), channel.scale, channel.size, channel.valid, channel.is_binary)
    });
    dict.set_item("channels", channels.collect::<Vec<_>>())?;
    Ok(dict)
}

/// Returns the stored times of all blocks in nanoseconds.
///
/// All times of the realtime clock come first, followed by all times of the monotonic clock.
#[pyfunction]
pub(crate) fn rld_block_times(py: Python<'_>, reader: &Reader) -> PyResult<Memory> {
    const NANOS: i64 = 1_000_000_000;
    let log = rld(py, reader)?;
    let values: Vec<u8> = reader.run(py, || {
        // The original package calculates with 64-bit integers in numpy, which wrap on overflow.
        let of = |sec: i64, nsec: i64| sec.wrapping_mul(NANOS).wrapping_add(nsec);
        let realtime =
            log.block_times().map(|(_, times)| of(times.realtime_sec.get(), times.realtime_nsec.get()));
        let monotonic =
            log.block_times().map(|(_, times)| of(times.monotonic_sec.get(), times.monotonic_nsec.get()));
        Ok(realtime.chain(monotonic).flat_map(i64::to_ne_bytes).collect())
    })?;
    let len = values.len();
    Ok(Memory::owned(values, len))
}

/// Returns the physical values as writable memory of 64-bit floats. All values of one channel are
/// followed by all values of the next channel.
#[pyfunction]
pub(crate) fn rld_matrix(py: Python<'_>, reader: &Reader, wanted: Vec<MatrixColumn>) -> PyResult<Memory> {
    let log = rld(py, reader)?;
    let (values, len) = reader.run(py, || matrix(log, &wanted))?;
    Ok(Memory::owned(values, len))
}

/// Returns the raw values of a channel.
///
/// The values of an analog channel are 64-bit integers. The values of a binary channel are bytes
/// with the value 0 or 1.
#[pyfunction]
pub(crate) fn rld_raw(py: Python<'_>, reader: &Reader, channel: usize) -> PyResult<Memory> {
    let log = rld(py, reader)?;
    let name = log.channels().get(channel).map(|channel| channel.name.to_string());
    let options = ColumnOptions::raw().with_times(None);
    let values = reader.run(py, || {
        let name = name.ok_or_else(|| no_channel(channel))?;
        let select = Select::all().with_fields([name]);
        let mut out = Vec::new();
        for batch in log.columns_with(&select, &options)? {
            let batch = batch.map_err(from_arrow("rld"))?;
            let column = batch.columns().first().ok_or_else(|| no_channel(channel))?;
            match column.data_type() {
                DataType::Boolean => out.extend(column.as_boolean().values().iter().map(u8::from)),
                DataType::Int32 => {
                    let values = column.as_primitive::<Int32Type>().values().iter();
                    out.extend(values.flat_map(|value| i64::from(*value).to_ne_bytes()));
                }
                _ => {
                    let values = column.as_primitive::<Int64Type>().values().iter();
                    out.extend(values.flat_map(|value| value.to_ne_bytes()));
                }
            }
        }
        Ok(out)
    })?;
    let len = values.len();
    Ok(Memory::owned(values, len))
}

/// Returns the times of all rows in nanoseconds, interpolated between the block times.
///
/// If `network` is true, the times are on the realtime clock, otherwise on the monotonic clock. The
/// second value of the result is true if every row has a time.
#[pyfunction]
pub(crate) fn rld_times(py: Python<'_>, reader: &Reader, network: bool) -> PyResult<(Memory, bool)> {
    let log = rld(py, reader)?;
    let base = if network { TimeBase::Unix } else { TimeBase::Monotonic };
    let (times, complete): (Vec<u8>, bool) = reader.run(py, || {
        let map = log.times(TimeOptions::new(TimeAxis::BlockInterp, base));
        let mut times = vec![0; rows(log)?];
        let complete = map.fill(0..log.rows(), &mut times);
        Ok((times.into_iter().flat_map(i64::to_ne_bytes).collect(), complete))
    })?;
    let len = times.len();
    Ok((Memory::owned(times, len), complete))
}
