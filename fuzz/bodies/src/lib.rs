//! The properties that the fuzz targets check, as functions that receive the input as bytes. Each
//! function must return for any input.
#![forbid(unsafe_code)]
#![expect(clippy::missing_panics_doc, reason = "a body reports a violation by a panic")]

mod alike;
pub mod campaign;
mod cells;
mod export;
mod pairs;
mod peers;
mod rld;
mod rld_parts;
mod rosbag;
mod rosbag2;
mod ulog;
mod vel;

pub use export::any_export;
pub use pairs::{any_merge, any_recover};
pub use peers::{rosbag_peers, rosbag_peers_rewrite, ulog_peers, ulog_peers_rewrite, ulog_peers_write};
pub use rld::{rld_csv, rld_declarations, rld_read, rld_rewrite, rld_stream, rld_write};
pub use rld_parts::rld_parts;
pub use rosbag::{rosbag_declarations, rosbag_read, rosbag_rewrite, rosbag_stream, rosbag_write};
pub use rosbag2::{rosbag_chunk, rosbag_chunk_write};
pub use ulog::{ulog_declarations, ulog_read, ulog_rewrite, ulog_stream, ulog_write};
pub use vel::{vel_declarations, vel_read, vel_rewrite, vel_stream, vel_texts, vel_write};

/// Function of a fuzz target. It checks a property of the code for an input.
pub type Body = fn(&[u8]);

/// Returns the functions with these names, each paired with its name.
macro_rules! bodies {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name)),*] };
}

/// All functions of fuzz targets, each paired with the name of its target. Tests run these
/// functions on files.
pub const ALL: &[(&str, Body)] = bodies![
    any_export,
    any_merge,
    any_recover,
    detect,
    rld_csv,
    rld_declarations,
    rld_parts,
    rld_read,
    rld_rewrite,
    rld_stream,
    rld_write,
    rosbag_chunk,
    rosbag_chunk_write,
    rosbag_declarations,
    rosbag_peers,
    rosbag_peers_rewrite,
    rosbag_read,
    rosbag_rewrite,
    rosbag_stream,
    rosbag_write,
    ulog_declarations,
    ulog_peers,
    ulog_peers_rewrite,
    ulog_peers_write,
    ulog_read,
    ulog_rewrite,
    ulog_stream,
    ulog_write,
    vel_declarations,
    vel_read,
    vel_rewrite,
    vel_stream,
    vel_texts,
    vel_write,
];

/// Checks that format detection matches the readers. If the format of a log is detected, the reader
/// of this format must not reject the log as another format.
pub fn detect(data: &[u8]) {
    use rovelog::{Detection, ErrorKind};
    let detected = rovelog::detect(&data[..data.len().min(rovelog::core::format::PROBE_LEN)]);
    let opened = rovelog::from_bytes(rovelog::Bytes::copy_from_slice(data), &rovelog::ReadOptions::default());
    if let Err(error) = opened {
        let refused_as_other = error.kind == ErrorKind::NotThisFormat;
        assert!(!(matches!(detected, Detection::Format(_)) && refused_as_other), "{detected:?}: {error}");
    }
}
