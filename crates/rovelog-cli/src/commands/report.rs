//! `rovelog report`: a log as one page.

use std::path::{Path, PathBuf};

use rovelog_export::report::{self, ReportOptions};

use crate::args::{Context, Format};
use crate::input::Input;
use crate::outfile::{LogOut, OutArgs};
use crate::report::{Failure, Outcome, note};

const MORE: &str = "\
The page is one file: it opens offline, asks for nothing from outside, and the same log gives the same bytes.

Examples:
  rovelog report flight.ulg -o flight.html
  rovelog report flight.ulg -o public.html --redact    without places, parameters and serial numbers";

/// Write a log as one page that opens offline: overview, track, plots with zoom, console, parameters
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The page to write
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Leave out where the vehicle was, its parameters and what identifies it
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    out: OutArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let path = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let html = |path: &Path| {
        path.extension()
            .is_some_and(|name| name.eq_ignore_ascii_case("html") || name.eq_ignore_ascii_case("htm"))
    };
    if let Some(path) = path.filter(|path| !html(path)) {
        return Err(Failure::usage("a report is a page of HTML").next("name it so: -o report.html").at(path));
    }
    let input = Input::new(args.file.as_deref())?;
    let (log, provenance) = input.open_with_provenance(context, true)?;
    let mut options = ReportOptions::default();
    options.redact = args.redact;
    let mut out = LogOut::create(path, "report.html", &[&input.path], args.out, context)?;
    report::write(&log, &provenance, &options, &mut out)
        .map_err(|error| Failure::from(error).at(&input.path))?;
    out.finish()?;
    if let (Some(path), false) = (path, context.global.quiet) {
        note(&format!("wrote {}", path.display()));
    }
    Ok(context.report.loss(&log.info().lost, &input.path))
}
