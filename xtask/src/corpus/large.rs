//! `gen-corpus --large`: one big log for measuring.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::{rld, rosbag, ulog, vel};
use crate::{root, size};

/// How the large logs of a format are made.
pub(super) struct Large {
    pub(super) format: &'static str,
    /// The names of such logs: what they begin with where they are made of no other log, and their extension.
    pub(super) stem: &'static str,
    pub(super) extension: &'static str,
    /// Bytes of the log that benches read.
    pub(super) default: u64,
    /// Where other logs can be said again and again: the one of which that is made, if it is there.
    pub(super) from: Option<fn() -> Option<PathBuf>>,
    /// Writes a log; what is in it.
    pub(super) write: fn(&Order, &mut BufWriter<File>) -> Result<String>,
}

/// Those of all formats; without a name it is the first.
const ALL: &[Large] = &[ulog::large::LARGE, rld::large::LARGE, rosbag::large::LARGE, vel::large::LARGE];

/// A log that is to be made.
pub(super) struct Order {
    /// About so many bytes.
    pub(super) size: u64,
    /// A log that is said again and again.
    pub(super) from: Option<PathBuf>,
    /// Where to.
    pub(super) out: PathBuf,
}

/// The subcommand: `[FORMAT] SIZE [--from FILE] [-o PATH]`.
pub(super) fn command(args: &[String]) -> Result<()> {
    let (first, rest) = args.split_first().context("--large needs a size: 400MB")?;
    let named = ALL.iter().find(|large| large.format == first);
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
    let large = named.unwrap_or(&ALL[0]);
    ensure!(
        from.is_none() || large.from.is_some(),
        "large logs of {} are made of no other log",
        large.format
    );
    let size = size::parse(size)?;
    let out = out.unwrap_or_else(|| large.path(size, from.as_deref()));
    large.make(&Order { size, from, out })
}

/// The log of a format that benches read, made when it is not there yet.
pub(crate) fn large_log(format: &str) -> Result<PathBuf> {
    let large = ALL.iter().find(|large| large.format == format).context("a format with large logs")?;
    let from = large.from.and_then(|from| from());
    let out = large.path(large.default, from.as_deref());
    if !out.is_file() {
        large.make(&Order { size: large.default, from, out: out.clone() })?;
    }
    Ok(out)
}

impl Large {
    fn path(&self, size: u64, from: Option<&Path>) -> PathBuf {
        let stem = from.and_then(Path::file_stem).map_or(self.stem.into(), |stem| stem.to_string_lossy());
        root().join(format!("target/large/{stem}-{size}.{}", self.extension))
    }

    fn make(&self, order: &Order) -> Result<()> {
        let out = &order.out;
        if let Some(folder) = out.parent() {
            fs::create_dir_all(folder)?;
        }
        // Under another name until it is whole.
        let partial = out.with_extension("partial");
        let file = File::create(&partial).with_context(|| format!("creating {}", partial.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let what = (self.write)(order, &mut file)?;
        file.flush()?;
        drop(file);
        fs::rename(&partial, out)?;
        let bytes = fs::metadata(out)?.len();
        ensure!(bytes > 0, "nothing was written");
        println!("{}: {bytes} bytes, {what}", out.display());
        Ok(())
    }
}
