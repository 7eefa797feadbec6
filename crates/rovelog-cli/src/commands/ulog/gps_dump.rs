//! The command `rovelog ulog gps-dump`. It extracts the raw bytes that the autopilot and a GPS
//! receiver exchanged.

use std::io::Write as _;

use rovelog::ulog_format::px4::gps_dump;

use crate::context::{Context, Format};
use crate::destination::OutputArgs;
use crate::failure::{Failure, Outcome};
use crate::input::LogArg;
use crate::text::{count, wrote};

const MORE: &str = "\
The data is written in the protocol of the receiver (UBX, NMEA, RTCM), as logged in the topic \
gps_dump.

Examples:
  rovelog ulog gps-dump flight.ulg -o flight.ubx
  rovelog ulog gps-dump flight.ulg -o sent.ubx --to-device --instance 1";

/// Extract the raw data that a GPS receiver sent or received
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(super) struct Args {
    #[command(flatten)]
    log: LogArg,
    #[command(flatten)]
    output: OutputArgs,
    /// Extract the data sent to the GPS receiver instead of the data received from it
    #[arg(long)]
    to_device: bool,
    /// Number of the GPS receiver, counted from 0; default 0
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    instance: u8,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    context.format(&[Format::Text])?;
    let input = args.log.input()?;
    let mut out = args.output.create("receiver.ubx", &input.files(context), context)?;
    let log = input.open(context)?;
    let mut bytes = 0;
    let wanted = gps_dump(input.ulog(&log)?)
        .filter(|piece| piece.instance == args.instance && piece.to_device == args.to_device);
    for piece in wanted {
        out.write_all(&piece.bytes)?;
        bytes += piece.bytes.len() as u64;
    }
    // An empty output file would look like a success. When the error is returned, `out` is dropped,
    // which removes the file.
    if bytes == 0 {
        return Err(Failure::usage(format!(
            "the log has no raw data (topic gps_dump) of GPS receiver {}",
            args.instance
        ))
        .next(
            "check with rovelog topics FILE whether the log has this topic, or choose another receiver with \
             --instance",
        )
        .at(&input.path));
    }
    let written = out.finish()?;
    context.note(&format!("extracted {}{}", count(bytes, "byte"), wrote(written.as_deref())));
    Ok(context.notices.end_of_log(log.as_log(), &input.path))
}
