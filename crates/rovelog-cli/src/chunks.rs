//! How the chunks of a bag that is written are compressed.

use rovelog::AnyLog;
use rovelog::rosbag12::Version;
use rovelog::rosbag12::v2::Compression;

use crate::failure::Failure;
use crate::input::Input;

/// A compression of chunks.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Packing {
    None,
    Lz4,
    Bz2,
}

impl From<Packing> for Compression {
    fn from(packing: Packing) -> Self {
        match packing {
            Packing::None => Self::None,
            Packing::Lz4 => Self::Lz4,
            Packing::Bz2 => Self::Bz2,
        }
    }
}

/// Options of commands that write a bag from a bag.
#[derive(clap::Args)]
pub(crate) struct ChunkArgs {
    /// ROS bag V2.0: compression of the chunks to write: none, lz4 or bz2; default: as in the log
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    compression: Option<Packing>,
}

impl ChunkArgs {
    /// Sets what is made of a log; an error if it has no chunks.
    pub(crate) fn apply(&self, log: &mut AnyLog, input: &Input) -> Result<(), Failure> {
        let Some(packing) = self.compression else { return Ok(()) };
        match log {
            AnyLog::Rosbag(bag) if bag.version() == Version::V2_0 => {
                bag.set_compression(packing.into());
                Ok(())
            }
            _ => Err(Failure::usage("--compression is for ROS bags V2.0")
                .next("for an older bag, write V2.0: rovelog export FILE -o new.bag --compression lz4")
                .at(&input.path)),
        }
    }
}
