//! Statistics of one field.

use super::Number;

/// Statistics of a field in one pass, by Welford's method, which avoids cancellation.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Number of values, without NaN.
    pub count: u64,
    /// Number of NaN.
    pub nan: u64,
    /// The smallest value.
    pub min: Option<Number>,
    /// The largest value.
    pub max: Option<Number>,
    mean: f64,
    squares: f64,
    /// The last value, in how many records in a row it is, and the most of any value.
    last: f64,
    run: u64,
    longest_run: u64,
    changes: u64,
}

/// The fewest records in a row with one value that make a field stuck.
const STUCK: u64 = 20;

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
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Returns the mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Returns the standard deviation of all values (divided by their number); `None` without values.
    pub fn std(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / self.count as f64).max(0.0).sqrt())
    }

    /// Returns the length of the longest run of one value, if nine of ten of the other records
    /// change the value of a field of floats, and the run is long.
    pub fn stuck(&self) -> Option<u64> {
        let others = self.count - self.longest_run;
        let is_float = matches!(self.min, Some(Number::Float(_)));
        let changes = others >= STUCK && self.changes * 10 >= others * 9;
        (is_float && changes && self.longest_run >= STUCK).then_some(self.longest_run)
    }
}
