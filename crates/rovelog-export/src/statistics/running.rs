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

    /// Returns the standard deviation of all values (divided by their number); NaN if one of them, or
    /// a square, is infinite; `None` without values.
    pub fn std(&self) -> Option<f64> {
        let variance = self.squares / self.count as f64;
        // Not `max`, for which NaN is no number.
        (self.count > 0).then(|| if variance < 0.0 { 0.0 } else { variance.sqrt() })
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
