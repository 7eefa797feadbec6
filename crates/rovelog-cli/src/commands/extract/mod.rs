//! The command `rovelog extract`, which writes the images, point clouds and maps of a log to files.
//! The file `index.csv` lists them.

mod index;
mod rosbag;
mod streams;
mod vel;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rovelog::{AnyLog, LogReader as _};
use rovelog_export::cloud::{self, Cloud, ros};
use rovelog_export::{grid, picture, stream};
use serde::Serialize;

use self::index::{COLUMNS, FileFacts, Names, Naming, Row};
use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArgs};
use crate::machine::Count;
use crate::outfile::{OutArgs, OutFile, OutFolder};
use crate::outputs::{Outputs, is_many};
use crate::text::count;
use crate::times::Times;
use crate::velodyne::VelodyneArgs;
use crate::window::{WindowArgs, span};

const MORE: &str = "\
Image files are copied byte for byte. Raw and depth images become PNG, or TIFF if PNG cannot store \
their values. The parts of a video or audio stream become one file and a table of their times. The \
point cloud of a ROS message has all fields of the message. Each revolution of a Velodyne in a VEL \
log becomes a cloud with x (forward), y (left), z (up), intensity, ring, and seconds since the start \
of the revolution. kitti files have only x, y, z and intensity. las and laz files store coordinates \
in tenths of a millimeter. Maps of ROS become PGM and YAML files for map_server. The table index.csv \
lists every file with its time, header stamp, topic, frame and byte offset in the log.

Examples:
  rovelog extract drive.vel -o drive
  rovelog extract drives/ -o out                         a folder for each log
  rovelog extract drive.vel -o drive --only packets      to packets.pcap
  rovelog extract robot.bag -o robot --only clouds --cloud ply -S +10s -E +20s
  rovelog extract robot.bag -o robot --name stamp        named by header stamp";

/// Extract images and point clouds as files
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Output folder; created if it does not exist. Several logs get a folder each in it
    #[arg(short, long, value_name = "DIR", required = true)]
    output: PathBuf,
    /// Extract only images, clouds (point clouds), maps (occupancy grids), streams (video and
    /// audio), or packets (Velodyne packets as a PCAP file); default: all but packets
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    only: Option<What>,
    /// Write images with a Bayer pattern as they are, without computing the missing colors
    #[arg(long)]
    raw: bool,
    /// Format of point clouds: ply, pcd, las, laz, npz or kitti; default: both ply and pcd
    #[arg(long, value_name = "FORMAT", value_parser = cloud_format)]
    cloud: Option<cloud::Format>,
    /// Names of files: time of the record (record, default), stamp in the header of the message
    /// (stamp), or a number (index)
    #[arg(
        long,
        value_enum,
        value_name = "BY",
        default_value_t,
        hide_possible_values = true,
        hide_default_value = true
    )]
    name: Naming,
    #[command(flatten)]
    velodyne: VelodyneArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Kind of data that can be extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum What {
    Images,
    Clouds,
    Maps,
    Streams,
    Packets,
}

impl What {
    /// Returns the kind of data in messages of the ROS type `type_name`. Returns `None` if such
    /// messages are not extracted. Images may also be parts of a stream.
    fn of_ros_type(type_name: &str) -> Option<Self> {
        if picture::is_image(type_name) {
            Some(Self::Images)
        } else if ros::is_cloud(type_name) {
            Some(Self::Clouds)
        } else if stream::is_stream(type_name) {
            Some(Self::Streams)
        } else {
            grid::is_grid(type_name).then_some(Self::Maps)
        }
    }

    /// Returns the noun for one item of this kind.
    const fn noun(self) -> &'static str {
        match self {
            Self::Images => "image",
            Self::Clouds => "cloud",
            Self::Maps => "map",
            Self::Streams => "stream",
            Self::Packets => "packet",
        }
    }

    /// Returns the name of this kind, which is also the name of its folder and its JSON key.
    fn plural(self) -> String {
        format!("{}s", self.noun())
    }
}

fn cloud_format(name: &str) -> Result<cloud::Format, String> {
    let names = || cloud::Format::ALL.map(cloud::Format::name).join(", ");
    cloud::Format::by_name(name).ok_or_else(|| format!("expected one of {}", names()))
}

impl Args {
    /// Returns true if this kind of data is extracted. Packets are extracted only on request.
    fn wants(&self, what: What) -> bool {
        self.only.map_or(what != What::Packets, |only| only == what)
    }

    /// Returns a usage error if an option has no effect, because it only affects data that is not
    /// extracted.
    fn check_effect(&self, log: &AnyLog) -> Result<(), Failure> {
        let without = |option: &str, what: &str| {
            let cause = format!("{option} applies only to {what}, but this command extracts none");
            Err(Failure::usage(cause).next(format!("leave {option} out")))
        };
        if self.cloud.is_some() && !self.wants(What::Clouds) {
            return without("--cloud", "point clouds");
        }
        if self.raw && !(self.wants(What::Images) && matches!(log, AnyLog::Rosbag(_))) {
            return without("--raw", "images of ROS bags");
        }
        let has_packets = match log {
            AnyLog::Rosbag(bag) => bag.topics().iter().any(|topic| topic.type_name == ros::VELODYNE_SCAN),
            _ => true,
        };
        let option = if has_packets && self.wants(What::Clouds) {
            None
        } else if has_packets && self.wants(What::Packets) {
            // `--model` also affects packets, because the times of packets depend on the model.
            self.velodyne.chosen_of_points()
        } else {
            self.velodyne.chosen()
        };
        option.map_or(Ok(()), |option| without(option, "the points of a Velodyne"))
    }
}

/// JSON document with the schema `rovelog.extract/2`, which `rovelog extract -f json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    output: String,
    /// Number of items of each kind.
    #[serde(flatten)]
    counts: BTreeMap<String, Count>,
    index: String,
}

/// State of the extraction of one log.
struct Extraction<'a> {
    args: &'a Args,
    context: &'a Context,
    /// Output folder of the log.
    output: &'a Path,
    folder: OutFolder,
    /// Paths of all files that are read. The output must not overwrite any of them.
    inputs: Vec<PathBuf>,
    input: &'a Input,
    times: Times,
    rows: Vec<Row>,
    /// Number of extracted items of each kind.
    counts: BTreeMap<What, u64>,
    /// Worst status that any step of the extraction had so far.
    status: Status,
}

impl Extraction<'_> {
    /// Counts extracted items.
    fn count(&mut self, what: What, items: u64) {
        *self.counts.entry(what).or_default() += items;
    }

    /// Warns that the points of a Velodyne cannot be computed. Other data may still be extracted.
    fn no_points(&mut self, failure: Failure) {
        self.context.notices.warn_failure(&failure.at(&self.input.path));
        self.status = Status::Lost;
    }

    /// Returns the content of a message. If it is not valid, prints a warning and returns `None`.
    /// `row` tells the place of the message in the log.
    fn valid<T>(&mut self, what: What, row: &Row, content: Result<T, String>) -> Option<T> {
        let why = match content {
            Ok(content) => return Some(content),
            Err(why) => why,
        };
        let Row { topic, offset, .. } = row;
        let text = format!("the {} of {topic} at byte {offset} cannot be extracted: {why}", what.noun());
        self.context.notices.warn("messages that cannot be extracted", &text);
        self.status = Status::Lost;
        None
    }

    /// Lists a file in `index.csv`.
    fn list(&mut self, row: &Row, file: FileFacts) {
        self.rows.push(Row { file, ..row.clone() });
    }

    /// Writes a point cloud, by default in two formats. `row` describes the cloud, except for its
    /// files.
    fn cloud(&mut self, cloud: &Cloud, comment: &str, row: &Row, names: &mut Names) -> Result<(), Failure> {
        let base = names.next(row);
        let formats = self.args.cloud.map_or(vec![cloud::Format::Ply, cloud::Format::Pcd], |one| vec![one]);
        for format in formats {
            let mut bytes = Vec::new();
            let written = match cloud::write(cloud, format, comment, &mut bytes) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error.to_string()),
                written => Ok(written?),
            };
            let Some(without_position) = self.valid(What::Clouds, row, written) else { return Ok(()) };
            if without_position > 0 {
                let points = count(without_position as u64, "point");
                let text =
                    format!("{} cannot store {points} without a position: {}", format.name(), row.topic);
                self.context.notices.warn("clouds with points without a position", &text);
                self.status = Status::Lost;
            }
            let file = format!("{base}.{}", format.extension());
            self.file(&file, |out| Ok(out.write_all(&bytes)?))?;
            let (points, encoding) = (Some(cloud.len() - without_position), format.name().into());
            self.list(row, FileFacts { file, encoding, points, ..row.file.clone() });
        }
        self.count(What::Clouds, 1);
        Ok(())
    }

    /// Creates a file in the output folder. `name` may contain subfolders.
    fn create(&self, name: &str) -> Result<OutFile, Failure> {
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.folder.folder(folder)?;
        }
        self.folder.file(&self.output.join(name), &self.inputs)
    }

    /// Writes one file into the output folder.
    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut OutFile) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut file = self.create(name)?;
        write(&mut file)?;
        file.finish()
    }

    /// Writes the list of extracted items.
    fn index(&self) -> Result<(), Failure> {
        self.file("index.csv", |file| {
            // Serde's structs are nested, so the names of the columns are written separately.
            let mut table = csv::WriterBuilder::new().has_headers(false).from_writer(file);
            table.write_record(COLUMNS)?;
            self.rows.iter().try_for_each(|row| table.serialize(row))?;
            Ok(table.flush()?)
        })
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    if let Some((cloud, feature)) = args.cloud.and_then(|cloud| Some((cloud, cloud.missing()?))) {
        return Err(Failure::not_built_in(&format!("cannot write {}", cloud.name()), feature));
    }
    let outputs =
        Outputs { path: Some(&args.output), is_file: false, extension: None, folder: None, out: args.out };
    let is_many = is_many(&args.logs.files);
    let mut without = 0;
    let status = outputs.each(&args.logs.files, context, |input, output| {
        let output = output.unwrap_or(&args.output);
        let log = input.open(context)?;
        let Extracted { is_empty, status } = one(args, &log, input, output, format, context)?;
        if is_empty && !is_many {
            return Err(nothing(&log).at(&input.path));
        }
        without += usize::from(is_empty);
        Ok(status)
    })?;
    if without > 0 {
        context.note(&format!("{} without images and point clouds", count(without, "log")));
    }
    Ok(status)
}

/// Returns the failure for a log without anything to extract.
fn nothing(log: &AnyLog) -> Failure {
    let cause = match log {
        AnyLog::Rosbag(_) | AnyLog::Vel(_) => {
            "nothing was written: no image, point cloud, map or stream was found".to_owned()
        }
        _ => format!("{} logs contain neither images nor point clouds", log.format().name),
    };
    Failure::failed(cause).next("list what the log contains: rovelog topics FILE")
}

/// Result of the extraction of one log.
struct Extracted {
    /// True if nothing was written, because the log contains nothing that can be extracted.
    is_empty: bool,
    status: Status,
}

/// Extracts the data of one log into the folder `output`. If there is nothing to extract, the folder
/// is not created.
fn one(
    args: &Args,
    log: &AnyLog,
    input: &Input,
    output: &Path,
    format: Format,
    context: &Context,
) -> Result<Extracted, Failure> {
    let here = |failure: Failure| failure.at(&input.path);
    if !matches!(log, AnyLog::Vel(_) | AnyLog::Rosbag(_)) {
        return Ok(Extracted { is_empty: true, status: Status::Done });
    }
    args.check_effect(log).map_err(here)?;
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&**log)).map_err(here)?;
    let mut inputs = input.files(context);
    inputs.extend(args.velodyne.calibration.clone());
    context.progress.start(Some(log.info().size));
    let mut done = Extraction {
        args,
        context,
        output,
        folder: OutFolder::create(output, args.out)?,
        inputs,
        input,
        times,
        rows: Vec::new(),
        counts: BTreeMap::new(),
        status: Status::Done,
    };
    match log {
        AnyLog::Vel(reader) => {
            if args.wants(What::Images) {
                done.images(reader, &window)?;
            }
            if args.wants(What::Clouds) {
                done.clouds(reader, &window)?;
            }
            if args.wants(What::Packets) {
                done.packets(reader, &window)?;
            }
        }
        AnyLog::Rosbag(bag) => done.bag(bag, &window)?,
        _ => {}
    }
    let status = context.notices.end_of_log(log.as_log(), &input.path).max(done.status);
    if done.rows.is_empty() {
        return Ok(Extracted { is_empty: true, status });
    }
    done.index()?;
    let items: Vec<_> = done.counts.iter().map(|(what, items)| count(*items, what.noun())).collect();
    let count_of = |what: &What| (what.plural(), Count(done.counts.get(what).copied().unwrap_or_default()));
    let counts = What::value_variants().iter().map(count_of).collect();
    done.folder.finish()?;
    context.note(&format!("wrote {} to {}", items.join(", "), output.display()));
    if format == Format::Json {
        let mut out = context.out();
        out.document(&Document {
            schema: "rovelog.extract/2",
            file: input.name(),
            output: output.to_string_lossy().into_owned(),
            counts,
            index: output.join("index.csv").to_string_lossy().into_owned(),
        })?;
    }
    Ok(Extracted { is_empty: false, status })
}
