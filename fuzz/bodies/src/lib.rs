//! Bodies of the fuzz targets, as plain functions over any bytes. Each must return for any input.
#![forbid(unsafe_code)]
#![expect(clippy::missing_panics_doc, reason = "a panic is how a body reports")]

mod alike;
pub mod campaign;
mod cells;
mod export;
mod pairs;
mod rld;
mod rosbag;
mod rosbag2;
mod ulog;
mod vel;

pub use export::any_export;
pub use pairs::{any_merge, any_recover};
pub use rld::{rld_declarations, rld_read, rld_rewrite, rld_stream, rld_write};
pub use rosbag::{rosbag_declarations, rosbag_read, rosbag_rewrite, rosbag_stream, rosbag_write};
pub use rosbag2::{rosbag_chunk, rosbag_chunk_write};
pub use ulog::{ulog_declarations, ulog_read, ulog_rewrite, ulog_stream, ulog_write};
pub use vel::{vel_declarations, vel_read, vel_rewrite, vel_stream, vel_write};

/// A body of a fuzz target.
pub type Body = fn(&[u8]);

/// Lists bodies by name.
macro_rules! bodies {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name)),*] };
}

/// All bodies with the names of their targets, for running them over files.
pub const ALL: &[(&str, Body)] = bodies![
    any_export,
    any_merge,
    any_recover,
    detect,
    rld_declarations,
    rld_read,
    rld_rewrite,
    rld_stream,
    rld_write,
    rosbag_chunk,
    rosbag_chunk_write,
    rosbag_declarations,
    rosbag_read,
    rosbag_rewrite,
    rosbag_stream,
    rosbag_write,
    ulog_declarations,
    ulog_read,
    ulog_rewrite,
    ulog_stream,
    ulog_write,
    vel_declarations,
    vel_read,
    vel_rewrite,
    vel_stream,
    vel_write,
];

/// Detection agrees with opening: a file detected as one format is never refused as another one.
pub fn detect(data: &[u8]) {
    use rovelog::{Detection, ErrorKind};
    let detected = rovelog::detect(&data[..data.len().min(rovelog::core::reader::PROBE_LEN)]);
    let opened = rovelog::from_bytes(rovelog::Bytes::copy_from_slice(data), &rovelog::ReadOptions::default());
    if let Err(error) = opened {
        let refused_as_other = error.kind == ErrorKind::NotThisFormat;
        assert!(!(matches!(detected, Detection::Format(_)) && refused_as_other), "{detected:?}: {error}");
    }
}
