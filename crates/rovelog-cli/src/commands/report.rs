//! The command `rovelog report`, which describes a log in an HTML page.

use std::path::{Path, PathBuf};

use rovelog::core::internal::layout::EscapedTexts;
use rovelog::{Ledger, Select};
use rovelog_export::Loss;
use rovelog_export::report::{self, ReportOptions};

use crate::context::{Context, Format};
use crate::destination::{Destination, OutputArgs};
use crate::failure::{Failure, Outcome};
use crate::input::{Input, LogArgs};
use crate::outputs::Outputs;
use crate::read_scope::ReadScope;

const MORE: &str = "\
The report is one HTML file that loads nothing from the network. The same log always gives the \
same bytes. Several logs are written to several reports in a folder.

Examples:
  rovelog report flight.ulg -o flight.html
  rovelog report flight.ulg -o public.html --redact   to publish it
  rovelog report flights/ -o reports/         a report for each log";

/// Write an HTML report: overview, track, plots, console, parameters
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Leave out positions, parameters and everything else that identifies the vehicle
    #[arg(long)]
    redact: bool,
    /// Colors of the page: light or dark; by default, the page follows the reader's system setting
    #[arg(long, value_name = "NAME", value_parser = super::plot::theme)]
    theme: Option<rovelog_export::plot::Theme>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let html = |path: &Path| {
        path.extension()
            .is_some_and(|name| name.eq_ignore_ascii_case("html") || name.eq_ignore_ascii_case("htm"))
    };
    let outputs = Outputs {
        path: args.output.path(),
        is_file: args.output.path().is_some_and(html),
        extension: Some("html"),
        folder: Some("-o reports/".to_owned()),
        out: args.output.out,
    };
    let write = |input: &Input, path: Option<&Path>| {
        if let Some(path) = path.filter(|path| !html(path)) {
            return Err(Failure::usage("rovelog report writes only HTML")
                .next("use the extension .html: -o report.html")
                .at(path));
        }
        write(args, input, path, context)
    };
    outputs.read_parallel(&args.logs.files, context, write, |input, written| {
        if let Some(path) = written.path {
            context.note(&format!("wrote {}", path.display()));
        }
        let left_out = context.notices.losses(&written.losses);
        context.notices.escaped(&written.escaped, &input.path);
        Ok(left_out.max(context.notices.loss(&written.lost, &input.path)))
    })
}

/// Description of a report that was written, for the messages to the user.
struct Written {
    /// Path of the report, or `None` if the report was written to stdout.
    path: Option<PathBuf>,
    /// Data of the log that could not be read.
    lost: Ledger,
    /// Fields with texts that are not valid UTF-8. The report shows these texts with escape
    /// sequences.
    escaped: Vec<EscapedTexts>,
    /// Values that the report does not contain.
    losses: Vec<Loss>,
}

/// Writes the report of one log.
fn write(args: &Args, input: &Input, path: Option<&Path>, context: &Context) -> Result<Written, Failure> {
    let (log, provenance) = input.open_with_provenance(context, &ReadScope::All, true)?;
    let mut options = ReportOptions::default();
    options.redact = args.redact;
    options.theme = args.theme;
    options.jobs = context.jobs();
    let mut out = Destination::create(path, "report.html", &input.files(context), args.output.out, context)?;
    report::write(&log, &provenance, &options, &mut out)
        .map_err(|error| Failure::from(error).at(&input.path))?;
    // Some values turn out to be lost only while the report reads the columns. The list of losses
    // is therefore made afterwards.
    let losses = Loss::of_columns(&*log, &Select::all());
    let (path, escaped) = (out.finish()?, log.take_escaped_texts());
    Ok(Written { path, lost: log.losses().clone(), escaped, losses })
}
