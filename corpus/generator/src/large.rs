//! The subcommand `gen-corpus --large`, which generates a large log for benchmarks.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{FORMATS, Format};
use crate::{root, size};

/// Recipe for the large logs of a format.
pub(super) struct Large {
    /// Start of the file name of a log that is not built from another log.
    pub(super) stem: &'static str,
    /// Size in bytes of the log that benchmarks read.
    pub(super) default: u64,
    /// Function that returns the log whose messages are repeated by default, if that log exists.
    /// `None` if the format does not support repeating a log.
    pub(super) from: Option<fn() -> Option<PathBuf>>,
    /// Function that writes a log and returns a description of its content.
    pub(super) write: fn(&Order, &mut BufWriter<File>) -> Result<String>,
}

/// Parameters of a log to generate.
pub(super) struct Order {
    /// Approximate size in bytes.
    pub(super) size: u64,
    /// Log whose messages are repeated.
    pub(super) from: Option<PathBuf>,
    /// Output path.
    pub(super) out: PathBuf,
}

/// Runs the subcommand with the arguments `[FORMAT] SIZE [--from FILE] [-o PATH]`.
pub(super) fn command(args: &[String]) -> Result<()> {
    let (first, rest) = args.split_first().context("--large needs a size: 400MB")?;
    let named = FORMATS.iter().find(|format| format.id == first);
    let mut rest = rest.iter();
    let size = if named.is_some() { rest.next().context("--large needs a size: 400MB")? } else { first };
    let (mut from, mut out) = (None, None);
    while let Some(flag) = rest.next() {
        let place = match flag.as_str() {
            "--from" => &mut from,
            "-o" | "--output" => &mut out,
            other => bail!("--large does not know `{other}`"),
        };
        *place = Some(PathBuf::from(rest.next().with_context(|| format!("{flag} needs a path"))?));
    }
    let format = named.unwrap_or(&FORMATS[0]);
    let may_repeat = from.is_none() || format.large.from.is_some();
    ensure!(may_repeat, "large logs of {} are made of no other log", format.id);
    let size = size::parse(size)?;
    let out = out.unwrap_or_else(|| format.path(size, from.as_deref()));
    format.make(&Order { size, from, out })
}

/// Returns the path of a log with about `size` bytes, or of the log that benchmarks of the format
/// read. The log is generated if it does not exist.
///
/// # Errors
///
/// Returns an error if the format is unknown, or the log cannot be written.
pub fn large_log(format: &str, size: Option<u64>) -> Result<PathBuf> {
    let format = FORMATS.iter().find(|known| known.id == format).context("a format with large logs")?;
    let size = size.unwrap_or(format.large.default);
    let from = format.large.from.and_then(|from| from());
    let out = format.path(size, from.as_deref());
    if !out.is_file() {
        format.make(&Order { size, from, out: out.clone() })?;
    }
    Ok(out)
}

impl Format {
    fn path(&self, size: u64, from: Option<&Path>) -> PathBuf {
        let stem =
            from.and_then(Path::file_stem).map_or(self.large.stem.into(), |stem| stem.to_string_lossy());
        root().join(format!("target/large/{stem}-{size}.{}", self.extension))
    }

    fn make(&self, order: &Order) -> Result<()> {
        let out = &order.out;
        if let Some(folder) = out.parent() {
            fs::create_dir_all(folder)?;
        }
        // If writing is interrupted, a later run must not take the incomplete file for a log.
        let partial = out.with_extension("partial");
        let file = File::create(&partial).with_context(|| format!("creating {}", partial.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let what = (self.large.write)(order, &mut file)?;
        file.flush()?;
        drop(file);
        fs::rename(&partial, out)?;
        let bytes = fs::metadata(out)?.len();
        ensure!(bytes > 0, "nothing was written");
        println!("{}: {bytes} bytes, {what}", out.display());
        Ok(())
    }
}
