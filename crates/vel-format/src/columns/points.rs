//! Points of a Velodyne sensor as Arrow columns. Each revolution is a batch.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float32Array, Int64Array, RecordBatch, RecordBatchReader, UInt8Array, UInt16Array, UInt32Array,
};
use arrow_schema::{ArrowError, SchemaRef};
use rovelog_core::Select;

use super::table::{Table, metadata};
use crate::error::VelError;
use crate::reader::VelReader;
use crate::velodyne::{Calibration, Point, PointOptions, Revolution, Revolutions, Sensor};

/// Name of the topic that contains the points, as used in selections and metadata.
const TOPIC: &str = "VelodyneRawDataM/points";

impl VelReader {
    /// Returns the points of a Velodyne sensor as record batches. There is a batch for each
    /// revolution that starts in the time window of `select`. A row is a point with these columns:
    /// the time `t_ns`, x, y and z in meters, the intensity, the ring, the time since the start of
    /// the revolution, and other properties of the shot.
    ///
    /// # Errors
    /// Returns an error if the model is unknown, or if it is an HDL-64E without a calibration.
    pub fn point_batches(
        &self,
        sensor: Option<&Sensor>,
        calibration: Option<&Calibration>,
        options: PointOptions,
        select: &Select,
    ) -> Result<PointBatches<'_>, VelError> {
        let revolutions = self.revolutions(sensor, calibration, options, 0)?;
        let (unit, corrected) = (revolutions.decoder().model().unit(), options.correct_intensity);
        let empty = batch(select, unit, corrected, 0, 0, &[]);
        let schema = empty.map_err(|error| VelError::Io(std::io::Error::other(error)))?.schema();
        Ok(PointBatches { revolutions, unit, corrected, select: select.clone(), schema })
    }
}

/// Iterator over the points of a log, which returns a record batch for each revolution.
pub struct PointBatches<'a> {
    revolutions: Revolutions<'a>,
    unit: f64,
    corrected: bool,
    select: Select,
    schema: SchemaRef,
}

fn batch(
    select: &Select,
    unit: f64,
    corrected: bool,
    number: u32,
    nanos: i64,
    points: &[Point],
) -> Result<RecordBatch, ArrowError> {
    let mut table = Table::new(select);
    let f32s = |get: fn(&Point) -> f32| -> ArrayRef {
        Arc::new(Float32Array::from_iter_values(points.iter().map(get)))
    };
    let u8s = |get: fn(&Point) -> u8| -> ArrayRef {
        Arc::new(UInt8Array::from_iter_values(points.iter().map(get)))
    };
    let times = points.iter().map(|point| nanos.saturating_add(point.nanos.into()));
    let times = Int64Array::from_iter_values(times);
    table.always(rovelog_core::internal::columns::TIME_COLUMN, "ns", Arc::new(times));
    table.column("x", "m", || f32s(|point| point.x));
    table.column("y", "m", || f32s(|point| point.y));
    table.column("z", "m", || f32s(|point| point.z));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255, as it came")]
    table.column("intensity", "", || {
        if corrected { f32s(|point| point.intensity) } else { u8s(|point| point.intensity as u8) }
    });
    table.column("ring", "", || u8s(|point| point.ring));
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    table.column("time", "s", || f32s(|point| (f64::from(point.nanos) / 1e9) as f32));
    table.column("laser", "", || u8s(|point| point.laser));
    table.column("azimuth", "0.01 deg", || {
        Arc::new(UInt16Array::from_iter_values(points.iter().map(|point| point.azimuth)))
    });
    #[expect(clippy::cast_possible_truncation, reason = "rounded once")]
    table.column("distance", "m", || {
        let meters = points.iter().map(|point| (f64::from(point.distance) * unit) as f32);
        Arc::new(Float32Array::from_iter_values(meters))
    });
    table.column("return", "", || u8s(|point| point.returned as u8));
    table.column("revolution", "", || Arc::new(UInt32Array::from_value(number, points.len())));
    table.batch(points.len(), metadata(TOPIC, "points"))
}

impl Iterator for PointBatches<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let revolution = self.revolutions.next()?;
            if self.select.keeps_time(revolution.nanos) {
                let Revolution { number, nanos, points, .. } = revolution;
                return Some(batch(&self.select, self.unit, self.corrected, number, nanos, points));
            }
        }
    }
}

impl RecordBatchReader for PointBatches<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
