//! `rovelog ulog gps-dump`: what went between the autopilot and a GPS receiver.

use std::io::Write as _;
use std::path::PathBuf;

use rovelog::ulog_format::px4::gps_dump;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome};
use crate::input::LogArg;
use crate::outfile::{OutArgs, OutFile};
use crate::text::count;

const MORE: &str = "\
The bytes are those of the receiver's own protocol (UBX, NMEA, RTCM), as the topic gps_dump has them.

Examples:
  rovelog ulog gps-dump flight.ulg -o flight.ubx
  rovelog ulog gps-dump flight.ulg -o sent.ubx --to-device --instance 1";

/// Write what a GPS receiver sent, or was sent, byte for byte
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(super) struct Args {
    #[command(flatten)]
    log: LogArg,
    /// The file to write
    #[arg(short, long, value_name = "OUT", required = true)]
    output: PathBuf,
    /// What the autopilot sent, not what the receiver sent
    #[arg(long)]
    to_device: bool,
    /// Which receiver
    #[arg(long, value_name = "N", default_value_t = 0)]
    instance: u8,
    #[command(flatten)]
    out: OutArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let input = args.log.input()?;
    let mut out = OutFile::create(&args.output, &input.files(context), args.out)?;
    let log = input.open(context)?;
    let mut bytes = 0;
    let wanted = gps_dump(input.ulog(&log)?)
        .filter(|piece| piece.instance == args.instance && piece.to_device == args.to_device);
    for piece in wanted {
        out.write_all(&piece.bytes)?;
        bytes += piece.bytes.len() as u64;
    }
    if bytes == 0 {
        return Err(Failure::usage(format!(
            "the log holds nothing of this kind of receiver {}",
            args.instance
        ))
        .next("see whether it has the topic gps_dump: rovelog topics FILE")
        .at(&input.path));
    }
    out.finish()?;
    context.note(&format!("wrote {} to {}", count(bytes, "byte"), args.output.display()));
    Ok(context.notices.loss(&log.info().lost, &input.path))
}
