//! Input of a command, which is a file, a remote log, or stdin. Some commands accept several logs
//! and process each of them.

use std::io::{IsTerminal as _, Read as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rovelog::core::internal::parallel::{self, Jobs};
use rovelog::ulog_format::UlogReader;
use rovelog::{AnyLog, Diagnostics, Error, LogStream, ReadOptions, Select, Severity};
use rovelog_export::Provenance;

use crate::context::Context;
use crate::failure::{Failure, Outcome, Status};
use crate::read_scope::{ReadScope, input_format};
use crate::remote::Remote;

/// Argument of the commands that read a single log.
#[derive(clap::Args)]
pub(crate) struct LogArg {
    /// Log file, or - for stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl LogArg {
    pub(crate) fn input(&self) -> Result<Input, Failure> {
        Input::new(self.file.as_deref())
    }
}

/// Arguments of the commands that read one or more logs.
#[derive(clap::Args)]
pub(crate) struct LogArgs {
    /// Log files, folders and patterns ('*.ulg'), or - for stdin
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

impl LogArgs {
    /// Calls `each` for one log after the other, and joins the outputs of all calls.
    pub(crate) fn each(&self, context: &Context, each: impl FnMut(&Input) -> Outcome) -> Outcome {
        Input::each(&Input::all(&self.files)?, context, each)
    }

    /// Calls `read` for all logs in parallel. Then calls `take` with each result, in the order of
    /// the logs. The outputs of all calls of `take` are joined.
    pub(crate) fn read_parallel<R: Send>(
        &self,
        context: &Context,
        read: impl Fn(&Input) -> Result<R, Failure> + Sync,
        take: impl FnMut(&Input, R) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(&self.files)?;
        let (read, mut take) = (|at: usize| read(&inputs[at]), take);
        Input::read_parallel(&inputs, context, read, |at, read| take(&inputs[at], read))
    }
}

/// A log that a command reads.
pub(crate) struct Input {
    /// Path given by the user. It is `-` for stdin, and a URL without user, password and query for
    /// a remote log.
    pub(crate) path: PathBuf,
    remote: Option<Remote>,
}

impl Input {
    /// Creates the input for a path or URL. If `path` is `None`, the input is stdin. Returns an
    /// error if `path` is `None` and stdin is a terminal.
    pub(crate) fn new(path: Option<&Path>) -> Result<Self, Failure> {
        // If stdin is a terminal, the command would wait for the user to type a log.
        if path.is_none() && std::io::stdin().is_terminal() {
            return Err(Failure::usage("no log file was given").next("name a log file, or - for stdin"));
        }
        let path = path.unwrap_or(Path::new("-")).to_owned();
        if rovelog::is_address(&path) {
            let remote = Remote::new(&path)?;
            return Ok(Self { path: remote.shown(), remote: Some(remote) });
        }
        Ok(Self { path, remote: None })
    }

    /// Creates the inputs for all arguments. A folder or an archive is replaced by the logs in it,
    /// and a pattern is replaced by the files that match. If there are no arguments, the input is
    /// stdin.
    pub(crate) fn all(paths: &[PathBuf]) -> Result<Vec<Self>, Failure> {
        if paths.is_empty() {
            return Ok(vec![Self::new(None)?]);
        }
        let mut inputs = Vec::new();
        for path in paths {
            // A path without a file is kept, so that the error is reported when the log is opened.
            if !may_be_several(path) {
                inputs.push(Self::new(Some(path))?);
                continue;
            }
            let found = rovelog_scale::find(&[path.to_string_lossy()])?;
            let found = found.iter().map(|log| Self::new(Some(Path::new(&log.uri))));
            inputs.extend(found.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(inputs)
    }

    /// Calls `each` for one log after the other, and joins the outputs of all calls. If one of
    /// several logs fails, the remaining logs are still read.
    pub(crate) fn each(
        inputs: &[Self],
        context: &Context,
        mut each: impl FnMut(&Self) -> Outcome,
    ) -> Outcome {
        Self::each_index(inputs, context, &mut |at| each(&inputs[at]))
    }

    /// Like [`Self::each`], but calls `each` with the index of the log.
    pub(crate) fn each_index(
        inputs: &[Self],
        context: &Context,
        each: &mut dyn FnMut(usize) -> Outcome,
    ) -> Outcome {
        if inputs.len() == 1 {
            return each(0);
        }
        let mut after = LogRun::new(inputs, context);
        (0..inputs.len()).try_for_each(|at| after.run_part(&inputs[at], || each(at)))?;
        context.parts.end(context.out())?;
        Ok(after.worst)
    }

    /// Calls `read` with the index of each log on several threads. Then calls `take` with each
    /// result, in the order of the logs. Only `take` may write output, because the outputs of
    /// different logs must not be mixed. If one of several logs fails, the remaining logs are still
    /// read.
    pub(crate) fn read_parallel<R: Send>(
        inputs: &[Self],
        context: &Context,
        read: impl Fn(usize) -> Result<R, Failure> + Sync,
        mut take: impl FnMut(usize, R) -> Outcome,
    ) -> Outcome {
        if inputs.len() == 1 {
            return take(0, read(0)?);
        }
        let mut after = LogRun::new(inputs, context);
        parallel::in_order(
            context.jobs(),
            // A failure is passed on as a value. If it were returned as an error, the remaining
            // threads would stop.
            || (),
            |(), at| (at, read(at)),
            |push| (0..inputs.len()).try_for_each(push),
            |(at, read): (usize, Result<R, Failure>)| {
                after.run_part(&inputs[at], || read.and_then(|read| take(at, read)))
            },
        )?;
        context.parts.end(context.out())?;
        Ok(after.worst)
    }

    /// Calls `each` for one file after the other. It is used by commands whose outputs are not
    /// joined. If one file fails, the remaining files are still processed. Returns the worst status
    /// of all files.
    pub(crate) fn for_all(
        inputs: &[Self],
        context: &Context,
        mut each: impl FnMut(&Self) -> Outcome,
    ) -> Outcome {
        let mut after = LogRun::new(inputs, context);
        inputs.iter().try_for_each(|input| after.record(input, each(input)))?;
        Ok(after.worst)
    }

    /// Returns the size of the file in bytes, or 0 if the size is unknown, as for stdin.
    fn size(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len())
    }

    pub(crate) fn is_stdin(&self) -> bool {
        self.path == Path::new("-")
    }

    pub(crate) const fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the name of the log as shown in machine-readable output.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Returns the paths of all files that are read for this log: the log, its companion files, and
    /// the files of the options `--types` and `--msgs`. An output must not overwrite any of them.
    pub(crate) fn files(&self, context: &Context) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        if !self.is_stdin() {
            files.extend(rovelog::companions(&self.path, input_format(context)));
        }
        files.extend(context.global.types.clone());
        files.extend(context.global.msgs.clone());
        files
    }

    /// Returns the file name of the log without its extension, or `None` for stdin.
    pub(crate) fn stem(&self) -> Option<String> {
        let stem = if self.is_stdin() { None } else { self.path.file_stem() };
        stem.map(|stem| stem.to_string_lossy().into_owned())
    }

    /// Returns the file name of the log, or `stdin`.
    pub(crate) fn title(&self) -> String {
        let name = if self.is_stdin() { None } else { self.path.file_name() };
        name.map_or_else(|| "stdin".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Suggests a file name for an output made from this log, for use in messages. For example, the
    /// name for `what` = `part` is `flight.part.ulg`.
    pub(crate) fn name_for(&self, what: &str) -> String {
        match self.stem().zip(self.path.extension()) {
            Some((stem, extension)) => format!("{stem}.{what}.{}", extension.to_string_lossy()),
            None => format!("{what}.log"),
        }
    }

    /// Opens the log. If the log is stdin, it is read into memory.
    pub(crate) fn open(&self, context: &Context) -> Result<AnyLog, Failure> {
        self.open_scope(context, &context.options, &ReadScope::All)
    }

    /// Opens the log to read its summary. From a remote log, only the parts needed for the summary
    /// are downloaded.
    pub(crate) fn open_summary(&self, context: &Context) -> Result<AnyLog, Failure> {
        self.open_scope(context, &context.options, &ReadScope::Summary)
    }

    /// Opens the log to read the records that `select` returns. From a remote log, only these
    /// records are downloaded.
    pub(crate) fn open_records(
        &self,
        context: &Context,
        select: &dyn Fn(&AnyLog) -> Result<Select, Failure>,
    ) -> Result<AnyLog, Failure> {
        self.open_scope(context, &context.options, &ReadScope::Records(select))
    }

    /// Opens the log and reads all records, even if the log has an index from which they could be
    /// counted.
    pub(crate) fn open_all(&self, context: &Context) -> Result<AnyLog, Failure> {
        let mut options = context.options.clone();
        options.read_all = true;
        self.open_scope(context, &options, &ReadScope::All)
    }

    /// Opens this file alone. If the recording is split into several files, the other files are not
    /// read.
    pub(crate) fn open_alone(&self, context: &Context) -> Result<AnyLog, Failure> {
        let mut options = context.options.clone();
        options.alone = true;
        self.open_scope(context, &options, &ReadScope::All)
    }

    fn open_scope(
        &self,
        context: &Context,
        options: &ReadOptions,
        scope: &ReadScope<'_>,
    ) -> Result<AnyLog, Failure> {
        let (log, _) = self.open_hashing(context, options, scope, false)?;
        Ok(log)
    }

    /// Opens the log and returns its provenance, which consists of the file name and the SHA-256 of
    /// the content. The hash is computed only if `with_hash` is true, because not every output
    /// format can store it. It is missing for a remote log that is not downloaded completely.
    pub(crate) fn open_with_provenance(
        &self,
        context: &Context,
        scope: &ReadScope<'_>,
        with_hash: bool,
    ) -> Result<(AnyLog, Provenance), Failure> {
        let path = self.path.clone();
        let hash = move || {
            let file = rovelog::source(&path)?;
            rovelog_export::sha256(file).map_err(|error| Error::io("rovelog", error))
        };
        // The hash of a local file is computed while the log is opened. If opening fails, the thread
        // ends with the process.
        let is_early = with_hash && self.path.is_file() && context.jobs() != Jobs::ONE;
        let early = is_early.then(|| thread::spawn(hash.clone()));
        let (log, known) = self.open_hashing(context, &context.options, scope, with_hash)?;
        let name = if self.is_stdin() { None } else { self.path.file_name() };
        let name = name.map_or_else(|| "-".into(), |name| name.to_string_lossy());
        let provenance = Provenance::new(name);
        if !with_hash {
            return Ok((log, provenance));
        }
        let sha256 = match (known, early) {
            (Some(sha256), _) => Ok(sha256),
            // The hash of a remote log is known only if the whole log was downloaded.
            (None, _) if self.is_remote() => return Ok((log, provenance)),
            (None, Some(thread)) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            (None, None) => hash(),
        };
        let sha256 = sha256.map_err(|error| Failure::from(error).at(&self.path))?;
        Ok((log, provenance.with_sha256(sha256)))
    }

    /// Opens the log. If `with_hash` is true, also returns the SHA-256 of stdin or of a remote log
    /// that is downloaded completely. These logs cannot be read a second time to compute it.
    fn open_hashing(
        &self,
        context: &Context,
        options: &ReadOptions,
        scope: &ReadScope<'_>,
        with_hash: bool,
    ) -> Result<(AnyLog, Option<String>), Failure> {
        if let Some(remote) = &self.remote {
            let opened = remote.open(context, options, scope, with_hash);
            let (log, sha256) = opened.map_err(|failure| failure.at(&self.path))?;
            self.refuse_damage(log.diagnostics(), context)?;
            return Ok((log, sha256));
        }
        let mut sha256 = None;
        let opened = if self.is_stdin() {
            let bytes = stdin().map_err(|error| Failure::from(error).at(&self.path))?;
            sha256 = with_hash.then(|| rovelog_export::sha256(&bytes[..]).unwrap_or_default());
            rovelog::from_bytes_as(input_format(context), bytes.into(), options)
        } else {
            rovelog::open_as(input_format(context), &self.path, options)
        };
        let log = opened.map_err(|error| Failure::from(error).at(&self.path))?;
        self.refuse_damage(log.diagnostics(), context)?;
        Ok((log, sha256))
    }

    /// Returns the failure for a log in a format that the command does not support. `wanted` names
    /// the format that the command requires.
    pub(crate) fn wrong_format(&self, log: &AnyLog, wanted: &str) -> Failure {
        Failure::usage(format!(
            "this command needs {wanted}, but the format of this log is {}",
            log.format().name
        ))
        .next("show a summary of the log: rovelog info FILE")
        .at(&self.path)
    }

    /// Returns the ULog reader of a log, or a failure if the log is not a ULog file.
    pub(crate) fn ulog<'a>(&self, log: &'a AnyLog) -> Result<&'a UlogReader, Failure> {
        match log {
            AnyLog::Ulog(ulog) => Ok(ulog),
            other => Err(self.wrong_format(other, "ULog")),
        }
    }

    /// Opens stdin as a stream. The log is read record by record, so its size does not matter for
    /// memory.
    pub(crate) fn stream(&self, context: &Context) -> Result<Box<dyn LogStream>, Failure> {
        let stdin = Box::new(std::io::stdin());
        let opened = rovelog::open_stream_as(input_format(context), stdin, &context.options);
        opened.map_err(|error| Failure::from(error).at(&self.path))
    }

    /// If the user gave `--strict` and some data could not be read, returns a failure that
    /// describes the first lost data.
    pub(crate) fn refuse_damage(&self, found: &Diagnostics, context: &Context) -> Result<(), Failure> {
        if !context.global.strict || found.ledger().is_empty() {
            return Ok(());
        }
        // The list of problems also contains warnings. A warning alone is not a failure, even with
        // `--strict`.
        let cause = match found.list().iter().find(|problem| problem.rule.severity >= Severity::LeftOut) {
            Some(first) => format!("{} (bytes {}..{})", first.message, first.range.start, first.range.end),
            None => "the log is damaged".to_owned(),
        };
        Err(Failure::failed(cause)
            .next("leave out --strict to skip the damage, or list all damage with rovelog check FILE")
            .at(&self.path))
    }
}

/// State of a command that reads several logs.
struct LogRun<'a> {
    context: &'a Context,
    /// Total size in bytes of the logs that are finished.
    done: u64,
    worst: Status,
}

impl<'a> LogRun<'a> {
    fn new(inputs: &[Input], context: &'a Context) -> Self {
        // If there is only one log, the command reports its progress within the log.
        if inputs.len() > 1 {
            context.progress.start(Some(inputs.iter().map(Input::size).sum()));
        }
        Self { context, done: 0, worst: Status::Done }
    }

    /// Runs the command for one log whose output is joined with the outputs of other logs. Records
    /// the outcome.
    ///
    /// # Errors
    /// Returns an error if the remaining logs must not be read, for example because the pipe was
    /// closed.
    fn run_part(&mut self, input: &Input, run: impl FnOnce() -> Outcome) -> Result<(), Failure> {
        self.context.parts.start(input.name());
        let outcome = run();
        self.record(input, outcome.map_err(|failure| failure.at(&input.path)))
    }

    /// Records the outcome of one log. A failure is printed immediately.
    ///
    /// # Errors
    /// Returns an error if the remaining logs must not be read, for example because the pipe was
    /// closed.
    fn record(&mut self, input: &Input, outcome: Outcome) -> Result<(), Failure> {
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

/// Divides the arguments of a command into logs and names of topics, fields or parameters.
///
/// An argument is a log if it is `-`, a URL, an existing path, or a pattern with a folder. An
/// argument with the extension of a log format is a log even if no such file exists. So a
/// misspelled file name is reported as a missing file and not as an unknown name.
pub(crate) fn logs_and_names(words: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
    let is_log = |path: &&PathBuf| {
        let pattern = path.parent().is_some_and(|folder| folder.to_string_lossy().contains('*'));
        *path == Path::new("-")
            || rovelog::is_address(path)
            || path.exists()
            || pattern
            || has_log_extension(path)
    };
    let (logs, names): (Vec<_>, Vec<_>) = words.iter().partition(is_log);
    let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
    (logs.into_iter().cloned().collect(), names.collect())
}

/// Returns whether a path has the extension of a log format.
pub(crate) fn has_log_extension(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let mut known = rovelog::FORMATS.iter().flat_map(|format| format.extensions);
    extension.is_some_and(|extension| known.any(|known| *known == extension))
}

/// Divides the arguments of a command into logs and signals. If no argument is a log, the first
/// argument is a misspelled log. An argument is a log in these cases: it is a URL, it is an existing
/// file, it is a folder written with a slash, or it has the extension of a log format. The first
/// argument may also be a folder without a slash, a pattern, or `-`. All other arguments are signals.
pub(crate) fn logs_and_signals(words: &[String]) -> (Vec<PathBuf>, Vec<String>) {
    let is_log = |word: &str| {
        let path = Path::new(word);
        let is_vel = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("vel"));
        // `imu.vel` may mean the field `vel` in the topic `imu`. It counts as a log only if such a
        // file exists.
        let ends_like_a_log = has_log_extension(path) && (!is_vel || rovelog_scale::find(&[word]).is_ok());
        let is_folder = word.contains('/') && path.is_dir();
        rovelog::is_address(path) || path.is_file() || is_folder || ends_like_a_log
    };
    let first_is_log = |word: &str| word == "-" || Path::new(word).exists() || word.contains('*');
    let (mut logs, mut signals) = (Vec::new(), Vec::new());
    for (i, word) in words.iter().enumerate() {
        if is_log(word) || (i == 0 && first_is_log(word)) {
            logs.push(PathBuf::from(word));
        } else {
            signals.push(word.clone());
        }
    }
    if logs.is_empty() && !signals.is_empty() {
        logs.push(PathBuf::from(signals.remove(0)));
    }
    (logs, signals)
}

/// Returns true if an argument may stand for several logs. This is true for a folder, for an
/// archive, and for a pattern that is not the name of an existing file. In a URL, `?` is not a part
/// of a pattern, because it starts the query.
pub(crate) fn may_be_several(path: &Path) -> bool {
    let text = path.to_string_lossy();
    if rovelog::is_address(path) {
        return text.ends_with('/') || text.contains('*');
    }
    // If the archive is damaged, the error is ignored here and reported when the archive is opened.
    let is_archive = || rovelog::logs_in_archive(path).is_ok_and(|logs| !logs.is_empty());
    path.is_dir() || (text.contains(['*', '?']) && !path.exists()) || is_archive()
}

/// Reads stdin to its end. Returns an error for a device such as `/dev/zero`, which may never end.
fn stdin() -> rovelog::Result<Vec<u8>> {
    let io = |error| Error::io("rovelog", error);
    let mut stdin = std::io::stdin().lock();
    let mut bytes = Vec::new();
    // An empty device such as `/dev/null` is accepted. So one byte is read before the check for a
    // device.
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
