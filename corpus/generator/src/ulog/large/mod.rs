//! Large `ULog` files: a small one repeated.

mod base;
mod sections;

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use anyhow::{Context, Result, ensure};

use crate::large::{Large, Order};
use crate::place::real;
use sections::Sections;

/// Benchmarks read PX4's own sample log if the real logs are present, so that figures can be
/// compared; otherwise a synthetic flight.
pub(super) const LARGE: Large = Large {
    stem: "synthetic",
    default: 400_000_000,
    from: Some(|| real().map(|real| real.join("ulog/sample.ulg")).filter(|sample| sample.is_file())),
    write,
};

/// Writes definitions and subscriptions once, then rows, texts and dropouts repeatedly.
fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let base = match &order.from {
        Some(path) => fs::read(path).with_context(|| format!("reading {}", path.display()))?,
        None => base::flight(),
    };
    let sections = Sections::of(&base)?;
    ensure!(!sections.again.is_empty(), "the log has no rows to repeat");
    let (_, messages) = sections.write(out, order.size)?;
    Ok(format!("{messages} messages repeated"))
}

impl Sections {
    /// Writes whole messages until `size` is reached. Returns the number of bytes and messages.
    fn write(&self, mut to: impl Write, size: u64) -> Result<(u64, u64)> {
        to.write_all(&self.once)?;
        let (mut written, mut messages) = (self.once.len() as u64, 0);
        let mut again = self.again.clone();
        let step = self.step_us();
        let mut shift = 0;
        while written < size {
            for &(at, us) in &self.times {
                again[at..at + 8].copy_from_slice(&(us + shift).to_le_bytes());
            }
            let left = size - written;
            let ends = &self.ends;
            let last = ends.partition_point(|&end| (end as u64) < left);
            let last = last.min(ends.len() - 1);
            to.write_all(&again[..ends[last]])?;
            written += ends[last] as u64;
            messages += last as u64 + 1;
            shift += step;
        }
        to.flush()?;
        Ok((written, messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_follow_each_other_in_time() {
        let sections = Sections::of(&base::flight()).unwrap();
        let (first, last) = sections.span().unwrap();
        assert!(last > first);
        let mut out = Vec::new();
        let wanted = (sections.once.len() + 2 * sections.again.len()) as u64;
        let (bytes, messages) = sections.write(&mut out, wanted).unwrap();
        assert_eq!((bytes, messages), (wanted, 2 * sections.ends.len() as u64));

        let twice = Sections::of(&out).unwrap();
        assert_eq!(twice.once, sections.once);
        let half = sections.times.len();
        assert_eq!(twice.times.len(), 2 * half);
        for (a, b) in twice.times[..half].iter().zip(&twice.times[half..]) {
            assert_eq!(b.1 - a.1, last - first + 1000);
        }
    }
}
