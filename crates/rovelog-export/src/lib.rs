//! Hands sensor logs on to the tools that people like.
//!
//! - [`track`]: where the vehicle went, as KML, GPX and GeoJSON.
//! - [`cloud`]: point clouds as PLY and PCD.
//!
//! ```no_run
//! use rovelog_export::track::{self, Format, TrackOptions, WriteOptions};
//!
//! let log = rovelog::open("flight.ulg")?;
//! let (track, _) = track::of(&log, &TrackOptions::default())?;
//! track::write(&track, Format::Gpx, &WriteOptions::default(), std::fs::File::create("flight.gpx")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod cloud;
pub mod track;
