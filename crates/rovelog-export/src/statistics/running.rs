//! Statistics of a single field, updated with each value.

use super::Number;

/// Statistics of a field, computed in one pass.
///
/// The variance is computed with Welford's method. Subtracting the square of the mean from the mean
/// of the squares would cancel all digits if the values are large and close together, such as Unix
/// times.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Number of values. NaN values are not counted.
    pub count: u64,
    /// Number of values that are NaN.
    pub nan: u64,
    /// Minimum of the values. `None` if there are no values.
    pub min: Option<Number>,
    /// Maximum of the values. `None` if there are no values.
    pub max: Option<Number>,
    mean: f64,
    /// Sum of the squared differences between the values and the mean.
    squares: f64,
    /// The previous value of the field.
    last: f64,
    /// Number of equal values in a row, up to the current value.
    run: u64,
    /// Largest value that `run` has had.
    longest_run: u64,
    /// Number of values that differ from the previous value.
    changes: u64,
}

/// Minimum number of equal values in a row for which a sensor is reported as stuck.
const MIN_RUN: u64 = 20;

impl Statistics {
    /// Adds a value.
    pub fn push(&mut self, number: Number) {
        let value = number.as_f64();
        if value.is_nan() {
            self.nan += 1;
            return;
        }
        if self.count > 0 && value.to_bits() == self.last.to_bits() {
            self.run += 1;
        } else {
            self.changes += u64::from(self.count > 0);
            self.run = 1;
        }
        self.last = value;
        self.longest_run = self.longest_run.max(self.run);
        self.count += 1;
        self.min = Some(self.min.map_or(number, |min| if number.is_below(min) { number } else { min }));
        self.max = Some(self.max.map_or(number, |max| if max.is_below(number) { number } else { max }));
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value - self.mean);
    }

    /// Returns the mean, or `None` if there are no values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Returns the population standard deviation, or `None` if there are no values. The result is
    /// NaN if a value is infinite, or the square of a difference exceeds the range of a float.
    pub fn std(&self) -> Option<f64> {
        let variance = self.squares / self.count as f64;
        // Rounding errors may make the variance negative. `variance.max(0.0)` would be simpler, but
        // would turn NaN into 0.
        (self.count > 0).then(|| if variance < 0.0 { 0.0 } else { variance.sqrt() })
    }

    /// Returns the length of the longest run of equal values if the sensor was probably stuck. The
    /// sensor was probably stuck if three conditions hold: the values are floats, the run is long,
    /// and at least nine of ten values outside of the run differ from the value before them.
    ///
    /// For example, a gyroscope whose noise changes nearly every value, but that repeats the same
    /// value for 50 rows, was stuck. A counter or a set point that rarely changes was not stuck.
    pub fn stuck(&self) -> Option<u64> {
        let others = self.count - self.longest_run;
        let is_float = matches!(self.min, Some(Number::Float(_)));
        let changes = others >= MIN_RUN && self.changes * 10 >= others * 9;
        (is_float && changes && self.longest_run >= MIN_RUN).then_some(self.longest_run)
    }
}

/// Number of columns that are processed together. Adding a value to the mean takes long, because it
/// needs the result of the previous row. The processor works on the other columns meanwhile.
pub(super) const LANES: usize = 8;

/// Rows of up to [`LANES`] columns. A lane is a column of the block.
#[derive(Default)]
pub(super) struct Block {
    rows: Vec<[f64; LANES]>,
}

/// Statistics of the lanes of a block, as [`Statistics`] with an array for each value. The compiler
/// translates loops over the lanes to vector instructions.
#[derive(Default)]
struct Lanes {
    count: [f64; LANES],
    min: [f64; LANES],
    max: [f64; LANES],
    mean: [f64; LANES],
    squares: [f64; LANES],
    last: [f64; LANES],
    run: [u64; LANES],
    longest_run: [u64; LANES],
    changes: [u64; LANES],
}

impl Block {
    /// Resets the block to this number of rows without values.
    pub(super) fn reset(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, [f64::NAN; LANES]);
    }

    /// Sets the values of a lane. Missing values are NaN.
    pub(super) fn set(&mut self, lane: usize, values: impl Iterator<Item = f64>) {
        for (row, value) in self.rows.iter_mut().zip(values) {
            row[lane] = value;
        }
    }

    /// Adds the values of each lane to its statistics. The result is the same as that of
    /// [`Statistics::push`] for each value, but minimum and maximum are always floats.
    pub(super) fn add_to(&self, fields: &mut [&mut Statistics]) {
        let mut lanes = Lanes::default();
        for (lane, field) in fields.iter().enumerate() {
            lanes.load(lane, field);
        }
        for row in &self.rows {
            lanes.push(row);
        }
        for (lane, field) in fields.iter_mut().enumerate() {
            lanes.store(lane, field, self.rows.len() as u64);
        }
    }
}

impl Lanes {
    /// Adds a value to each lane. NaN values are skipped.
    #[inline]
    fn push(&mut self, row: &[f64; LANES]) {
        for (lane, &value) in row.iter().enumerate() {
            let is_number = !value.is_nan();
            let is_same = value.to_bits() == self.last[lane].to_bits();
            let run = if is_same { self.run[lane] + 1 } else { 1 };
            self.run[lane] = if is_number { run } else { self.run[lane] };
            self.longest_run[lane] = self.longest_run[lane].max(self.run[lane]);
            self.changes[lane] += u64::from(is_number && !is_same);
            self.last[lane] = if is_number { value } else { self.last[lane] };
            self.min[lane] = if value < self.min[lane] { value } else { self.min[lane] };
            self.max[lane] = if self.max[lane] < value { value } else { self.max[lane] };
            self.count[lane] += if is_number { 1.0 } else { 0.0 };
            let difference = value - self.mean[lane];
            let mean = self.mean[lane] + difference / self.count[lane];
            let squares = self.squares[lane] + difference * (value - mean);
            self.mean[lane] = if is_number { mean } else { self.mean[lane] };
            self.squares[lane] = if is_number { squares } else { self.squares[lane] };
        }
    }

    /// Copies the statistics of a field to a lane.
    fn load(&mut self, lane: usize, field: &Statistics) {
        self.count[lane] = field.count as f64;
        self.min[lane] = field.min.map_or(f64::INFINITY, Number::as_f64);
        self.max[lane] = field.max.map_or(f64::NEG_INFINITY, Number::as_f64);
        (self.mean[lane], self.squares[lane]) = (field.mean, field.squares);
        // The first value of a field equals no previous value. NaN equals none of the values.
        self.last[lane] = if field.count > 0 { field.last } else { f64::NAN };
        (self.run[lane], self.longest_run[lane]) = (field.run, field.longest_run);
        self.changes[lane] = field.changes;
    }

    /// Copies a lane to the statistics of its field, after `rows` values.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count is an integer")]
    fn store(&self, lane: usize, field: &mut Statistics, rows: u64) {
        let count = self.count[lane] as u64;
        if count == field.count {
            field.nan += rows;
            return;
        }
        // The first value of a field is not a change, because there is no previous value.
        field.changes = self.changes[lane] - u64::from(field.count == 0);
        field.nan += rows - (count - field.count);
        field.count = count;
        (field.min, field.max) = (Some(Number::Float(self.min[lane])), Some(Number::Float(self.max[lane])));
        (field.mean, field.squares) = (self.mean[lane], self.squares[lane]);
        field.last = self.last[lane];
        (field.run, field.longest_run) = (self.run[lane], self.longest_run[lane]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_gives_the_same_statistics_as_single_values() {
        let columns: [&[f64]; 4] = [
            &[f64::NAN, 1.5, 1.5, f64::NAN, 1.5, -0.0, 0.0, 1e300, 0.1, 0.1],
            &[f64::NAN; 10],
            &[f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            &[-0.0, 0.0, -0.0, -0.0, f64::NAN, -0.0, 7.0, 7.0, 7.0, 7.0],
        ];
        let mut expected = vec![Statistics::default(); columns.len()];
        let mut fields = expected.clone();
        for (statistics, column) in expected.iter_mut().zip(columns) {
            for value in column {
                statistics.push(Number::Float(*value));
            }
        }
        for rows in [0..3, 3..4, 4..10] {
            let mut block = Block::default();
            block.reset(rows.len());
            for (lane, column) in columns.iter().enumerate() {
                block.set(lane, column[rows.clone()].iter().copied());
            }
            block.add_to(&mut fields.iter_mut().collect::<Vec<_>>());
        }
        assert_eq!(format!("{fields:?}"), format!("{expected:?}"));
    }

    #[test]
    fn the_deviation_of_infinite_values_is_not_zero() {
        let std = |values: &[f64]| {
            let mut statistics = Statistics::default();
            for value in values {
                statistics.push(Number::Float(*value));
            }
            statistics.std()
        };
        assert_eq!(std(&[]), None);
        assert_eq!(std(&[1.0, 3.0]), Some(1.0));
        assert_eq!(std(&[0.1; 3]), Some(0.0));
        for values in [&[1.0, f64::INFINITY, 2.0][..], &[1e308, -1e308, 1e308], &[f64::INFINITY]] {
            assert!(std(values).is_some_and(f64::is_nan), "{values:?}");
        }
    }
}
