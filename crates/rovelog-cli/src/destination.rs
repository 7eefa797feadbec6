//! Destination of a log or a report that a command writes: a file or stdout.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::context::{Context, Format};
use crate::failure::Failure;
use crate::outfile::{OutArgs, OutFile, unless_stdout};
use crate::output::Out;

/// Options of the commands that write a single output to a file or to stdout.
#[derive(clap::Args)]
pub(crate) struct OutputArgs {
    /// Output file, or - for stdout, which must be a pipe or a file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

impl OutputArgs {
    /// Opens the output. Error messages suggest `example` as a file name.
    pub(crate) fn create(
        &self,
        example: &str,
        inputs: &[PathBuf],
        context: &Context,
    ) -> Result<Destination, Failure> {
        let extension = self.path().and_then(Path::extension).and_then(|extension| extension.to_str());
        let is_packed = |end: &&str| *end == "tar" || rovelog_scale::COMPRESSED.contains(end);
        let extension = extension.filter(is_packed);
        if let (Some(path), Some(extension)) = (self.path(), extension) {
            return Err(Failure::usage(format!(
                "the output is not compressed, so its name must not end in .{extension}"
            ))
            .next("leave out this extension, and compress the file afterwards")
            .at(path));
        }
        Destination::create(self.path(), example, inputs, self.out, context)
    }

    /// Returns the path given by the user, or `None` if the output goes to stdout.
    pub(crate) fn path(&self) -> Option<&Path> {
        unless_stdout(self.output.as_deref())
    }

    /// Returns the path of the output for machine-readable results. The path of stdout is `-`.
    pub(crate) fn name(&self) -> String {
        self.path().unwrap_or(Path::new("-")).to_string_lossy().into_owned()
    }
}

/// An open file or stdout, to which a complete log or report is written.
pub(crate) enum Destination {
    File(Box<OutFile>),
    Stdout(Out),
}

impl Destination {
    /// Opens the file at `path`, or stdout if `path` is `None`. Error messages suggest `example` as
    /// a file name.
    pub(crate) fn create(
        path: Option<&Path>,
        example: &str,
        inputs: &[PathBuf],
        args: OutArgs,
        context: &Context,
    ) -> Result<Self, Failure> {
        if path.is_some() {
            return Self::text(path, inputs, args, context);
        }
        // The results of the command are printed to stdout as JSON. If the log were also written to
        // stdout, both would be mixed.
        if context.global.format != Format::Text {
            return Err(Failure::usage("the output file and the printed results cannot both go to stdout")
                .next(format!("write the output to a file: -o {example}")));
        }
        let out = context.out();
        // Binary data would make the terminal unreadable.
        if out.terminal {
            return Err(Failure::usage("binary output is not written to a terminal")
                .next(format!("write the output to a file with -o {example}, or to a pipe")));
        }
        Ok(Self::Stdout(out))
    }

    /// Opens the file at `path`, or stdout if `path` is `None`. The output is text, so stdout may be a
    /// terminal.
    pub(crate) fn text(
        path: Option<&Path>,
        inputs: &[PathBuf],
        args: OutArgs,
        context: &Context,
    ) -> Result<Self, Failure> {
        Ok(match path {
            Some(path) => Self::File(Box::new(OutFile::create(path, inputs, args)?)),
            None => Self::Stdout(context.out()),
        })
    }

    /// Completes the output. Returns its path, or `None` if it was written to stdout.
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
