//! The command `rovelog vel`, which has subcommands for VEL logs only.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Subcommand;
use rovelog::vel_format::declared::Types;
use rovelog::vel_format::{VelReader, hash, simple_hash};
use rovelog::{AnyLog, Error};
use serde::Serialize;

use crate::context::{Context, Format};
use crate::failure::{Outcome, Status};
use crate::input::Input;
use crate::machine::Count;
use crate::output::Out;
use crate::text::escape;

/// VEL only: show the ids of message types
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Vel,
}

#[derive(Subcommand)]
enum Vel {
    Hash(HashArgs),
}

const MORE: &str = "\
The id of a message type is a short hash of its name, so two names can have the same id. The names \
are compared with the published message types, with the types declared by --types, and with the \
ids in the log given by --log.

Examples:
  rovelog vel hash CompassM
  rovelog vel hash OdometryM MapDataM --log drive.vel";

/// Show the id of a message type
#[derive(clap::Args)]
#[command(after_help = MORE)]
struct HashArgs {
    /// Names of the message types whose ids are shown
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Also show whether messages in this log have these ids
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// A message type name in the JSON document `rovelog.vel.hash/2`.
#[derive(Serialize)]
struct NameDoc<'a> {
    name: &'a str,
    id: String,
    /// Name of the published VEL message type that has this id.
    published: Option<&'static str>,
    /// Name of the message type that the user declared (`--types`) and that has this id.
    declared: Option<String>,
    /// True if a second name has the same id, so that logs cannot distinguish the two message
    /// types.
    collides: bool,
    /// Number of records with this id in the log.
    records: Option<Count>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    names: Vec<NameDoc<'a>>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let Vel::Hash(args) = &args.command;
    let format = context.format(&[Format::Text, Format::Json])?;
    let log = match &args.log {
        None => None,
        Some(path) => {
            let input = Input::new(Some(path))?;
            match input.open(context)? {
                AnyLog::Vel(reader) => Some(reader),
                other => return Err(input.wrong_format(&other, "VEL")),
            }
        }
    };
    let types = Types::parse(&context.options.declarations).map_err(Error::from)?;
    let mut names: Vec<NameDoc<'_>> = Vec::new();
    for name in &args.names {
        let id = simple_hash(name).map_err(Error::from)?;
        let published = hash::published(id);
        let declared = types.declared().iter().find(|declared| declared.type_id() == id);
        let declared = declared.map(|declared| declared.name().to_owned());
        let collides = published.is_some_and(|other| other != name)
            || declared.as_ref().is_some_and(|other| other != name);
        let records = log.as_ref().map(|log| records(log, id));
        names.push(NameDoc { name, id: format!("0x{id:08X}"), published, declared, collides, records });
    }
    let mut out = context.out();
    if format == Format::Text {
        names.iter().try_for_each(|doc| text(&mut out, doc, &names))?;
    } else {
        out.document(&Document { schema: "rovelog.vel.hash/2", names })?;
    }
    out.flush()?;
    Ok(Status::Done)
}

fn records(reader: &VelReader, id: u32) -> Count {
    Count(reader.messages().filter(|message| message.header.type_id.get() == id).count() as u64)
}

/// Prints a line for the message type `doc`. `all` are the message types on the command line, of
/// which two may have the same id.
fn text(out: &mut Out, doc: &NameDoc<'_>, all: &[NameDoc<'_>]) -> std::io::Result<()> {
    write!(out, "{}  {}", doc.id, escape(doc.name))?;
    for (known, word) in [(doc.published, "published"), (doc.declared.as_deref(), "declared")] {
        match known {
            Some(name) if name != doc.name => write!(out, "  collides with {}", escape(name))?,
            Some(_) => write!(out, "  {word}")?,
            None => {}
        }
    }
    for colliding in all.iter().filter(|other| other.id == doc.id && other.name != doc.name) {
        write!(out, "  collides with {}", escape(colliding.name))?;
    }
    if let Some(records) = &doc.records {
        write!(out, "  {records} in the log")?;
    }
    writeln!(out)
}
