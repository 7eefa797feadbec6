//! Benchmarks for RLD logs. `rld_work.py` contains the same benchmarks for the Python package
//! rocketlogger.

use std::any::Any;

use rovelog::rld_format::analysis::StatsOptions;
use rovelog::rld_format::{ColumnOptions, RldReader};
use rovelog::{AnyLog, Select};

use crate::{Outcome, Work, info};

pub(crate) const WORKS: &[(&str, Work)] = &[
    ("rovelog-info", info),
    ("rovelog-columns", |log| columns(log, &Select::all(), &ColumnOptions::raw())),
    ("rovelog-columns-untimed", |log| columns(log, &Select::all(), &ColumnOptions::raw().with_times(None))),
    ("rovelog-f64", |log| columns(log, &Select::all(), &ColumnOptions::physical().with_nulls(false))),
    ("rovelog-one", |log| {
        let options = ColumnOptions::physical().with_times(None);
        columns(log, &Select::all().with_fields(["V1"]), &options)
    }),
    ("rovelog-one-timed", |log| columns(log, &Select::all().with_fields(["V1"]), &ColumnOptions::physical())),
    ("rovelog-energy", energy),
    ("bare-copy", copy_file),
];

fn open(log: &str) -> Result<RldReader, Box<dyn std::error::Error>> {
    let AnyLog::Rld(log) = rovelog::open(log)? else { return Err("not an RLD log".into()) };
    Ok(log)
}

fn columns(log: &str, select: &Select, options: &ColumnOptions) -> Outcome {
    let log = open(log)?;
    let (mut rows, mut columns) = (0, 0);
    let batches = log.columns_with(select, options)?;
    for batch in batches {
        let batch = batch?;
        rows += batch.num_rows();
        columns += batch.num_columns();
    }
    // The log stays memory-mapped until the end, so that its pages can be subtracted from the
    // measured memory.
    Ok((format!("{rows} rows in {columns} column batches"), Box::new(log)))
}

fn energy(log: &str) -> Outcome {
    let log = open(log)?;
    let mut sums = log.accumulator(&StatsOptions::default().with_powers(["V1*I1", "V2*I2"]))?;
    let stats = sums.stats(0..log.rows());
    let powers: Vec<_> = stats.powers.iter().map(|power| power.sum.to_string()).collect();
    Ok((format!("{} rows, power sums {}", stats.rows, powers.join(" ")), Box::new(log)))
}

/// Copies the whole file into a reused buffer. No benchmark that reads the whole file can be
/// faster.
fn copy_file(log: &str) -> Outcome {
    let log = open(log)?;
    let mut buffer = vec![1u8; 64 << 20];
    let mut copied = 0usize;
    for part in log.parts() {
        for chunk in part.bytes.chunks(buffer.len()) {
            buffer[..chunk.len()].copy_from_slice(chunk);
            copied += usize::from(buffer[chunk.len() / 2] != 0) + chunk.len();
        }
    }
    let kept: Box<dyn Any> = Box::new((log, buffer));
    Ok((format!("{copied} bytes"), kept))
}
