#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`table`]: topics as Parquet, Arrow IPC and CSV, for pandas, polars, DuckDB, Spark and
//!   spreadsheets;
//! - [`mcap`]: everything in one file, for Foxglove, Lichtblick, Rerun and PlotJuggler;
//! - [`bag2`]: ROS bags as V2.0, which current readers open;
//! - [`ndjson`]: records one by one, for scripts;
//! - [`logger_csv`]: logs of the RocketLogger as the logger's own CSV;
//! - [`track`]: where the vehicle went, as KML, GPX and GeoJSON;
//! - [`text`]: records as text for people, and cells of CSV;
//! - [`statistics`]: minimum, maximum, mean and deviation of every field;
//! - [`signal`]: values over time by name, pattern or expression; conditions; topics joined as one
//!   table;
//! - [`plot`]: signals over time, for a terminal, as SVG, PNG and PDF;
//! - [`report`]: a log, or a plot, as one HTML page;
//! - [`page`]: scripts and styles of these pages;
//! - [`cloud`]: point clouds as PLY, PCD, LAS, NPZ and KITTI `.bin`;
//! - [`pcap`]: Velodyne packets as a network capture.
//!
//! Tables and records use only [`rovelog::LogReader`], so they accept logs of any format.
#![forbid(unsafe_code)]

pub mod bag2;
pub mod cloud;
mod duration;
mod error;
mod exported;
mod kind;
mod leaf;
pub mod logger_csv;
#[cfg_attr(not(feature = "mcap"), path = "no_mcap.rs")]
pub mod mcap;
mod meaning;
pub mod ndjson;
mod number;
pub mod page;
pub mod pcap;
mod pick;
pub mod picture;
pub mod plot;
mod provenance;
pub mod report;
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "MCAP needs more of a line than bags do"))]
mod ros;
pub mod signal;
pub mod statistics;
pub mod table;
pub mod text;
pub mod track;
mod xml;

pub use duration::{NotADuration, duration};
pub use error::{ExportError, next_step};
pub use exported::{Exported, Loss};
pub use kind::{Kind, topic_names};
pub use provenance::{Provenance, TimeBase, sha256};
