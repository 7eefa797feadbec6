//! `gen-corpus --large`: one big log for measuring, made of a small one said again and again.

mod base;
mod sections;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::{oracle, root, size};
use sections::Sections;

struct Options {
    size: u64,
    from: Option<PathBuf>,
    out: Option<PathBuf>,
}

fn options(args: &[String]) -> Result<Options> {
    let (size, rest) = args.split_first().context("--large needs a size: 400MB")?;
    let mut options = Options { size: size::parse(size)?, from: None, out: None };
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let place = match flag.as_str() {
            "--from" => &mut options.from,
            "-o" | "--output" => &mut options.out,
            other => bail!("--large does not know `{other}`"),
        };
        let path = rest.next().with_context(|| format!("{flag} needs a path"))?;
        *place = Some(path.into());
    }
    Ok(options)
}

/// Writes definitions and subscriptions once, then rows, texts and dropouts as often as it takes.
pub(in crate::corpus) fn command(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let (base, stem) = match &options.from {
        Some(path) => {
            let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            let stem = path.file_stem().context("the file has a name")?;
            (bytes, stem.to_string_lossy().into_owned())
        }
        None => (base::flight(), "synthetic".to_owned()),
    };
    let sections = Sections::of(&base)?;
    ensure!(!sections.again.is_empty(), "the log has no rows to repeat");

    let name = format!("{stem}-{}.ulg", options.size);
    let out = options.out.unwrap_or_else(|| root().join("target/large").join(name));
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(&out).with_context(|| format!("creating {}", out.display()))?;
    let (bytes, messages) = sections.write(BufWriter::with_capacity(1 << 20, file), options.size)?;
    println!("{}: {bytes} bytes, {messages} messages repeated", out.display());
    Ok(())
}

/// The log of 400 MB that benches read, made when it is not there yet: of PX4's own sample log where the real
/// logs are at hand, so that figures can be compared, else of the synthetic flight.
pub(crate) fn default_log() -> Result<PathBuf> {
    let sample = oracle::real().map(|real| real.join("ulog/sample.ulg")).filter(|sample| sample.is_file());
    let stem = if sample.is_some() { "sample" } else { "synthetic" };
    let log = root().join(format!("target/large/{stem}-400000000.ulg"));
    if !log.is_file() {
        let mut args = vec!["400MB".to_owned()];
        if let Some(sample) = sample {
            args.extend(["--from".to_owned(), sample.to_string_lossy().into_owned()]);
        }
        command(&args)?;
    }
    Ok(log)
}

impl Sections {
    /// Writes until `size` is reached, ending with a whole message; says bytes and messages.
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
