//! The command `rovelog scrub`, which writes a copy of a log that can be shared.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rovelog_export::scrub::{Action, Change, Move, Place, Report, Scrub, ScrubOptions};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome, Status, file_system_failure};
use crate::input::LogArg;
use crate::machine::Count;
use crate::outfile::{OutArgs, OutFile};
use crate::table::Table;
use crate::text::{count, wrote};

/// Largest distance of a log from the place of a secret file in kilometers. Farther away, the
/// geometry would be distorted.
const MAX_DISTANCE_KM: f64 = 100.0;

const MORE: &str = "\
Positions are moved together, so that distances and directions stay. Without --secret and --to, \
they are moved to a random place. Numbers of devices, MAC addresses, user names and comments are \
removed. All other bytes of an uncompressed log stay the same. If a field looks like a position and \
is not known, nothing is written, unless it is given to --keep or --blank. NAME is a topic, a field \
such as gps.utm_x, a parameter or an info. docs/guide/share-a-log.md says what is not hidden.

Examples:
  rovelog scrub crash.ulg -o public.ulg
  rovelog scrub drive.bag -o public.bag --secret site.json --drop-images
  rovelog scrub flight.ulg -o public.ulg --to 47.6,-122.3 --shift-days -400
  rovelog scrub power.rld -o public.rld --keep comment";

/// Write a copy to share: positions moved, device ids and names removed
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    /// File with the secret move of positions, which is created if it does not exist; logs of one
    /// site that are scrubbed with the same file stay comparable
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    secret: Option<PathBuf>,
    /// Move positions to this latitude and longitude in degrees
    #[arg(long, value_name = "LAT,LON", allow_hyphen_values = true, value_parser = place)]
    to: Option<Place>,
    /// Add this number of days to dates; the time of day stays
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(-36500..=36500))]
    shift_days: i64,
    /// Replace images and videos with zeros
    #[arg(long)]
    drop_images: bool,
    /// Mask all console messages
    #[arg(long)]
    mask_texts: bool,
    /// Leave this unchanged (may be repeated)
    #[arg(long, value_name = "NAME")]
    keep: Vec<String>,
    /// Replace this with zeros (may be repeated)
    #[arg(long, value_name = "NAME")]
    blank: Vec<String>,
}

/// JSON document with the schema `rovelog.scrub/1`, which `rovelog scrub -f json` prints.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    file: String,
    output: String,
    changes: Vec<ChangeDoc<'a>>,
}

#[derive(Serialize)]
struct ChangeDoc<'a> {
    #[serde(flatten)]
    change: &'a Change,
    count: Count,
}

fn place(text: &str) -> Result<Place, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let numbers = text.split_once(',').and_then(|(north, east)| number(north).zip(number(east)));
    let place = numbers.and_then(|(north, east)| Place::new(north, east));
    place.ok_or_else(|| "expected a latitude and a longitude, such as 47.6,-122.3".to_owned())
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let input = args.log.input()?;
    let mut out = args.output.create(&input.name_for("public"), &input.files(context), context)?;
    let log = input.open_alone(context)?;
    let here = |error: rovelog::Error| Failure::from(error).at(&input.path);
    let scrub = Scrub::new(&log).map_err(here)?;
    let options = ScrubOptions {
        positions: scrub.place().map(|from| positions(args, from)).transpose()?,
        days: args.shift_days,
        drop_images: args.drop_images,
        mask_texts: args.mask_texts,
        keep: args.keep.clone(),
        blank: args.blank.clone(),
    };
    // A first pass finds doubtful fields, because a copy on stdout could not be taken back.
    let report = scrub.write(&options, &mut io::sink()).map_err(here)?;
    refuse_doubts(&report).map_err(|failure| failure.at(&input.path))?;
    scrub.write(&options, &mut context.progress.counting(&mut out)).map_err(here)?;
    let is_file = args.output.path().is_some();
    let written = out.finish()?;
    if format == Format::Json {
        let changes = report.0.iter().map(|(change, count)| ChangeDoc { change, count: Count(*count) });
        let (file, output) = (input.name(), args.output.name());
        let changes = changes.collect();
        context.out().document(&Document { schema: "rovelog.scrub/1", file, output, changes })?;
    } else if is_file {
        let mut table = Table::default().left(["IN", "FIELD", "ACTION", "COUNT"]);
        for (Change { group, name, action }, count) in &report.0 {
            let action = format!("{action:?}").to_lowercase();
            table.row([group.clone(), name.clone(), action, count.to_string()]);
        }
        let mut out = context.out();
        table.write(&mut out)?;
        out.flush()?;
    }
    let moved = report.count(Action::Moved);
    context.note(&format!("moved {}{}", count(moved, "position"), wrote(written.as_deref())));
    let unreadable = report.count(Action::Unreadable);
    if unreadable > 0 {
        let bytes = count(unreadable, "byte");
        context.notices.warn("unreadable bytes", &format!("{bytes} could not be read and are now zeros"));
    }
    let lost = if unreadable > 0 { Status::Lost } else { Status::Done };
    Ok(lost.max(context.notices.end_of_log(log.as_log(), &input.path)))
}

/// Returns the move of positions. `from` is the place of the log.
fn positions(args: &Args, from: Place) -> Result<Move, Failure> {
    let Some(path) = &args.secret else {
        return Ok(Move { from, to: args.to.unwrap_or_else(|| from.random_other()) });
    };
    let bad = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{} is no secret of rovelog scrub: {error}", path.display()))
            .next("give a file that rovelog scrub has created, or a new name")
    };
    match std::fs::read(path) {
        Ok(bytes) => {
            let secret: Move = serde_json::from_slice(&bytes).map_err(|error| bad(&error))?;
            let distance = secret.from.distance_km(from);
            if distance > MAX_DISTANCE_KM {
                return Err(bad(&format!("it is for a place {distance:.0} km away")));
            }
            Ok(secret)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_secret(path, from),
        Err(error) => Err(file_system_failure("cannot read", path, &error)),
    }
}

fn create_secret(path: &Path, from: Place) -> Result<Move, Failure> {
    let secret = Move { from, to: from.random_other() };
    let mut file = OutFile::create(path, &[], OutArgs::default())?;
    writeln!(file, "{}", serde_json::to_string_pretty(&secret).expect("numbers"))?;
    file.finish()?;
    Ok(secret)
}

fn refuse_doubts(report: &Report) -> Result<(), Failure> {
    let doubts = report.0.keys().filter(|change| change.action == Action::Doubtful);
    let name = |Change { group, name, .. }: &Change| {
        if name.is_empty() { group.clone() } else { format!("{group}.{name}") }
    };
    let names: Vec<_> = doubts.map(name).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("fields that may contain positions are not known: {}", names.join("; ")))
        .next("look at them with rovelog cat, then give each to --keep NAME or --blank NAME"))
}
