//! Parts of an RLD log that the drop-in for rocketlogger needs: header, raw columns, a matrix of
//! physical values, and times from block times.

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

use crate::compat::matrix::{Wanted, matrix, missing, rows};
use crate::errors::{self, of_arrow};
use crate::memory::Memory;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::rld::rld;

/// Opens the parts of a split recording, in order, as one log.
#[pyfunction]
pub(crate) fn rld_join(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Reader> {
    let path = paths.first().map(|path| path.to_string_lossy().into_owned());
    let log = errors::run_on(py, path.as_deref(), || {
        let parts = paths.iter().map(|path| fs::read(path).map(Into::into));
        let parts = parts.collect::<std::io::Result<Vec<_>>>().map_err(|error| Error::io("rld", error))?;
        Ok(RldReader::join(parts, &ReadOptions::default())?)
    })?;
    Ok(Reader::new(AnyLog::Rld(log), Origin::named(path), None))
}

/// Returns the header of the first file, and the number of rows of all files.
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

/// Returns the times of all blocks as stored, in nanoseconds: first those of the realtime clock, then
/// those of the monotonic clock.
#[pyfunction]
pub(crate) fn rld_block_times(py: Python<'_>, reader: &Reader) -> PyResult<Memory> {
    const NANOS: i64 = 1_000_000_000;
    let log = rld(py, reader)?;
    let values: Vec<u8> = reader.run(py, || {
        // Times that are out of range wrap, as in the original.
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

/// Returns physical values of some channels, row by row, as writable memory of 64-bit floats.
#[pyfunction]
pub(crate) fn rld_matrix(py: Python<'_>, reader: &Reader, wanted: Vec<Wanted>) -> PyResult<Memory> {
    let log = rld(py, reader)?;
    let (values, len) = reader.run(py, || matrix(log, &wanted))?;
    Ok(Memory::owned(values, len))
}

/// Returns the raw values of a channel: 64-bit integers for analog ones, bytes of 0 and 1 for
/// binary ones.
#[pyfunction]
pub(crate) fn rld_raw(py: Python<'_>, reader: &Reader, channel: usize) -> PyResult<Memory> {
    let log = rld(py, reader)?;
    let name = log.channels().get(channel).map(|channel| channel.name.to_string());
    let options = ColumnOptions::raw().with_times(None);
    let values = reader.run(py, || {
        let name = name.ok_or_else(|| missing(channel))?;
        let select = Select::all().with_fields([name]);
        let mut out = Vec::new();
        for batch in log.columns_with(&select, &options)? {
            let batch = batch.map_err(of_arrow("rld"))?;
            let column = batch.columns().first().ok_or_else(|| missing(channel))?;
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

/// Returns the times of all rows in nanoseconds, interpolated between block times, on the realtime
/// clock (`network`) or the monotonic clock. The second value tells whether every row has a time.
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
