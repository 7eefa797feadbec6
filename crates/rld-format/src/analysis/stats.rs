//! Exact sums over values, and the results that are computed from these sums.

use crate::clock::TRUE_SECOND;
use crate::unit::Scale;

/// Sums over raw integers. They are exact, and do not depend on the order in which values are
/// added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Number of values.
    pub count: u64,
    /// Sum of the values. After an overflow, the sum is `i128::MAX` or `i128::MIN`. Only products
    /// of 64-bit values are large enough to cause an overflow.
    pub sum: i128,
    /// Sum of the squared values. `u128::MAX` after an overflow.
    pub sum_sq: u128,
    /// Minimum of the values. If there are no values, it is greater than `max`.
    pub min: i128,
    /// Maximum of the values. If there are no values, it is less than `min`.
    pub max: i128,
}

impl Default for Sums {
    fn default() -> Self {
        Self { count: 0, sum: 0, sum_sq: 0, min: i128::MAX, max: i128::MIN }
    }
}

impl Sums {
    /// Adds the sums of other values.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.add(other.sum);
        self.sum_sq = self.sum_sq.saturating_add(other.sum_sq);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the sums of the same values multiplied by `factor`. `factor` must not be negative.
    pub(super) fn times(&self, factor: i64) -> Self {
        let wide = i128::from(factor);
        if self.count == 0 {
            return *self;
        }
        Self {
            count: self.count,
            sum: self.sum.saturating_mul(wide),
            sum_sq: self.sum_sq.saturating_mul(wide.unsigned_abs().pow(2)),
            min: self.min.saturating_mul(wide),
            max: self.max.saturating_mul(wide),
        }
    }

    /// Adds a value to the sum. If the sum has overflowed before, it stays at the limit.
    pub(super) fn add(&mut self, value: i128) {
        let is_limit = |sum: i128| sum == i128::MAX || sum == i128::MIN;
        let sum = self.sum.checked_add(value).filter(|_| !is_limit(self.sum) && !is_limit(value));
        self.sum = sum.unwrap_or(i128::MAX);
    }

    /// Returns the sum. Returns `None` if the sum has overflowed.
    fn exact_sum(&self) -> Option<i128> {
        (i128::MIN + 1..i128::MAX).contains(&self.sum).then_some(self.sum)
    }

    /// Adds a value to the count, the sum, the sum of squares, the minimum and the maximum.
    pub(super) fn push(&mut self, value: i128) {
        self.count += 1;
        self.add(value);
        let magnitude = value.unsigned_abs();
        self.sum_sq = self.sum_sq.saturating_add(magnitude.saturating_mul(magnitude));
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the mean in the physical unit of the values. Returns `None` if there are no values,
    /// or if the sum has overflowed.
    pub fn mean(&self, scale: Scale) -> Option<f64> {
        let sum = self.exact_sum().filter(|_| self.count > 0)?;
        Some(scale.apply_wide(sum) / self.count as f64)
    }

    /// Returns the population standard deviation in the physical unit of the values. Returns `None`
    /// if there are no values, or if a sum has overflowed.
    ///
    /// It is computed from n * (sum of squares) - (sum)^2. These are exact integers, so nothing is
    /// lost by cancellation.
    pub fn std(&self, scale: Scale) -> Option<f64> {
        if self.count == 0 || self.sum_sq == u128::MAX || self.exact_sum().is_none() {
            return None;
        }
        let n = u128::from(self.count);
        let magnitude = self.sum.unsigned_abs();
        if let (Some(squares), Some(square)) = (n.checked_mul(self.sum_sq), magnitude.checked_mul(magnitude))
        {
            return Some(unit(scale) * (squares.saturating_sub(square) as f64).sqrt() / n as f64);
        }
        // The products of the exact formula overflow 128 bits. So the standard deviation is
        // computed from the squared distances from the integer mean, which are smaller than the
        // squared values.
        let mean = self.sum / n.cast_signed();
        let square = mean.unsigned_abs().checked_mul(mean.unsigned_abs())?;
        let rest = self.sum - mean * n.cast_signed();
        let about = self.sum_sq.checked_sub(square.checked_mul(n)?)?.cast_signed() - 2 * mean * rest;
        Some(unit(scale) * (about as f64 / n as f64).max(0.0).sqrt())
    }

    /// Returns the minimum in the physical unit of the values.
    pub fn min(&self, scale: Scale) -> Option<f64> {
        (self.count > 0).then(|| scale.apply_wide(self.min))
    }

    /// Returns the maximum in the physical unit of the values.
    pub fn max(&self, scale: Scale) -> Option<f64> {
        (self.count > 0).then(|| scale.apply_wide(self.max))
    }

    /// Returns the integral over time, in which each value lasts for one true sampling period. The
    /// integral of amperes is in coulombs, and that of watts in joules. Returns NaN if the sum has
    /// overflowed.
    pub fn integral(&self, scale: Scale, rate: u16) -> f64 {
        let sum = self.exact_sum().map_or(f64::NAN, |sum| scale.apply_wide(sum));
        sum * (TRUE_SECOND as f64 / 1e9) / f64::from(rate.max(1))
    }
}

fn unit(scale: Scale) -> f64 {
    scale.apply(1)
}

/// Exact sums over a range of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of rows.
    pub rows: u64,
    /// Sums of each analog channel, in the order of the channels. By default, values outside of the
    /// measuring range are excluded.
    pub channels: Vec<Sums>,
    /// For each binary channel, the number of rows in which it is 1.
    pub ones: Vec<u64>,
    /// Sums of each merged current.
    pub currents: Vec<Sums>,
    /// For each merged current, the number of values that come from its low channel.
    pub from_low: Vec<u64>,
    /// Sums of each power. Its values are products of raw values.
    pub powers: Vec<Sums>,
}

impl Stats {
    /// Creates sums over no rows, with these numbers of analog channels, binary channels, currents
    /// and powers.
    pub(super) fn empty(channels: usize, bits: usize, currents: usize, powers: usize) -> Self {
        Self {
            rows: 0,
            channels: vec![Sums::default(); channels],
            ones: vec![0; bits],
            currents: vec![Sums::default(); currents],
            from_low: vec![0; currents],
            powers: vec![Sums::default(); powers],
        }
    }

    /// Adds the sums over other rows of the same log to these sums.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        let add = |to: &mut Vec<Sums>, from: &[Sums]| {
            to.resize(to.len().max(from.len()), Sums::default());
            to.iter_mut().zip(from).for_each(|(to, from)| to.merge(from));
        };
        add(&mut self.channels, &other.channels);
        add(&mut self.currents, &other.currents);
        add(&mut self.powers, &other.powers);
        for (to, from) in [(&mut self.ones, &other.ones), (&mut self.from_low, &other.from_low)] {
            to.resize(to.len().max(from.len()), 0);
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }

    /// Returns the true duration of the rows in nanoseconds.
    pub fn duration(&self, rate: u16) -> i128 {
        crate::clock::span(self.rows, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_do_not_cancel() {
        let scale = Scale::new(0).unwrap();
        let mut sums = Sums::default();
        for value in [1_000_000_000_000_001i128, 1_000_000_000_000_002, 1_000_000_000_000_003] {
            sums.push(value);
        }
        assert!((sums.std(scale).unwrap() - (2.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(sums.mean(scale), Some(1e15 + 2.0));
        assert_eq!(Sums::default().std(scale), None);
        // After an overflow, values of the opposite sign do not bring the sum back into the valid
        // range.
        let mut sums = Sums::default();
        for value in [i128::MAX - 1, 5, -7] {
            sums.push(value);
        }
        assert_eq!((sums.count, sums.mean(scale), sums.std(scale)), (3, None, None));
        assert!(sums.integral(scale, 1000).is_nan());
        let mut merged = Sums::default();
        merged.merge(&sums);
        assert_eq!(merged.mean(scale), None);
    }
}
