//! The command `rovelog extract`, which writes the images and point clouds of a log to files. The
//! file `index.csv` lists them.

mod rosbag;
mod vel;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rovelog::AnyLog;
use rovelog_export::cloud;
use serde::Serialize;

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
Compressed images are copied byte for byte, and raw images become PNG files. Each revolution of a \
Velodyne becomes one point cloud with x (forward), y (left), z (up), intensity, ring, and seconds \
since the start of the revolution. kitti files have only x, y, z and intensity. las and laz files \
store coordinates in tenths of a millimeter. An HDL-64E needs its calibration. If the log does not \
contain it, name the db.xml of the sensor with --calibration. The table index.csv lists every file \
with its time, size and byte offset in the log.

Examples:
  rovelog extract drive.vel -o drive
  rovelog extract drive.vel -o drive --only images
  rovelog extract drives/ -o out                         a folder for each log
  rovelog extract drive.vel -o drive --only packets      to packets.pcap
  rovelog extract drive.vel -o drive --only clouds --cloud ply -S +10s -E +20s";

/// Extract images and point clouds as files
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Output folder; created if it does not exist. Several logs get a folder each in it
    #[arg(short, long, value_name = "DIR", required = true)]
    output: PathBuf,
    /// Extract only images, only clouds (point clouds), or only packets (Velodyne packets as a PCAP
    /// file); default: images and clouds
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = true)]
    only: Option<What>,
    /// Format of point clouds: ply, pcd, las, laz, npz or kitti; default: both ply and pcd
    #[arg(long, value_name = "FORMAT", value_parser = cloud_format)]
    cloud: Option<cloud::Format>,
    #[command(flatten)]
    velodyne: VelodyneArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Kind of data that can be extracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Images,
    Clouds,
    Packets,
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

    /// Returns the first option given by the user that has no effect, because it only affects point
    /// clouds and no point clouds are extracted. Only images are extracted from ROS bags.
    fn without_effect(&self, log: &AnyLog) -> Option<&'static str> {
        let images_only = matches!(log, AnyLog::Rosbag(_)) || self.only == Some(What::Images);
        if self.wants(What::Clouds) && !images_only {
            return None;
        }
        let cloud = self.cloud.map(|_| "--cloud").or_else(|| self.velodyne.chosen_of_points());
        // `--model` also affects packets, because the times of packets depend on the sensor model.
        cloud.or_else(|| self.velodyne.chosen().filter(|_| images_only))
    }
}

/// A row of `index.csv`.
#[derive(Default, Serialize)]
struct Row {
    t_ns: String,
    time: Option<String>,
    file: String,
    width: Option<i64>,
    height: Option<i64>,
    encoding: Cow<'static, str>,
    frame_id: String,
    points: Option<usize>,
    partial: Option<bool>,
    offset: u64,
}

/// JSON document with the schema `rovelog.extract/2`, which `rovelog extract -f json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    output: String,
    images: Count,
    clouds: Count,
    packets: Count,
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
    images: u64,
    clouds: u64,
    packets: u64,
    /// Worst status that any step of the extraction had so far.
    status: Status,
}

impl Extraction<'_> {
    /// Writes one file into the output folder.
    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut OutFile) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut file = self.folder.file(&self.output.join(name), &self.inputs)?;
        write(&mut file)?;
        file.finish()
    }
}

/// Returns a unique file name for a time in nanoseconds. The time is padded to 19 digits, the
/// length of the largest 64-bit time, so that sorting the names also sorts the times. Files with
/// equal times get a number, for example `images/0000000000000000017_2.jpg`.
fn unique_name(taken: &mut HashSet<String>, folder: &str, nanos: i64, extension: &str) -> String {
    let dot = if extension.is_empty() { "" } else { "." };
    let base = format!("{folder}/{nanos:019}");
    let mut name = format!("{base}{dot}{extension}");
    for number in 2.. {
        if taken.insert(name.clone()) {
            break;
        }
        name = format!("{base}_{number}{dot}{extension}");
    }
    name
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    if let Some((cloud, feature)) = args.cloud.and_then(|cloud| Some((cloud, cloud.missing()?))) {
        return Err(Failure::not_built_in(&format!("cannot write {}", cloud.name()), feature));
    }
    let outputs =
        Outputs { path: Some(&args.output), is_file: false, extension: None, folder: None, out: args.out };
    let is_many = is_many(args.logs.paths());
    let mut without = 0;
    let status = outputs.each(args.logs.paths(), context, |input, output| {
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
        AnyLog::Rosbag(_) => {
            "nothing was written: no image was found, and point clouds cannot be extracted from bags"
                .to_owned()
        }
        AnyLog::Vel(_) => "nothing was written: no image and no point cloud was found".to_owned(),
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
    if matches!(log, AnyLog::Rosbag(_)) && !args.wants(What::Images) {
        return Err(here(
            Failure::usage("only images can be extracted from ROS bags")
                .next("leave out --only, or use --only images"),
        ));
    }
    if let Some(option) = args.without_effect(log) {
        return Err(here(
            Failure::usage(format!("{option} applies only to point clouds, but this command extracts none"))
                .next(format!("leave {option} out")),
        ));
    }
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&**log)).map_err(here)?;
    let mut inputs = input.files(context);
    inputs.extend(args.velodyne.file());
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
        images: 0,
        clouds: 0,
        packets: 0,
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
        AnyLog::Rosbag(bag) => done.bag_images(bag, &window)?,
        _ => {}
    }
    let status = context.notices.end_of_log(log.as_log(), &input.path).max(done.status);
    if done.rows.is_empty() {
        return Ok(Extracted { is_empty: true, status });
    }
    done.file("index.csv", |file| {
        let mut table = csv::Writer::from_writer(file);
        done.rows.iter().try_for_each(|row| table.serialize(row))?;
        Ok(table.flush()?)
    })?;
    done.folder.finish()?;
    let (images, clouds) = (done.images, done.clouds);
    let what = match args.only {
        Some(What::Packets) => count(done.packets, "packet"),
        _ => format!("{} and {}", count(images, "image"), count(clouds, "cloud")),
    };
    context.note(&format!("wrote {what} to {}", output.display()));
    if format == Format::Json {
        let mut out = context.out();
        out.document(&Document {
            schema: "rovelog.extract/2",
            file: input.name(),
            output: output.to_string_lossy().into_owned(),
            images: Count(images),
            clouds: Count(clouds),
            packets: Count(done.packets),
            index: output.join("index.csv").to_string_lossy().into_owned(),
        })?;
    }
    Ok(Extracted { is_empty: false, status })
}
