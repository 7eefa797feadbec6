//! Compression options of the commands that write bags or export files.

use clap::ValueEnum;
use rovelog::AnyLog;
use rovelog::rosbag12::{Version, v2};
use rovelog_export::mcap::McapCompression;

use crate::failure::Failure;
use crate::input::Input;

/// Compression of a bag or an MCAP file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compression {
    None,
    Lz4,
    // bzip2, which only bags support.
    Bz2,
    /// Zstandard, which only MCAP supports. The value is the compression level from 1 to 22.
    #[value(skip)]
    Zstd(i32),
}

/// Parses `none`, `lz4`, `bz2`, `zstd`, or `zstd` with a level, such as `zstd:3`.
pub(crate) fn parse_compression(text: &str) -> Result<Compression, String> {
    Ok(match text {
        "none" => Compression::None,
        "lz4" => Compression::Lz4,
        "bz2" => Compression::Bz2,
        "zstd" => Compression::Zstd(1),
        _ => match text.strip_prefix("zstd:").map(str::parse) {
            Some(Ok(level @ 1..=22)) => Compression::Zstd(level),
            Some(_) => return Err("the level of zstd must be a number from 1 to 22".to_owned()),
            None => return Err("expected none, lz4, zstd or zstd:LEVEL; bag2: none, lz4 or bz2".to_owned()),
        },
    })
}

impl Compression {
    /// Returns the equivalent option of the bag writer, or `None` if bags do not support this
    /// compression.
    pub(crate) fn for_bag(self) -> Option<v2::Compression> {
        match self {
            Self::None => Some(v2::Compression::None),
            Self::Lz4 => Some(v2::Compression::Lz4),
            Self::Bz2 => Some(v2::Compression::Bz2),
            Self::Zstd(_) => None,
        }
    }

    /// Returns the equivalent option of the MCAP writer, or `None` if MCAP does not support this
    /// compression.
    pub(crate) fn for_mcap(self) -> Option<McapCompression> {
        match self {
            Self::None => Some(McapCompression::None),
            Self::Lz4 => Some(McapCompression::Lz4),
            Self::Bz2 => None,
            Self::Zstd(level) => Some(McapCompression::Zstd(level)),
        }
    }
}

/// Options of the commands that read a V2.0 bag and write a new V2.0 bag.
#[derive(clap::Args)]
pub(crate) struct ChunkArgs {
    /// ROS bag V2.0: compression of the output: none, lz4 or bz2; default: as in the input
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    compression: Option<Compression>,
}

impl ChunkArgs {
    /// Sets the compression of the bag that is written from `log`. Returns an error if `log` is not
    /// a V2.0 bag, because chunks exist only in V2.0 bags.
    pub(crate) fn apply(&self, log: &mut AnyLog, input: &Input) -> Result<(), Failure> {
        let Some(compression) = self.compression.and_then(Compression::for_bag) else { return Ok(()) };
        match log {
            AnyLog::Rosbag(bag) if bag.version() == Version::V2_0 => {
                bag.set_compression(compression);
                Ok(())
            }
            _ => Err(Failure::usage("--compression applies only to V2.0 ROS bags")
                .next("convert an older bag to V2.0: rovelog export FILE -o new.bag --compression lz4")
                .at(&input.path)),
        }
    }
}
