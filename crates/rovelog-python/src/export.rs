//! Conversion of logs, as with `rovelog export`.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use rovelog::core::parallel::Jobs;
use rovelog::rld_format::csv::CsvStyle;
use rovelog::vel_format::velodyne::Model;
use rovelog::{AnyLog, Error, Select, Topic};
use rovelog_export::bag2::{self, Bag2Options, Compression};
use rovelog_export::mcap::{self, McapOptions, RosForm};
use rovelog_export::table::{self, Dialect, Names, TableOptions, TimeUnit};
use rovelog_export::{Kind, Loss, Provenance, logger_csv, ndjson, topic_names};

use crate::errors::Raise;
use crate::output;
use crate::reader::{Reader, Window};
use crate::rld::rld;
use crate::vel::calibration_of;
use crate::words::in_python;

/// Topics, each with a part of a file name.
type Named = Vec<(usize, String)>;

/// A loss: topic, field, reason.
type Lost = (String, Option<String>, String);

fn lost(losses: Vec<Loss>) -> Vec<Lost> {
    let row = |loss: Loss| {
        let column = Some(loss.column).filter(|column| !column.is_empty());
        (loss.topic, column, in_python(&loss.why).into_owned())
    };
    losses.into_iter().map(row).collect()
}

/// Options of `convert`; those without a meaning for the format are ignored.
#[derive(FromPyObject)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    typed: bool,
    keep_ned: bool,
    raw: bool,
    full: bool,
    ros2: bool,
    modernize: bool,
    compression: String,
    calibration: Option<PathBuf>,
    model: Option<String>,
    flatten: bool,
    names: String,
    dialect: String,
    delimiter: char,
    time_unit: String,
    profile: Option<String>,
    blobs: bool,
}

impl Options {
    fn table(&self) -> TableOptions {
        let mut options = TableOptions::default();
        (options.flatten, options.blobs) = (self.flatten, self.blobs);
        options.spark = self.profile.as_deref() == Some("spark");
        options.delimiter = u8::try_from(self.delimiter).unwrap_or(options.delimiter);
        if self.names == "dot" {
            options.names = Names::Dot;
        }
        if self.time_unit == "ns" {
            options.time_unit = TimeUnit::Nanoseconds;
        }
        if self.dialect == "pyulog" {
            options.dialect = Dialect::Pyulog;
        }
        options
    }

    fn mcap(&self, py: Python<'_>) -> PyResult<McapOptions> {
        let mut options = McapOptions::default();
        (options.typed, options.keep_ned) = (self.typed, self.keep_ned);
        (options.raw, options.full) = (self.raw, self.full);
        options.ros = match (self.ros2, self.modernize) {
            (true, _) => RosForm::Ros2,
            (false, true) => RosForm::Modernized,
            (false, false) => RosForm::Recorded,
        };
        options.velodyne.calibration =
            self.calibration.as_deref().map(|path| calibration_of(py, path)).transpose()?;
        if let Some(name) = &self.model {
            let unknown = || {
                let names = Model::ALL.map(Model::name).join(", ");
                Raise::new("UnsupportedError", format!("there is no model {name}: they are {names}"))
                    .raise(py)
            };
            options.velodyne.model = Some(Model::by_name(name).ok_or_else(unknown)?);
        }
        Ok(options)
    }

    fn bag2(&self) -> Bag2Options {
        let mut options = Bag2Options::default();
        options.modernize = self.modernize;
        options.compression = Compression::of(self.compression.as_bytes()).unwrap_or_default();
        options
    }
}

/// Returns the format for a name, and whether its files hold one topic; `None` if there is no such
/// format.
#[pyfunction]
pub(crate) fn export_kind(name: &str) -> Option<(&'static str, bool)> {
    Kind::by_name(name).map(|kind| (kind.name(), matches!(kind, Kind::Table(_))))
}

/// Returns the topics with columns, each with a distinct part of a file name, and the losses of the
/// other topics.
#[pyfunction]
pub(crate) fn export_names(
    py: Python<'_>,
    reader: &Reader,
    topics: Vec<usize>,
) -> PyResult<(Named, Vec<Lost>)> {
    let log = reader.all(py)?;
    let topics = chosen(reader, log, topics);
    let (good, bad): (Vec<&Topic>, Vec<&Topic>) = reader.run(py, || {
        Ok(topics
            .into_iter()
            .partition(|topic| log.own(topic).and_then(|topic| topic.columns(&Select::all())).is_ok()))
    })?;
    let place = |topic: &&Topic| reader.log.topics().iter().position(|known| known.name == topic.name);
    let names = good.iter().filter_map(place).zip(topic_names(&good)).collect();
    Ok((names, lost(bad.into_iter().map(|topic| Loss::undecodable(topic, topic.count)).collect())))
}

/// Writes a table for each topic to a new file. Returns the rows of each, and the losses.
#[pyfunction]
pub(crate) fn export_tables(
    py: Python<'_>,
    reader: &Reader,
    kind: &str,
    outputs: Vec<(usize, PathBuf)>,
    window: Window,
    options: Options,
) -> PyResult<(Vec<u64>, Vec<Lost>)> {
    let Some(Kind::Table(kind)) = Kind::by_name(kind) else {
        return Err(unknown(py, kind));
    };
    let out = outputs.first().map_or_else(PathBuf::new, |(_, path)| path.clone());
    let select = window.of(Select::all());
    let log = reader.all(py)?;
    output::write(py, reader, &out, |signals| {
        let mut files = Vec::new();
        for (topic, path) in outputs {
            files.extend(chosen(reader, log, [topic]).into_iter().zip([output::create(&path, signals)?]));
        }
        let told = Kind::Table(kind).tells_source();
        let (options, provenance) = (options.table(), provenance(reader, told)?);
        let how = (kind, &options);
        let (written, losses) = table::write(&***log, files, &select, how, &provenance, &mut |_| ())?;
        let mut rows = Vec::new();
        for mut table in written {
            table.out.flush()?;
            rows.push(table.rows);
        }
        Ok((rows, lost(losses)))
    })
}

/// Writes the records of topics to one new file. Returns their number, and the losses.
#[pyfunction]
pub(crate) fn export_records(
    py: Python<'_>,
    reader: &Reader,
    kind: &str,
    out: PathBuf,
    topics: Vec<usize>,
    window: Window,
    options: Options,
) -> PyResult<(u64, Vec<Lost>)> {
    let log = reader.all(py)?;
    let names = chosen(reader, log, topics).into_iter().map(|topic| topic.name.clone());
    let select = window.of(Select::topics(names));
    let kind = Kind::by_name(kind)
        .filter(|kind| !matches!(kind, Kind::Table(_)))
        .ok_or_else(|| unknown(py, kind))?;
    let bag = if let AnyLog::Rosbag(bag) = &**log { Some(bag) } else { None };
    if kind == Kind::Bag2 && bag.is_none() {
        let what = format!("bag2 is for ROS bags, not for {}", reader.log.format().name);
        return Err(Raise::new("UnsupportedError", what).raise(py));
    }
    let to_mcap = if kind == Kind::Mcap { options.mcap(py)? } else { McapOptions::default() };
    output::write(py, reader, &out, |signals| {
        let mut file = output::create(&out, signals)?;
        let (records, losses) = match (kind, bag) {
            (Kind::Mcap, _) => {
                let provenance = provenance(reader, true)?;
                let done = mcap::write(log, &select, &to_mcap, &provenance, &mut file, &mut |_| ())?;
                (done.messages, done.losses)
            }
            (Kind::Bag2, Some(bag)) => {
                let done = bag2::write(bag, &select, options.bag2(), &mut file, &mut |_| ())?;
                (done.messages, done.losses)
            }
            _ => ndjson::write(&***log, &select, Jobs::all(), &mut file, &mut |_| ())?,
        };
        file.flush()?;
        Ok((records, lost(losses)))
    })
}

/// Writes a RocketLogger log in the logger's own CSV format, with dates or nanoseconds. Returns the
/// rows, and the losses.
#[pyfunction]
pub(crate) fn export_logger_csv(
    py: Python<'_>,
    reader: &Reader,
    out: PathBuf,
    dates: bool,
) -> PyResult<(u64, Vec<Lost>)> {
    let log = rld(py, reader)?;
    let style = if dates { CsvStyle::Dates } else { CsvStyle::Nanoseconds };
    output::write(py, reader, &out, |signals| {
        let mut written = logger_csv::write(log, style, output::create(&out, signals)?)?;
        written.out.flush()?;
        Ok((written.messages, lost(written.losses)))
    })
}

/// Returns the topics of `log`, which was opened with all of the file, that have these indices in the
/// reader's.
fn chosen<'a>(reader: &Reader, log: &'a AnyLog, topics: impl IntoIterator<Item = usize>) -> Vec<&'a Topic> {
    let known = topics.into_iter().filter_map(|index| reader.log.topics().get(index));
    known.filter_map(|known| log.topics().iter().find(|topic| topic.name == known.name)).collect()
}

fn unknown(py: Python<'_>, kind: &str) -> PyErr {
    Raise::new("UnsupportedError", format!("unknown kind {kind}")).raise(py)
}

/// Returns the provenance of the data: a name and, if the output has a place for it (`told`), the
/// SHA-256 of the bytes.
fn provenance(reader: &Reader, told: bool) -> rovelog::Result<Provenance> {
    let path = reader.origin.place.as_deref();
    let name = path.and_then(Path::file_name).map_or_else(|| "-".into(), |name| name.to_string_lossy());
    let copy = reader.parts.as_ref().map(|parts| parts.copy());
    let digits = match (&reader.memory, copy.or(path)) {
        _ if !told => return Ok(Provenance::new(name)),
        (Some(bytes), _) => rovelog_export::sha256(&bytes[..]),
        (None, Some(path)) => File::open(path).and_then(rovelog_export::sha256),
        (None, None) => return Ok(Provenance::new(name)),
    };
    Ok(Provenance::new(name).with_sha256(digits.map_err(|error| Error::io("rovelog", error))?))
}
