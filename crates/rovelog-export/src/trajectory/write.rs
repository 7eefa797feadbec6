//! Writes trajectories as text files.

use std::io::{self, Write};

use super::{TimedPose, Trajectory};
use crate::number::NineDecimals;

/// A file format for trajectories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Format of the TUM RGB-D benchmark: `t x y z qx qy qz qw`, with the time in seconds.
    Tum,
    /// Format of the KITTI odometry benchmark: the upper three rows of each 4 x 4 matrix. It has no
    /// times.
    Kitti,
    /// Ground truth of the EuRoC MAV data sets: `t,x,y,z,qw,qx,qy,qz`, with the time in
    /// nanoseconds.
    Euroc,
    /// Comma-separated values with a header.
    Csv,
}

impl Format {
    /// All file formats for trajectories.
    pub const ALL: [Self; 4] = [Self::Tum, Self::Kitti, Self::Euroc, Self::Csv];

    /// Returns the name of the format in command-line options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tum => "tum",
            Self::Kitti => "kitti",
            Self::Euroc => "euroc",
            Self::Csv => "csv",
        }
    }

    /// Returns the file extension of the format.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Euroc => "csv",
            format => format.name(),
        }
    }

    /// Returns the format with the option name `name`, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
    }
}

/// Writes a trajectory. Numbers have the fewest digits that convert back to the same value. Times
/// are written as they are in the trajectory.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn write(trajectory: &Trajectory, format: Format, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    match format {
        Format::Tum => writeln!(out, "# timestamp tx ty tz qx qy qz qw")?,
        Format::Kitti => {}
        Format::Euroc => writeln!(
            out,
            "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []"
        )?,
        Format::Csv => writeln!(out, "time_ns,x,y,z,qx,qy,qz,qw")?,
    }
    for TimedPose { nanos, pose } in &trajectory.poses {
        let ([x, y, z], [qw, qx, qy, qz]) = (pose.position, pose.orientation);
        match format {
            Format::Tum => writeln!(out, "{} {x} {y} {z} {qx} {qy} {qz} {qw}", NineDecimals(*nanos))?,
            Format::Kitti => {
                let rows = pose.rotation().into_iter().zip(pose.position);
                let rows: Vec<_> = rows.map(|([a, b, c], t)| format!("{a} {b} {c} {t}")).collect();
                writeln!(out, "{}", rows.join(" "))?;
            }
            Format::Euroc => writeln!(out, "{nanos},{x},{y},{z},{qw},{qx},{qy},{qz}")?,
            Format::Csv => writeln!(out, "{nanos},{x},{y},{z},{qx},{qy},{qz},{qw}")?,
        }
    }
    out.flush()
}
