//! `gen-corpus --large`: one large log for benchmarks.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{FORMATS, Format};
use crate::{root, size};

/// Recipe for the large logs of a format.
pub(super) struct Large {
    /// Start of the names of logs that are not made from another log.
    pub(super) stem: &'static str,
    /// Size in bytes of the log that benchmarks read.
    pub(super) default: u64,
    /// If other logs can be repeated: the one to repeat, if it exists.
    pub(super) from: Option<fn() -> Option<PathBuf>>,
    /// Writes a log. Returns a description of its content.
    pub(super) write: fn(&Order, &mut BufWriter<File>) -> Result<String>,
}

/// A log to make.
pub(super) struct Order {
    /// Approximate size in bytes.
    pub(super) size: u64,
    /// A log to repeat.
    pub(super) from: Option<PathBuf>,
    /// Output path.
    pub(super) out: PathBuf,
}

/// Runs the subcommand without its first format argument: `[FORMAT] SIZE [--from FILE] [-o PATH]`.
pub(super) fn command(args: &[String]) -> Result<()> {
    let (first, rest) = args.split_first().context("--large needs a size: 400MB")?;
    let named = FORMATS.iter().find(|format| format.id == first);
    let (size, rest) = match named {
        Some(_) => rest.split_first().with_context(|| format!("--large {first} needs a size: 400MB"))?,
        None => (first, rest),
    };
    let (mut from, mut out) = (None, None);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let place = match flag.as_str() {
            "--from" => &mut from,
            "-o" | "--output" => &mut out,
            other => bail!("--large does not know `{other}`"),
        };
        *place = Some(PathBuf::from(rest.next().with_context(|| format!("{flag} needs a path"))?));
    }
    let format = named.unwrap_or(&FORMATS[0]);
    ensure!(
        from.is_none() || format.large.from.is_some(),
        "large logs of {} are made of no other log",
        format.id
    );
    let size = size::parse(size)?;
    let out = out.unwrap_or_else(|| format.path(size, from.as_deref()));
    format.make(&Order { size, from, out })
}

/// Returns the log of a format that benchmarks read. Makes it if it does not exist.
///
/// # Errors
///
/// If the format is unknown or the log cannot be written.
pub fn large_log(format: &str) -> Result<PathBuf> {
    known(format)?.log_of_size(None)
}

/// Returns a log of a format of about this size. Makes it if it does not exist.
///
/// # Errors
///
/// If the format is unknown or the log cannot be written.
pub fn log_of_size(format: &str, size: u64) -> Result<PathBuf> {
    known(format)?.log_of_size(Some(size))
}

fn known(format: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|known| known.id == format).context("a format with large logs")
}

impl Format {
    fn log_of_size(&self, size: Option<u64>) -> Result<PathBuf> {
        let size = size.unwrap_or(self.large.default);
        let from = self.large.from.and_then(|from| from());
        let out = self.path(size, from.as_deref());
        if !out.is_file() {
            self.make(&Order { size, from, out: out.clone() })?;
        }
        Ok(out)
    }

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
        // Written under another name until complete.
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
