//! Input of a command: a file, or stdin.

use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use rovelog::core::parallel::{self, Jobs};
use rovelog::ulog_format::UlogReader;
use rovelog::{AnyLog, Diagnostics, Error, LogStream, ReadOptions, Select, Severity};
use rovelog_export::Provenance;

use crate::context::Context;
use crate::failure::{Failure, Outcome, Status};
use crate::need::{Need, format};
use crate::remote::Remote;

/// The log argument of a command.
#[derive(clap::Args)]
pub(crate) struct LogArg {
    /// Log file; - for stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl LogArg {
    pub(crate) fn input(&self) -> Result<Input, Failure> {
        Input::new(self.file.as_deref())
    }
}

/// The logs of a command.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Log files, folders and patterns ('*.ulg'); - for stdin
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl LogArgs {
    /// Runs `each` for all logs, whose outputs are parts of one.
    pub(crate) fn each(&self, context: &Context, each: impl FnMut(&Input) -> Outcome) -> Outcome {
        Input::each(&Input::all(&self.files)?, context, each)
    }

    /// Reads all logs on all threads, and runs `take` for them, in their order.
    pub(crate) fn each_read<R: Send>(
        &self,
        context: &Context,
        read: impl Fn(&Input) -> Result<R, Failure> + Sync,
        take: impl FnMut(&Input, R) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(&self.files)?;
        let (read, mut take) = (|at: usize| read(&inputs[at]), take);
        Input::each_read(&inputs, context, context.jobs(), read, |at, read| take(&inputs[at], read))
    }

    /// Returns the arguments.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.files
    }
}

/// An input file.
pub(crate) struct Input {
    /// The given path; `-` is stdin. Of an address, what may be shown.
    pub(crate) path: PathBuf,
    remote: Option<Remote>,
}

impl Input {
    /// Returns the given file; without one, stdin if data are piped in.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, Failure> {
        if path.is_none() && std::io::stdin().is_terminal() {
            return Err(Failure::usage("no log file given").next("name a file, or - for stdin"));
        }
        let path = path.unwrap_or(Path::new("-")).to_owned();
        if rovelog::is_address(&path) {
            let remote = Remote::new(&path)?;
            return Ok(Self { path: remote.shown(), remote: Some(remote) });
        }
        Ok(Self { path, remote: None })
    }

    /// Returns all given files, the logs in folders and those that match patterns; or stdin.
    pub(crate) fn all(paths: &[PathBuf]) -> Result<Vec<Self>, Failure> {
        if paths.is_empty() {
            return Ok(vec![Self::new(None)?]);
        }
        let mut inputs = Vec::new();
        for path in paths {
            if !is_several(path) {
                inputs.push(Self::new(Some(path))?);
                continue;
            }
            let found = rovelog_scale::find(&[path.to_string_lossy()])?;
            let found = found.iter().map(|log| Self::new(Some(Path::new(&log.uri))));
            inputs.extend(found.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(inputs)
    }

    /// Runs `each` for all logs, whose outputs are parts of one. Of several logs, it continues after
    /// a failure.
    pub(crate) fn each(
        inputs: &[Self],
        context: &Context,
        mut each: impl FnMut(&Self) -> Outcome,
    ) -> Outcome {
        Self::in_turn(inputs, context, &mut |at| each(&inputs[at]))
    }

    /// Runs `each` for the numbers of all logs, as [`Self::each`] does for the logs.
    pub(crate) fn in_turn(
        inputs: &[Self],
        context: &Context,
        each: &mut dyn FnMut(usize) -> Outcome,
    ) -> Outcome {
        if inputs.len() == 1 {
            return each(0);
        }
        let mut after = After::new(inputs, context);
        (0..inputs.len()).try_for_each(|at| after.part(&inputs[at], || each(at)))?;
        context.parts.end(context.out())?;
        Ok(after.worst)
    }

    /// Runs `read` for the numbers of all logs on so many threads, and `take` with what it returns, in
    /// the order of the logs: their outputs are parts of one, which `read` does not write. Of several
    /// logs, it continues after a failure.
    pub(crate) fn each_read<R: Send>(
        inputs: &[Self],
        context: &Context,
        jobs: Jobs,
        read: impl Fn(usize) -> Result<R, Failure> + Sync,
        mut take: impl FnMut(usize, R) -> Outcome,
    ) -> Outcome {
        if inputs.len() == 1 {
            return take(0, read(0)?);
        }
        let mut after = After::new(inputs, context);
        parallel::in_order(
            jobs,
            || (),
            |(), at| (at, read(at)),
            |push| (0..inputs.len()).try_for_each(push),
            |(at, read): (usize, Result<R, Failure>)| {
                after.part(&inputs[at], || read.and_then(|read| take(at, read)))
            },
        )?;
        context.parts.end(context.out())?;
        Ok(after.worst)
    }

    /// Runs `each` for all files. Continues after a failure; the worst outcome wins (1, then 3,
    /// then 0).
    pub(crate) fn for_all(
        inputs: &[Self],
        context: &Context,
        mut each: impl FnMut(&Self) -> Outcome,
    ) -> Outcome {
        let mut after = After::new(inputs, context);
        inputs.iter().try_for_each(|input| after.log(input, each(input)))?;
        Ok(after.worst)
    }

    /// Returns the size of the file; 0 if it is not known.
    fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path == Path::new("-")
    }

    pub(crate) const fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the name for machine formats.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Returns the files that are read with this log, none of which may be the output: the log, its
    /// companion files, and declared types.
    pub(crate) fn files(&self, context: &Context) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        if !self.is_stdin() {
            files.extend(rovelog::companions(&self.path, format(context)));
        }
        files.extend(context.global.types.clone());
        files
    }

    /// Returns a name for a log made from this one, for messages: `flight.part.ulg`.
    pub(crate) fn name_for(&self, what: &str) -> String {
        let (stem, extension) = (self.path.file_stem(), self.path.extension());
        match stem.zip(extension).filter(|_| !self.is_stdin()) {
            Some((stem, extension)) => {
                format!("{}.{what}.{}", stem.to_string_lossy(), extension.to_string_lossy())
            }
            None => format!("{what}.log"),
        }
    }

    /// Opens the log; stdin is read into memory.
    pub(crate) fn open(&self, context: &Context) -> Result<AnyLog, Failure> {
        Ok(self.open_hashing(context, &context.options, &Need::All, false)?.0)
    }

    /// Opens the log; of a remote one, what its summary needs.
    pub(crate) fn open_outline(&self, context: &Context) -> Result<AnyLog, Failure> {
        Ok(self.open_hashing(context, &context.options, &Need::Outline, false)?.0)
    }

    /// Opens the log; of a remote one, the records that `select` names.
    pub(crate) fn open_part(
        &self,
        context: &Context,
        select: &dyn Fn(&AnyLog) -> Result<Select, Failure>,
    ) -> Result<AnyLog, Failure> {
        Ok(self.open_hashing(context, &context.options, &Need::Part(select), false)?.0)
    }

    /// Opens the log and reads all of it, even if its index says what is in it.
    pub(crate) fn open_all(&self, context: &Context) -> Result<AnyLog, Failure> {
        let mut options = context.options.clone();
        options.read_all = true;
        Ok(self.open_hashing(context, &options, &Need::All, false)?.0)
    }

    /// Opens this file alone, without the files that continue it.
    pub(crate) fn open_alone(&self, context: &Context) -> Result<AnyLog, Failure> {
        let mut options = context.options.clone();
        options.alone = true;
        Ok(self.open_hashing(context, &options, &Need::All, false)?.0)
    }

    /// Opens the log, and returns its provenance: its name and, if the output has a place for it
    /// (`told`), the SHA-256 of its bytes. Of a remote log, what is needed is read.
    pub(crate) fn open_with_provenance(
        &self,
        context: &Context,
        need: &Need<'_>,
        told: bool,
    ) -> Result<(AnyLog, Provenance), Failure> {
        let (log, known) = self.open_hashing(context, &context.options, need, told)?;
        let name = if self.is_stdin() { None } else { self.path.file_name() };
        let name = name.map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let provenance = Provenance::new(name);
        if !told {
            return Ok((log, provenance));
        }
        let sha256 = match known {
            Some(sha256) => sha256,
            // Not known of a log that is not read whole.
            None if self.is_remote() => return Ok((log, provenance)),
            None => rovelog::source(&self.path)
                .and_then(|file| rovelog_export::sha256(file).map_err(|error| Error::io("rovelog", error)))
                .map_err(|error| Failure::from(error).at(&self.path))?,
        };
        Ok((log, provenance.with_sha256(sha256)))
    }

    /// Opens the log; with `hash`, also returns the SHA-256 of what can be read only once: stdin, or a
    /// remote log.
    fn open_hashing(
        &self,
        context: &Context,
        options: &ReadOptions,
        need: &Need<'_>,
        hash: bool,
    ) -> Result<(AnyLog, Option<String>), Failure> {
        if let Some(remote) = &self.remote {
            let opened = remote.open(context, options, need, hash);
            let (log, sha256) = opened.map_err(|failure| failure.at(&self.path))?;
            self.refuse_damage(log.diagnostics(), context)?;
            return Ok((log, sha256));
        }
        let mut sha256 = None;
        let opened = if self.is_stdin() {
            let bytes = stdin().map_err(|error| Failure::from(error).at(&self.path))?;
            sha256 = hash.then(|| rovelog_export::sha256(&bytes[..]).unwrap_or_default());
            rovelog::from_bytes_as(format(context), bytes.into(), options)
        } else {
            rovelog::open_as(format(context), &self.path, options)
        };
        let log = opened.map_err(|error| Failure::from(error).at(&self.path))?;
        self.refuse_damage(log.diagnostics(), context)?;
        Ok((log, sha256))
    }

    /// Returns the failure of a command for another format.
    pub(crate) fn of_another_format(&self, log: &AnyLog, wanted: &str) -> Failure {
        Failure::usage(format!("this is {}, not {wanted}", log.format().name))
            .next("show the log: rovelog info FILE")
            .at(&self.path)
    }

    /// Returns the log as a ULog, or a failure.
    pub(crate) fn ulog<'a>(&self, log: &'a AnyLog) -> Result<&'a UlogReader, Failure> {
        match log {
            AnyLog::Ulog(ulog) => Ok(ulog),
            other => Err(self.of_another_format(other, "ULog")),
        }
    }

    /// Opens stdin as a stream.
    pub(crate) fn stream(&self, context: &Context) -> Result<Box<dyn LogStream>, Failure> {
        let stdin = Box::new(std::io::stdin());
        let opened = rovelog::open_stream_as(format(context), stdin, &context.options);
        opened.map_err(|error| Failure::from(error).at(&self.path))
    }

    /// With `--strict`, the first loss is a failure.
    pub(crate) fn refuse_damage(&self, found: &Diagnostics, context: &Context) -> Result<(), Failure> {
        if !context.global.strict || found.ledger().is_empty() {
            return Ok(());
        }
        let cause = match found.list().iter().find(|problem| problem.rule.severity >= Severity::LeftOut) {
            Some(first) => format!("{} (bytes {}..{})", first.message, first.range.start, first.range.end),
            None => "the log is damaged".to_owned(),
        };
        Err(Failure::failed(cause)
            .next("leave out --strict to skip damage, or list all of it: rovelog check FILE")
            .at(&self.path))
    }
}

/// What comes after each of several logs: the progress, the message of a failure, and the exit code.
struct After<'a> {
    context: &'a Context,
    done: u64,
    worst: Status,
}

impl<'a> After<'a> {
    fn new(inputs: &[Input], context: &'a Context) -> Self {
        if inputs.len() > 1 {
            context.progress.start(Some(inputs.iter().map(Input::size).sum()));
        }
        Self { context, done: 0, worst: Status::Done }
    }

    /// Takes the outcome of the next log, whose output is a part of that of the run.
    ///
    /// # Errors
    /// Returns a failure after which no other log is read.
    fn part(&mut self, input: &Input, run: impl FnOnce() -> Outcome) -> Result<(), Failure> {
        self.context.parts.start(input.name());
        let outcome = run();
        self.log(input, outcome.map_err(|failure| failure.at(&input.path)))
    }

    /// Takes the outcome of the next log.
    ///
    /// # Errors
    /// Returns a failure after which no other log is read.
    fn log(&mut self, input: &Input, outcome: Outcome) -> Result<(), Failure> {
        self.done += input.size();
        self.context.progress.at(self.done);
        match outcome {
            Ok(status) => self.worst = self.worst.max(status),
            Err(failure) if failure.ends_the_run() => return Err(failure),
            Err(failure) => {
                self.context.notices.failure(&failure);
                self.worst = Status::Failed;
            }
        }
        Ok(())
    }
}

/// Splits arguments into logs and names: a log is stdin, an address, what exists, a pattern of files
/// (with a folder or an extension), and what ends like a log, so that a misspelt file is not taken
/// for a name.
pub(crate) fn logs_and_names(words: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
    let is_log = |path: &&PathBuf| {
        let known =
            |extension: &str| rovelog::FORMATS.iter().any(|format| format.extensions.contains(&extension));
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let pattern = path.parent().is_some_and(|folder| folder.to_string_lossy().contains('*'));
        *path == Path::new("-")
            || rovelog::is_address(path)
            || path.exists()
            || pattern
            || extension.is_some_and(|extension| known(&extension))
    };
    let (logs, names): (Vec<_>, Vec<_>) = words.iter().partition(is_log);
    let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
    (logs.into_iter().cloned().collect(), names.collect())
}

/// Splits arguments into logs and signals. The first is a log, and so is any other that is an address,
/// a file, a folder with a slash, or ends like a log.
pub(crate) fn logs_and_signals(words: &[String]) -> (Vec<PathBuf>, Vec<String>) {
    let is_log = |word: &str| {
        let path = Path::new(word);
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let mut known = rovelog::FORMATS.iter().flat_map(|format| format.extensions);
        let ends_like_a_log = extension.is_some_and(|extension| {
            // Velocities are called `vel`, too.
            known.any(|known| *known == extension)
                && (extension != "vel" || rovelog_scale::find(&[word]).is_ok())
        });
        let is_folder = word.contains('/') && path.is_dir();
        rovelog::is_address(path) || path.is_file() || is_folder || ends_like_a_log
    };
    let others = words.iter().skip(1);
    let (logs, signals): (Vec<_>, Vec<_>) = others.cloned().partition(|word| is_log(word));
    (words.iter().take(1).cloned().chain(logs).map(PathBuf::from).collect(), signals)
}

/// Returns whether a path is a folder, or a pattern and no file; of an address, whether it is that of
/// a folder or a pattern. A `?` in an address is the start of a signature.
pub(crate) fn is_several(path: &Path) -> bool {
    let text = path.to_string_lossy();
    if rovelog::is_address(path) {
        return text.ends_with('/') || text.contains('*');
    }
    // What is wrong with an archive is said where it is opened.
    let is_archive = || rovelog::logs_in_archive(path).is_ok_and(|logs| !logs.is_empty());
    path.is_dir() || (text.contains(['*', '?']) && !path.exists()) || is_archive()
}

/// Reads all bytes of stdin. A device is refused, because it may have no end.
fn stdin() -> rovelog::Result<Vec<u8>> {
    let io = |error| Error::io("rovelog", error);
    let mut stdin = std::io::stdin().lock();
    let mut bytes = Vec::new();
    std::io::Read::by_ref(&mut stdin).take(1).read_to_end(&mut bytes).map_err(io)?;
    #[cfg(unix)]
    if !bytes.is_empty() {
        use std::os::fd::AsFd as _;
        let file = std::fs::File::from(stdin.as_fd().try_clone_to_owned().map_err(io)?);
        rovelog::refuse_device(&file.metadata().map_err(io)?)?;
    }
    stdin.read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}
