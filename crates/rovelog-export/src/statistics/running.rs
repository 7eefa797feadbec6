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

#[cfg(test)]
mod tests {
    use super::*;

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
