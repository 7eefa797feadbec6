//! Decoding of Velodyne packets: the model of the sensor, points, revolutions, and the calibration
//! of an HDL-64E. See section 7 of docs/formats/vel.md.
//!
//! ```no_run
//! use rovelog_core::ReadOptions;
//! use vel_format::VelReader;
//! use vel_format::velodyne::PointOptions;
//!
//! let log = VelReader::new(std::fs::read("drive.vel")?.into(), &ReadOptions::default())?;
//! let mut revolutions = log.revolutions(None, None, PointOptions::default(), 0)?;
//! while let Some(revolution) = revolutions.next() {
//!     println!("{}: {} points", revolution.number, revolution.points.len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod angles;
mod calibration;
mod lanes;
pub(crate) mod model;
mod points;
mod revolutions;
mod timing;

pub use calibration::{Calibration, LaserCalibration, OffsetModel};
pub use model::{Model, ReturnMode, Sensor, detect};
pub use points::{Decoder, Point, PointOptions, Return};
pub use revolutions::{Revolution, Revolutions};
pub use timing::PacketClock;
