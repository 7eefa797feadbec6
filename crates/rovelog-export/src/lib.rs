//! Hands sensor logs on to the tools that people like.
//!
//! - [`table`]: topics as Parquet, Arrow IPC and CSV, for pandas, polars, DuckDB, Spark and spreadsheets;
//! - [`mcap`]: everything in one file, for Foxglove, Lichtblick, Rerun and PlotJuggler;
//! - [`bag2`]: ROS bags of V1.2 and before as V2.0, for every reader of today;
//! - [`ndjson`]: records one by one, for scripts;
//! - [`track`]: where the vehicle went, as KML, GPX and GeoJSON;
//! - [`plot`]: signals over time, for a terminal, as SVG and PNG;
//! - [`report`]: a log as one page of HTML;
//! - [`cloud`]: point clouds as PLY, PCD, LAS, NPZ and KITTI's;
//! - [`pcap`]: packets of a Velodyne as a capture of the network.
//!
//! Tables and records work through [`rovelog::LogReader`] alone, so they take a log of any format.
//!
//! ```no_run
//! use rovelog::Select;
//! use rovelog_export::table::{self, Kind, TableOptions};
//! use rovelog_export::Provenance;
//!
//! let log = rovelog::open("flight.ulg")?;
//! let topic = log.topic("vehicle_attitude").ok_or("no attitude")?;
//! let outputs = vec![(topic, std::fs::File::create("attitude.parquet")?)];
//! let how = (Kind::Parquet, &TableOptions::default());
//! let (written, losses) =
//!     table::write(&*log, outputs, &Select::all(), how, &Provenance::new("flight.ulg"), &mut |_| ())?;
//! assert!(losses.is_empty());
//! println!("{} rows", written[0].rows);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod bag2;
pub mod cloud;
mod error;
mod exported;
mod kind;
mod leaf;
pub mod mcap;
pub mod ndjson;
pub mod pcap;
pub mod picture;
pub mod plot;
mod provenance;
pub mod report;
mod ros;
pub mod table;
pub mod track;
mod xml;

pub use error::ExportError;
pub use exported::Exported;
pub use kind::{Kind, topic_names};
pub use provenance::{Provenance, TimeBase, sha256};
pub use table::Loss;
