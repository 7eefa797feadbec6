//! Messages on stderr: failures with advice, warnings about lost data, and notes. For each kind of
//! warning, only the first five warnings are printed, and all others are counted. This module also
//! determines the exit code.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;

use rovelog::core::internal::layout::EscapedTexts;
use rovelog::core::internal::parallel::lock;
use rovelog::{Diagnostic, Diagnostics, Ledger, LogReader, rosbag12};
use rovelog_export::Loss;

use crate::failure::{Failure, Outcome, Status};
use crate::progress::Progress;
use crate::text::{Paint, count, escape, with_file};

/// Maximum number of warnings of the same kind that are printed. All others are only counted.
const MAX_PRINTED: u64 = 5;

/// Prints the messages of a command.
pub(crate) struct Notices {
    verbose: bool,
    paint: Paint,
    progress: Progress,
    // The map is behind a mutex, because several threads read logs and print warnings.
    /// Number of warnings of each kind, including those that were not printed.
    warned: Mutex<BTreeMap<&'static str, u64>>,
}

impl Notices {
    pub(crate) fn new(verbose: bool, paint: Paint, progress: Progress) -> Self {
        Self { verbose, paint, progress, warned: Mutex::default() }
    }

    /// Prints a note.
    pub(crate) fn note(&self, text: &str) {
        self.print_line(&escape(text));
    }

    /// Prints a failure as a warning. It is used if the command continues despite the failure.
    pub(crate) fn warn_failure(&self, failure: &Failure) {
        self.print_failure(&self.paint.yellow("warning:"), failure);
    }

    /// Prints a warning, unless five warnings of this kind have already been printed. `kind` is a
    /// plural noun that completes the text "3 more …" in the summary.
    pub(crate) fn warn(&self, kind: &'static str, text: &str) {
        let mut warned = lock(&self.warned);
        let count = warned.entry(kind).or_default();
        *count += 1;
        if *count <= MAX_PRINTED {
            self.print_line(&format!("{} {}", self.paint.yellow("warning:"), escape(text)));
        }
    }

    /// Warns about data that an input log contains and that the newly written log does not contain.
    /// `left_out` has one description for each kind of such data.
    pub(crate) fn left_out(&self, left_out: &[String]) {
        for what in left_out {
            self.warn("values left out", &format!("the output does not contain {what}"));
        }
    }

    /// Warns about each table column that the output format cannot represent.
    pub(crate) fn losses(&self, losses: &[Loss]) -> Status {
        for loss in losses {
            let column =
                if loss.column.is_empty() { String::new() } else { format!(", field {}", loss.column) };
            let text = format!("{}{column}: {}", loss.topic, loss.why);
            self.warn("fields or records not exported", &text);
        }
        if losses.is_empty() { Status::Done } else { Status::Lost }
    }

    /// Prints the warnings that are known only after a log has been read. They concern texts that
    /// were escaped, and data that could not be read.
    pub(crate) fn end_of_log(&self, log: &dyn LogReader, file: &Path) -> Status {
        self.escaped(&log.take_escaped_texts(), file);
        self.undefined(log.diagnostics(), file);
        self.loss(log.losses(), file)
    }

    /// Warns about ROS topics whose messages stay raw bytes, because the bag does not define their
    /// types.
    pub(crate) fn undefined(&self, found: &Diagnostics, file: &Path) {
        let is_undefined = |problem: &&Diagnostic| *problem.rule == rosbag12::diagnostics::NO_DEFINITION;
        let topics = found.list().iter().filter(is_undefined).count();
        if topics > 0 {
            let text = format!(
                "the bag does not define the types of {}; --msgs PATH reads definitions from .msg files: {}",
                count(topics as u64, "topic"),
                shown(file)
            );
            self.warn("bags without definitions", &text);
        }
    }

    /// Warns about each field with texts that are not valid UTF-8. No data is lost, because such
    /// texts are written with escape sequences.
    pub(crate) fn escaped(&self, texts: &[EscapedTexts], file: &Path) {
        for EscapedTexts { field, count: texts } in texts {
            let are = if *texts == 1 { "is" } else { "are" };
            let text = format!(
                "{} of {field} {are} not UTF-8, so bytes are written as \\xcf; --text-encoding NAME \
                 decodes them: {}",
                count(*texts, "text"),
                shown(file)
            );
            self.warn("fields with texts that are not UTF-8", &text);
        }
    }

    /// Warns about data that could not be read, is missing in the log, or was excluded. Prints
    /// nothing if there is no such data.
    pub(crate) fn loss(&self, lost: &Ledger, file: &Path) -> Status {
        if lost.is_empty() {
            return Status::Done;
        }
        // stdin cannot be read a second time, so `rovelog check` is suggested only for files.
        let check =
            if file == Path::new("-") { String::new() } else { " (for details: rovelog check FILE)".into() };
        let text = format!("{lost}{}: {}", with_file(&check, file), shown(file));
        self.warn("damaged logs", &text);
        Status::Lost
    }

    /// Prints a failure with advice on what to do next.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.print_failure(&self.paint.red("error:"), failure);
    }

    fn print_failure(&self, word: &str, failure: &Failure) {
        let Failure::Message(message) = failure else { return };
        let mut text = format!("{word} {}", escape(&message.cause));
        if let Some(file) = &message.file {
            let _ = write!(text, ": {}", escape(&shown(file)));
        }
        if self.verbose {
            for cause in &message.causes {
                let _ = write!(text, "\n  caused by: {}", escape(cause));
            }
        }
        // The path of the log is inserted into the advice, so that the user can copy the commands
        // in it.
        if let Some(next) = &message.next {
            let next = message.file.as_deref().map_or_else(|| next.clone(), |file| with_file(next, file));
            let _ = write!(text, "\n  {} {}", self.paint.bold("next:"), escape(&next));
        }
        self.print_line(&text);
    }

    /// Prints one line on stderr. An error is ignored, because stderr would be the only place to
    /// report it.
    fn print_line(&self, text: &str) {
        self.progress.above(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// Prints for each kind how many warnings were not shown. Returns the exit code.
    pub(crate) fn finish(&self, outcome: Outcome) -> u8 {
        for (kind, count) in &*lock(&self.warned) {
            if let Some(more) = count.checked_sub(MAX_PRINTED).filter(|more| *more > 0) {
                self.print_line(&format!("{} {more} more {kind}", self.paint.yellow("warning:")));
            }
        }
        match outcome {
            // A program such as `head` closes the pipe when it has read enough, so this counts as a
            // success.
            Ok(Status::Done) | Err(Failure::Closed) => 0,
            Ok(Status::Failed) => 1,
            Ok(Status::Lost) => 3,
            Err(failure) => {
                self.failure(&failure);
                let usage = matches!(&failure, Failure::Message(message) if message.usage);
                if usage { 2 } else { 1 }
            }
        }
    }
}

/// Returns the path of a log as shown in messages.
fn shown(file: &Path) -> Cow<'_, str> {
    if file == Path::new("-") { Cow::Borrowed("stdin") } else { file.to_string_lossy() }
}
