//! Options for point clouds that are computed from Velodyne packets.

use std::fs::File;
use std::path::PathBuf;

use rovelog::Error;
use rovelog::core::internal::limits::read_description_text;
use rovelog::vel_format::velodyne::{Calibration, Model, OffsetModel};
use rovelog_export::cloud::VelodyneOptions;

use crate::failure::Failure;

/// Options for the Velodyne sensor and for the computation of its points.
#[derive(clap::Args)]
pub(crate) struct VelodyneArgs {
    /// HDL-64E: calibration file of the sensor, either db.xml or a YAML or JSON file converted from
    /// it
    #[arg(long, value_name = "PATH")]
    pub(crate) calibration: Option<PathBuf>,
    /// Velodyne model, such as HDL-32E or VLP-16; needed only if it cannot be detected from the
    /// packets
    #[arg(long, value_name = "NAME", value_parser = model)]
    pub(crate) model: Option<Model>,
    /// HDL-64E: apply the vertical offset of each laser along z, as the program velodyne-decoder
    /// does
    #[arg(long)]
    plain_offsets: bool,
    /// HDL-64E: correct the intensity of each point for its distance, as the sensor manual
    /// describes
    #[arg(long)]
    correct_intensity: bool,
}

fn model(name: &str) -> Result<Model, String> {
    let names = || Model::ALL.map(Model::name).join(", ");
    Model::by_name(name).ok_or_else(|| format!("expected one of {}", names()))
}

impl VelodyneArgs {
    /// Returns the name of the first Velodyne option that the user gave.
    pub(crate) fn chosen(&self) -> Option<&'static str> {
        self.model.map(|_| "--model").or_else(|| self.chosen_of_points())
    }

    /// Returns the name of the first option given by the user that affects points but not packets.
    pub(crate) fn chosen_of_points(&self) -> Option<&'static str> {
        let options = [
            (self.calibration.is_some(), "--calibration"),
            (self.plain_offsets, "--plain-offsets"),
            (self.correct_intensity, "--correct-intensity"),
        ];
        options.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// Reads the calibration file and returns the options for the computation of points.
    pub(crate) fn options(&self) -> Result<VelodyneOptions, Failure> {
        let mut options = VelodyneOptions::default();
        options.model = self.model;
        options.points.correct_intensity = self.correct_intensity;
        if self.plain_offsets {
            options.points.offsets = OffsetModel::Plain;
        }
        if let Some(path) = &self.calibration {
            let text = File::open(path).and_then(read_description_text).map_err(|error| {
                Failure::failed(format!("the calibration file cannot be read: {error}")).at(path)
            })?;
            let parsed = Calibration::parse(&text);
            options.calibration = Some(parsed.map_err(|error| Failure::from(Error::from(error)).at(path))?);
        }
        Ok(options)
    }
}
