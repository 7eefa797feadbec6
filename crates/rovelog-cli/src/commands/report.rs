//! `rovelog report`: a log as an HTML page.

use std::path::Path;

use rovelog_export::report::{self, ReportOptions};

use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::LogArg;
use crate::need::Need;

const MORE: &str = "\
The report is one HTML file and loads nothing from the network. The same log always gives the same \
bytes.

Examples:
  rovelog report flight.ulg -o flight.html
  rovelog report flight.ulg -o public.html --redact   to publish it";

/// Write an HTML report: overview, track, plots, console, parameters
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    /// Leave out positions, parameters and everything that identifies the vehicle
    #[arg(long)]
    redact: bool,
    /// Colours: light or dark; default: those of the reader's system
    #[arg(long, value_name = "NAME", value_parser = super::plot::theme)]
    theme: Option<rovelog_export::plot::Theme>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let html = |path: &Path| {
        path.extension()
            .is_some_and(|name| name.eq_ignore_ascii_case("html") || name.eq_ignore_ascii_case("htm"))
    };
    if let Some(path) = args.output.path().filter(|path| !html(path)) {
        return Err(Failure::usage("report writes HTML only")
            .next("use the extension .html: -o report.html")
            .at(path));
    }
    let input = args.log.input()?;
    let (log, provenance) = input.open_with_provenance(context, &Need::All, true)?;
    let mut options = ReportOptions::default();
    options.redact = args.redact;
    options.theme = args.theme;
    let mut out = args.output.create("report.html", &input.files(context), context)?;
    report::write(&log, &provenance, &options, &mut out)
        .map_err(|error| Failure::from(error).at(&input.path))?;
    if let Some(path) = out.finish()? {
        context.note(&format!("wrote {}", path.display()));
    }
    Ok(context.notices.loss(&log.info().lost, &input.path))
}
