#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`table`] writes topics as Parquet, Arrow IPC and CSV, for pandas, polars, DuckDB, Spark and
//!   spreadsheets.
//! - [`mcap`] writes the whole log to one file for Foxglove, Lichtblick, Rerun and PlotJuggler.
//! - [`bag2`] converts older ROS bags to version 2.0, which current readers open.
//! - [`ndjson`] writes each record as a JSON object on its own line, for scripts.
//! - [`logger_csv`] writes RocketLogger logs in the CSV format of the logger itself.
//! - [`track`] writes the path of the vehicle as KML, GPX and GeoJSON.
//! - [`trajectory`] writes poses as TUM, KITTI, EuRoC and CSV files, also from transforms.
//! - [`text`] formats records for people, and as the cells of CSV files.
//! - [`statistics`] computes the minimum, maximum, mean and standard deviation of each field.
//! - [`signal`] evaluates signals by name, pattern or expression, finds events, and joins topics
//!   into one table.
//! - [`findings`] finds problems of a flight or a recording, with their cause and evidence.
//! - [`totals`] computes the flight time, the distance, extremes, the charge and the energy.
//! - [`plot`] draws signals over time in a terminal, or as SVG, PNG and PDF.
//! - [`report`] writes a log or a plot as a single HTML page.
//! - [`page`] contains the scripts and style sheets of these pages.
//! - [`scrub`] writes copies of logs without real positions and without names of devices.
//! - [`cloud`] writes point clouds as PLY, PCD, LAS, NPZ and KITTI `.bin`.
//! - [`grid`] writes maps of ROS bags as PGM and YAML.
//! - [`picture`] converts images of ROS messages to image files, without losing a value.
//! - [`stream`] finds the parts of video and audio streams in ROS messages.
//! - [`flat`] converts nested columns to columns with one value per row.
//! - [`pcap`] writes Velodyne packets as a network capture.
//! - [`partial`] creates output files that are removed unless they are completed.
//!
//! Most exports only use [`rovelog::LogReader`], so they accept logs of any format.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod bag2;
pub mod cloud;
mod duration;
mod error;
mod exported;
pub mod findings;
pub mod flat;
pub mod grid;
mod kind;
mod leaf;
pub mod logger_csv;
#[cfg_attr(not(feature = "mcap"), path = "no_mcap.rs")]
pub mod mcap;
mod meaning;
pub mod ndjson;
mod number;
pub mod page;
pub mod partial;
pub mod pcap;
mod pick;
pub mod picture;
pub mod plot;
mod pose;
mod provenance;
pub mod report;
#[cfg_attr(not(feature = "mcap"), expect(dead_code, reason = "MCAP needs more of a line than bags do"))]
mod ros;
pub mod scrub;
pub mod signal;
pub mod statistics;
pub mod stream;
pub mod table;
pub mod text;
pub mod totals;
pub mod track;
pub mod trajectory;
mod vehicle;
mod vel_sensors;
mod xml;

pub use duration::{NotADuration, duration, duration_text};
pub use error::{ExportError, next_step};
pub use exported::{Exported, Loss};
pub use kind::{Kind, topic_names};
pub use provenance::{Provenance, TimeBase, sha256};
