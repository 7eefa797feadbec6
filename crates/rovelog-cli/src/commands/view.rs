//! The command `rovelog view`, which runs a local server with a page to explore logs in the
//! browser.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use rovelog_view::{View, ViewError, ViewOptions};

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::outfile::{OutArgs, OutFile};
use crate::read_scope::input_format;

const MORE: &str = "\
Opens a local web page with a searchable tree of topics and signals, plots with a shared cursor \
and zoom, console messages, the track, images and point clouds. A second log can be drawn over the \
first. The server listens only on 127.0.0.1, with a random token in the address. It reads the \
given logs and writes nothing. Press Ctrl-C to end it.

--save writes a page that needs no server: it reads the logs that you drop on it.

view needs the Cargo feature view, which released binaries and the Python package have. To build \
it, run cargo install --path crates/rovelog-cli --features full.

Examples:
  rovelog view flight.ulg
  rovelog view flights/                 a table of all logs in a folder
  rovelog view --no-open --port 8000 .  print the address only";

/// Explore logs in the browser: search, plot, zoom, compare
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Log files, folders (all logs in them) and patterns in quotes ('*.ulg')
    #[arg(value_name = "LOG", required_unless_present = "save")]
    logs: Vec<String>,
    /// Port on which the server listens; default: any free port
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Print the address, but do not open a browser
    #[arg(long)]
    no_open: bool,
    /// Write a page that opens logs without a server, and end
    #[arg(long, value_name = "PAGE", conflicts_with_all = ["logs", "port", "no_open"])]
    save: Option<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    if let Some(path) = &args.save {
        let page = rovelog_view::page().ok_or_else(|| {
            Failure::failed("this build does not contain the page")
                .next("use a released binary, or build the page and this program: docs/tools/browser.md")
        })?;
        return save(page, path, args.out, context);
    }
    if args.logs.iter().any(rovelog::is_address) {
        // The address is not printed, because it may contain secrets.
        return Err(Failure::usage("rovelog view reads only logs on this machine")
            .next("copy the log to this machine first, or plot it with rovelog plot FILE SIGNAL"));
    }
    let mut options = ViewOptions::default();
    options.read = context.options.clone();
    options.format = input_format(context).map(str::to_owned);
    options.port = args.port;
    options.arguments = context.global.read_options();
    let view = View::open(&args.logs, options).map_err(|error| match error {
        ViewError::Source(error) => error.into(),
        ViewError::Listen { .. } => {
            Failure::failed(error.to_string()).next("leave out --port to use any free port")
        }
        error => Failure::failed(error.to_string()),
    })?;
    let address = view.address();
    let mut out = context.out();
    writeln!(out, "{address}")?;
    out.flush()?;
    // The browser runs as a detached process. Waiting for it would block the server.
    if !args.no_open && open::that_detached(&address).is_err() {
        context.note("no browser was found, so open the address in a browser yourself");
    }
    context.note("Ctrl-C ends the server");
    view.run().map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Status::Done)
}

/// Writes the page that opens logs without a server.
fn save(page: &[u8], path: &Path, args: OutArgs, context: &Context) -> Outcome {
    let mut out = OutFile::create(path, &[], args)?;
    out.write_all(page)?;
    out.finish()?;
    context.note(&format!("wrote {}; open it in a browser and drop logs on it", path.display()));
    Ok(Status::Done)
}
