//! Output files that cannot do harm: never an input, nothing overwritten unasked, and whole or not there.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::output::Out;

/// The option of commands that write a file.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct OutArgs {
    /// Replace the output file where it exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// A file that is written beside its final place, as `OUT.partial`, and moved there when it is complete.
/// Dropped before [`finish`](Self::finish), it leaves nothing behind.
pub(crate) struct OutFile {
    file: BufWriter<File>,
    /// The path that the user gave, for messages.
    path: PathBuf,
    /// The file to move, and where to; `None` where a device or a pipe is written in place.
    pending: Option<(PathBuf, PathBuf)>,
}

impl OutFile {
    /// Begins a file at `path`. `inputs` are the logs that the command reads; `-` is stdin.
    pub(crate) fn create(path: &Path, inputs: &[&Path], args: OutArgs) -> Result<Self, Failure> {
        let failed = |error: io::Error| cannot_write(path, &error);
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(existing) = &existing {
            if existing.is_dir() {
                return Err(Failure::usage("the output is a directory").next("name a file in it").at(path));
            }
            refuse_input(path, existing, inputs)?;
            if !existing.is_file() {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                return Ok(Self { file: buffered(file), path: path.to_owned(), pending: None });
            }
            if !args.force {
                return Err(Failure::usage("the output exists already")
                    .next("name another file, or replace this one: --force")
                    .at(path));
            }
        }
        // A link stays a link: what it leads to is replaced.
        let target =
            if existing.is_some() { fs::canonicalize(path).map_err(failed)? } else { path.to_owned() };
        let mut partial = target.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        if let Ok(left) = fs::symlink_metadata(&partial) {
            refuse_input(&partial, &left, inputs)?;
            if !args.force {
                return Err(Failure::usage("an earlier run left a part of the output, or one is under way")
                    .next("remove the file FILE, or use --force")
                    .at(&partial));
            }
            fs::remove_file(&partial).map_err(|error| cannot_write(&partial, &error))?;
        }
        let file = OpenOptions::new().write(true).create_new(true).open(&partial).map_err(failed)?;
        Ok(Self { file: buffered(file), path: path.to_owned(), pending: Some((partial, target)) })
    }

    /// Completes the file; only now does it have its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| cannot_write(&self.path, &error))?;
        if let Some((partial, target)) = self.pending.take() {
            let moved = fs::rename(&partial, &target);
            if moved.is_err() {
                let _ = fs::remove_file(&partial);
            }
            moved.map_err(|error| cannot_write(&self.path, &error))?;
        }
        Ok(())
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some((partial, _)) = &self.pending {
            // Whatever failed has been said; a part of a file helps nobody.
            let _ = fs::remove_file(partial);
        }
    }
}

/// The options of commands that write one file, which may go to stdout.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// The file to write; - is stdout, where that is a pipe or a file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    out: OutArgs,
}

impl OutputArgs {
    /// Begins the file; `example` is a fitting name for one.
    pub(crate) fn create(
        &self,
        example: &str,
        inputs: &[&Path],
        context: &Context,
    ) -> Result<Destination, Failure> {
        Destination::create(self.path(), example, inputs, self.out, context)
    }

    /// The path that was named, if it is not that of stdout.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// The name that machines get.
    pub(crate) fn name(&self) -> String {
        self.path().unwrap_or(Path::new("-")).to_string_lossy().into_owned()
    }
}

/// Where a command writes what is not for a terminal: a file, or stdout.
pub(crate) enum Destination {
    File(Box<OutFile>),
    Stdout(Out),
}

impl Destination {
    /// Begins the output at `path`; none is stdout. `example` is a fitting file name.
    pub(crate) fn create(
        path: Option<&Path>,
        example: &str,
        inputs: &[&Path],
        args: OutArgs,
        context: &Context,
    ) -> Result<Self, Failure> {
        if let Some(path) = path {
            return Ok(Self::File(Box::new(OutFile::create(path, inputs, args)?)));
        }
        if context.global.format != Format::Text {
            return Err(Failure::usage("the output and the report cannot both go to stdout")
                .next(format!("write the output to a file: -o {example}")));
        }
        let out = context.out();
        if out.terminal {
            return Err(Failure::usage("stdout is a terminal, and the output is not for one")
                .next(format!("write it to a file: -o {example}, or into a pipe")));
        }
        Ok(Self::Stdout(out))
    }

    /// Completes the output; the path of the file, if it is one.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::File(file) => {
                let path = file.path.clone();
                file.finish()?;
                Ok(Some(path))
            }
            Self::Stdout(mut out) => {
                out.flush()?;
                Ok(None)
            }
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stdout(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stdout(out) => out.flush(),
        }
    }
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 16, file)
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot write the output: {error}")).at(path);
    match error.kind() {
        io::ErrorKind::NotFound => failure.next("check the path: its folder does not exist"),
        io::ErrorKind::PermissionDenied => failure.next("write to a folder that is yours"),
        _ => failure,
    }
}

/// An error where `output` is one of `inputs`, by whatever name.
fn refuse_input(path: &Path, output: &Metadata, inputs: &[&Path]) -> Result<(), Failure> {
    for input in inputs {
        let stdin = *input == Path::new("-");
        let input = if stdin { Path::new("/dev/stdin") } else { input };
        let Ok(metadata) = fs::metadata(input) else { continue };
        if metadata.is_file() && same(path, output, input, &metadata) {
            return Err(Failure::usage("the output is the input").next("name another file").at(path));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn same(_: &Path, a: &Metadata, _: &Path, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same(a: &Path, _: &Metadata, b: &Path, _: &Metadata) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(result: Result<OutFile, Failure>) -> String {
        format!("{:?}", result.map(|_| ()).unwrap_err())
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.gpx");
        let names =
            || fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
        let mut out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
        out.write_all(b"one").unwrap();
        assert_eq!(names(), ["out.gpx.partial"]);
        assert!(failure(OutFile::create(&path, &[], OutArgs::default())).contains("under way"));
        out.finish().unwrap();
        assert_eq!(names(), ["out.gpx"]);
        assert!(failure(OutFile::create(&path, &[], OutArgs::default())).contains("exists already"));
        let mut out = OutFile::create(&path, &[], OutArgs { force: true }).unwrap();
        out.write_all(b"lost").unwrap();
        drop(out);
        assert_eq!((names().len(), fs::read(&path).unwrap()), (1, b"one".to_vec()));
    }

    #[test]
    #[cfg(unix)]
    fn an_output_is_never_an_input() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.ulg");
        let (linked, hard) = (folder.path().join("linked"), folder.path().join("hard"));
        fs::write(&log, b"log").unwrap();
        std::os::unix::fs::symlink(&log, &linked).unwrap();
        fs::hard_link(&log, &hard).unwrap();
        for path in [&log, &linked, &hard] {
            let refused = failure(OutFile::create(path, &[&log], OutArgs { force: true }));
            assert!(refused.contains("the output is the input"), "{refused}");
        }
        let partial = folder.path().join("out.partial");
        fs::rename(&hard, &partial).unwrap();
        let out = folder.path().join("out");
        let refused = failure(OutFile::create(&out, &[&log], OutArgs { force: true }));
        assert!(refused.contains("the output is the input"), "{refused}");
        // A link to another file stays a link.
        let other = folder.path().join("other");
        fs::write(&other, b"old").unwrap();
        fs::remove_file(&linked).unwrap();
        std::os::unix::fs::symlink(&other, &linked).unwrap();
        let mut file = OutFile::create(&linked, &[&log], OutArgs { force: true }).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"new");
        assert!(fs::symlink_metadata(&linked).unwrap().is_symlink());
        assert_eq!(fs::read(&log).unwrap(), b"log");
    }

    #[test]
    #[cfg(unix)]
    fn a_device_is_written_in_place() {
        let mut out = OutFile::create(Path::new("/dev/null"), &[], OutArgs::default()).unwrap();
        out.write_all(b"x").unwrap();
        out.finish().unwrap();
    }
}
