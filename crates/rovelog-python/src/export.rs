//! Conversion of logs to other formats, like the command `rovelog export`.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use rovelog::core::internal::parallel::Jobs;
use rovelog::rld_format::csv::CsvStyle;
use rovelog::vel_format::velodyne::Model;
use rovelog::{AnyLog, Error, Select, Topic};
use rovelog_export::bag2::{self, Bag2Options, Compression};
use rovelog_export::cloud::VelodyneOptions;
use rovelog_export::mcap::{self, McapOptions, RosForm};
use rovelog_export::table::{self, Dialect, Names, TableOptions, TimeUnit};
use rovelog_export::{Kind, Loss, Provenance, logger_csv, ndjson, topic_names};

use crate::errors::ExceptionBuilder;
use crate::output;
use crate::python_terms::in_python;
use crate::reader::{Reader, Window};
use crate::rld::rld;
use crate::vel::read_calibration;

/// Index of each topic, with the name of the topic as it appears in the file name.
type TopicFiles = Vec<(usize, String)>;

/// Data that the output file does not contain, as a tuple of topic, field, and reason. The field is
/// `None` if the whole topic is missing.
type LostRow = (String, Option<String>, String);

/// Converts the descriptions of data that is missing in the output to tuples for Python.
fn lost_rows(losses: Vec<Loss>) -> Vec<LostRow> {
    let row = |loss: Loss| {
        let column = Some(loss.column).filter(|column| !column.is_empty());
        (loss.topic, column, in_python(&loss.why).into_owned())
    };
    losses.into_iter().map(row).collect()
}

/// Options of `convert`, which Python passes as the dict `ExportOptions`.
///
/// Python has already checked that the options apply to the output format and have valid values.
#[derive(FromPyObject)]
#[expect(clippy::struct_excessive_bools, reason = "each field is an independent option")]
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
    /// Returns the options for writing Parquet, Arrow and CSV files.
    fn table(&self) -> TableOptions {
        let mut options = TableOptions::default();
        (options.flatten, options.blobs) = (self.flatten, self.blobs);
        options.spark = self.profile.as_deref() == Some("spark");
        options.delimiter = u8::try_from(self.delimiter).ok();
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

    /// Returns the options for writing MCAP files. Reads the calibration file if one is given.
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
            self.calibration.as_deref().map(|path| read_calibration(py, path)).transpose()?;
        if let Some(name) = &self.model {
            let unknown = || {
                let names = Model::ALL.map(Model::name).join(", ");
                let what = format!("the model {name} is unknown; the models are {names}");
                ExceptionBuilder::new("UnsupportedError", what).raise(py)
            };
            options.velodyne.model = Some(Model::by_name(name).ok_or_else(unknown)?);
        }
        Ok(options)
    }

    /// Returns the options for writing V2.0 ROS bags.
    fn bag2(&self, velodyne: VelodyneOptions) -> Bag2Options {
        let mut options = Bag2Options::default();
        (options.modernize, options.velodyne) = (self.modernize, velodyne);
        options.compression = Compression::of(self.compression.as_bytes()).unwrap_or_default();
        options
    }
}

/// Returns the canonical name of an output format. The second value is true if a file in this
/// format contains a single topic.
///
/// Returns `None` if there is no format with this name.
#[pyfunction]
pub(crate) fn export_kind(name: &str) -> Option<(&'static str, bool)> {
    Kind::by_name(name).map(|kind| (kind.name(), matches!(kind, Kind::Table(_))))
}

/// Returns the topics that can be written as tables. For each topic, also returns its name in the
/// form that is used in file names.
///
/// The second list of the result contains the topics that cannot be decoded.
#[pyfunction]
pub(crate) fn export_names(
    py: Python<'_>,
    reader: &Reader,
    topics: Vec<usize>,
) -> PyResult<(TopicFiles, Vec<LostRow>)> {
    let log = reader.whole_log(py)?;
    let topics = topics_in(reader, log, topics);
    // The columns of a topic can be determined without decoding a row.
    let (good, bad): (Vec<&Topic>, Vec<&Topic>) = reader.run(py, || {
        Ok(topics
            .into_iter()
            .partition(|topic| log.own(topic).and_then(|topic| topic.columns(&Select::all())).is_ok()))
    })?;
    let index = |topic: &&Topic| reader.log.topics().iter().position(|known| known.name == topic.name);
    let names = good.iter().filter_map(index).zip(topic_names(&good)).collect();
    Ok((names, lost_rows(bad.into_iter().map(|topic| Loss::undecodable(topic, topic.count)).collect())))
}

/// Writes one table for each topic. Returns the number of rows of each table, and the data that the
/// tables cannot contain.
#[pyfunction]
pub(crate) fn export_tables(
    py: Python<'_>,
    reader: &Reader,
    kind: &str,
    outputs: Vec<(usize, PathBuf)>,
    window: Window,
    options: Options,
) -> PyResult<(Vec<u64>, Vec<LostRow>)> {
    let Some(Kind::Table(kind)) = Kind::by_name(kind) else {
        return Err(unknown_kind(py, kind));
    };
    // All tables are written at the same time, so it is unknown which table caused an error. The
    // exception contains the path of the first file.
    let out = outputs.first().map_or_else(PathBuf::new, |(_, path)| path.clone());
    let select = window.limit(Select::all());
    let log = reader.whole_log(py)?;
    output::write(py, reader, &out, |signals| {
        let mut files = Vec::new();
        for (topic, path) in outputs {
            files.extend(topics_in(reader, log, [topic]).into_iter().zip([output::create(&path, signals)?]));
        }
        let stores_hash = Kind::Table(kind).tells_source();
        let (options, provenance) = (options.table(), provenance(reader, stores_hash)?);
        let how = (kind, &options);
        let (written, losses) = table::write(&***log, files, &select, how, &provenance, &mut |_| ())?;
        let mut rows = Vec::new();
        for mut table in written {
            table.out.flush()?;
            rows.push(table.rows);
        }
        Ok((rows, lost_rows(losses)))
    })
}

/// Writes the records of several topics to one file. Returns the number of records, and the data
/// that the file cannot contain.
#[pyfunction]
pub(crate) fn export_records(
    py: Python<'_>,
    reader: &Reader,
    kind: &str,
    out: PathBuf,
    topics: Vec<usize>,
    window: Window,
    options: Options,
) -> PyResult<(u64, Vec<LostRow>)> {
    let log = reader.whole_log(py)?;
    let names = topics_in(reader, log, topics).into_iter().map(|topic| topic.name.clone());
    let select = window.limit(Select::topics(names));
    let kind = Kind::by_name(kind)
        .filter(|kind| !matches!(kind, Kind::Table(_)))
        .ok_or_else(|| unknown_kind(py, kind))?;
    if kind == Kind::Bag2 && matches!(**log, AnyLog::Rld(_)) {
        let what = format!("{} logs cannot be converted to ROS messages", reader.log.format().name);
        return Err(ExceptionBuilder::new("UnsupportedError", what).raise(py));
    }
    let to_mcap = if kind == Kind::Ndjson { McapOptions::default() } else { options.mcap(py)? };
    output::write(py, reader, &out, |signals| {
        let mut file = output::create(&out, signals)?;
        let done = match kind {
            Kind::Mcap => {
                let provenance = provenance(reader, true)?;
                mcap::write(log, &select, &to_mcap, &provenance, &mut file, &mut |_| ())?
            }
            Kind::Bag2 => {
                let to_bag = options.bag2(to_mcap.velodyne.clone());
                bag2::write(log, &select, &to_bag, &mut file, &mut |_| ())?
            }
            // The only remaining output format is NDJSON.
            _ => ndjson::write(&***log, &select, Jobs::all(), &mut file, &mut |_| ())?,
        };
        file.flush()?;
        Ok((done.messages, lost_rows(done.losses)))
    })
}

/// Writes an RLD log as CSV, in the format that the RocketLogger software writes.
///
/// The block times are written as dates or as nanoseconds. Returns the number of rows, and the data
/// that the file cannot contain.
#[pyfunction]
pub(crate) fn export_logger_csv(
    py: Python<'_>,
    reader: &Reader,
    out: PathBuf,
    dates: bool,
) -> PyResult<(u64, Vec<LostRow>)> {
    let log = rld(py, reader)?;
    let style = if dates { CsvStyle::Dates } else { CsvStyle::Nanoseconds };
    output::write(py, reader, &out, |signals| {
        let mut file = output::create(&out, signals)?;
        let written = logger_csv::write(log, style, &mut file)?;
        file.flush()?;
        Ok((written.messages, lost_rows(written.losses)))
    })
}

/// Finds topics of `reader`, given by their indices, in the complete log `log`.
///
/// The reader of a remote log only has the topics in the fetched parts of the log. The indices in
/// the complete log may therefore differ, so the topics are found by name.
fn topics_in<'a>(
    reader: &Reader,
    log: &'a AnyLog,
    topics: impl IntoIterator<Item = usize>,
) -> Vec<&'a Topic> {
    let known = topics.into_iter().filter_map(|index| reader.log.topics().get(index));
    known.filter_map(|known| log.topics().iter().find(|topic| topic.name == known.name)).collect()
}

fn unknown_kind(py: Python<'_>, kind: &str) -> PyErr {
    ExceptionBuilder::new("UnsupportedError", format!("the output format {kind} is unknown")).raise(py)
}

/// Returns the provenance of the data, which is the name of the log and the SHA-256 of its bytes.
///
/// If `stores_hash` is false, the output format cannot store the hash. The hash is then not
/// computed, because this would require reading the whole file.
fn provenance(reader: &Reader, stores_hash: bool) -> rovelog::Result<Provenance> {
    let path = reader.origin.absolute_path.as_deref();
    let name = path.and_then(Path::file_name).map_or_else(|| "-".into(), |name| name.to_string_lossy());
    let local_copy = reader.remote.as_ref().map(|remote| remote.local_path());
    let digits = match (&reader.memory, local_copy.or(path)) {
        _ if !stores_hash => return Ok(Provenance::new(name)),
        (Some(bytes), _) => rovelog_export::sha256(&bytes[..]),
        (None, Some(path)) => File::open(path).and_then(rovelog_export::sha256),
        (None, None) => return Ok(Provenance::new(name)),
    };
    Ok(Provenance::new(name).with_sha256(digits.map_err(|error| Error::io("rovelog", error))?))
}
