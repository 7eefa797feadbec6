//! How the chunks of a bag that is written are compressed.

use rovelog::AnyLog;
use rovelog::rosbag12::Version;
use rovelog::rosbag12::v2::Compression;
use rovelog_export::mcap::McapCompression;

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

/// A compression of an exported file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePacking {
    None,
    Lz4,
    /// Bags only.
    Bz2,
    /// MCAP only: the level.
    Zstd(i32),
}

/// Reads `none`, `lz4`, `bz2`, `zstd` or `zstd:3`.
pub(crate) fn file_packing(text: &str) -> Result<FilePacking, String> {
    Ok(match text {
        "none" => FilePacking::None,
        "lz4" => FilePacking::Lz4,
        "bz2" => FilePacking::Bz2,
        "zstd" => FilePacking::Zstd(1),
        _ => match text.strip_prefix("zstd:").map(str::parse) {
            Some(Ok(level @ 1..=22)) => FilePacking::Zstd(level),
            Some(_) => return Err("the level of zstd is a number from 1 to 22".to_owned()),
            None => return Err("expected none, lz4, zstd or zstd:LEVEL; bag2: none, lz4 or bz2".to_owned()),
        },
    })
}

impl FilePacking {
    /// Returns the compression of a bag; `None` if bags have no such one.
    pub(crate) fn of_bag(self) -> Option<Compression> {
        match self {
            Self::None => Some(Compression::None),
            Self::Lz4 => Some(Compression::Lz4),
            Self::Bz2 => Some(Compression::Bz2),
            Self::Zstd(_) => None,
        }
    }

    /// Returns the compression of an MCAP file; `None` if they have no such one.
    pub(crate) fn of_mcap(self) -> Option<McapCompression> {
        match self {
            Self::None => Some(McapCompression::None),
            Self::Lz4 => Some(McapCompression::Lz4),
            Self::Bz2 => None,
            Self::Zstd(level) => Some(McapCompression::Zstd(level)),
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
