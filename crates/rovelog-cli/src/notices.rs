//! Messages on stderr, and the exit code: failures with their next step, losses, and counts of
//! repeated warnings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rovelog::core::layout::EscapedTexts;
use rovelog::{Ledger, LogReader};
use rovelog_export::Loss;

use crate::failure::{Failure, Outcome, Status};
use crate::progress::Progress;
use crate::text::{Paint, count, escape, with_file};

/// Maximum number of printed warnings of one kind; the rest is counted.
const PRINTED: u64 = 5;

/// Messages of a command in addition to its results.
pub(crate) struct Notices {
    verbose: bool,
    paint: Paint,
    progress: Progress,
    // Logs are read in other threads too.
    warned: Mutex<BTreeMap<&'static str, u64>>,
}

impl Notices {
    pub(crate) fn new(verbose: bool, paint: Paint, progress: Progress) -> Self {
        Self { verbose, paint, progress, warned: Mutex::default() }
    }

    /// Prints a note.
    pub(crate) fn note(&self, text: &str) {
        self.say(&escape(text));
    }

    /// Prints a failure that does not end the command as a warning.
    pub(crate) fn setback(&self, failure: &Failure) {
        self.tell(&self.paint.yellow("warning:"), failure);
    }

    /// Prints a warning; after the fifth of a `kind`, only counts it. `kind` is a plural that
    /// follows "3 more".
    pub(crate) fn warn(&self, kind: &'static str, text: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let count = warned.entry(kind).or_default();
        *count += 1;
        if *count <= PRINTED {
            self.say(&format!("{} {}", self.paint.yellow("warning:"), escape(text)));
        }
    }

    /// Prints a line for each content of a log that the log made of it does not have.
    pub(crate) fn left_out(&self, left_out: &[String]) {
        for what in left_out {
            self.warn("values left out", &format!("left out {what}"));
        }
    }

    /// Prints a line for each kind of values that an output does not have.
    pub(crate) fn losses(&self, losses: &[Loss]) -> Status {
        for loss in losses {
            let column =
                if loss.column.is_empty() { String::new() } else { format!(", field {}", loss.column) };
            let text = format!("{}{column}: {}", loss.topic, loss.why);
            self.warn("fields or records not exported", &text);
        }
        if losses.is_empty() { Status::Done } else { Status::Lost }
    }

    /// Prints what is to be said of a log after it was read: escaped texts, and what could not be read.
    pub(crate) fn end_of_log(&self, log: &dyn LogReader, file: &Path) -> Status {
        self.escaped(&log.take_escaped_texts(), file);
        self.loss(log.losses(), file)
    }

    /// Prints a line for each field with texts that are not UTF-8. Nothing of them is lost.
    pub(crate) fn escaped(&self, texts: &[EscapedTexts], file: &Path) {
        for EscapedTexts { field, count: texts } in texts {
            let are = if *texts == 1 { "is" } else { "are" };
            let text = format!(
                "{} of {field} {are} not UTF-8: bytes are written as \\xcf; --text-encoding NAME decodes them: {}",
                count(*texts, "text"),
                shown(file)
            );
            self.warn("fields with texts that are not UTF-8", &text);
        }
    }

    /// Prints one line about data that could not be read, is missing or is left out, if any.
    pub(crate) fn loss(&self, lost: &Ledger, file: &Path) -> Status {
        if lost.is_empty() {
            return Status::Done;
        }
        let check = if file == Path::new("-") { String::new() } else { " (see: rovelog check FILE)".into() };
        let text = format!("{lost}{}: {}", with_file(&check, file), shown(file));
        self.warn("damaged logs", &text);
        Status::Lost
    }

    /// Prints a failure with its next step.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.tell(&self.paint.red("error:"), failure);
    }

    fn tell(&self, word: &str, failure: &Failure) {
        let Failure::Said(said) = failure else { return };
        let mut text = format!("{word} {}", escape(&said.cause));
        if let Some(file) = &said.file {
            let _ = write!(text, ": {}", escape(&shown(file)));
        }
        if self.verbose {
            for cause in &said.behind {
                let _ = write!(text, "\n  caused by: {}", escape(cause));
            }
        }
        if let Some(next) = &said.next {
            let next = said.file.as_deref().map_or_else(|| next.clone(), |file| with_file(next, file));
            let _ = write!(text, "\n  {} {}", self.paint.bold("next:"), escape(&next));
        }
        self.say(&text);
    }

    /// Prints one line on stderr. If stderr is closed, nothing can be reported.
    fn say(&self, text: &str) {
        self.progress.above(|| {
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }

    /// Prints the remaining counts. Returns the exit code.
    pub(crate) fn finish(&self, outcome: Outcome) -> u8 {
        for (kind, count) in &*self.warned.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Some(more) = count.checked_sub(PRINTED).filter(|more| *more > 0) {
                self.say(&format!("{} {more} more {kind}", self.paint.yellow("warning:")));
            }
        }
        match outcome {
            Ok(Status::Done) | Err(Failure::Closed) => 0,
            Ok(Status::Failed) => 1,
            Ok(Status::Lost) => 3,
            Err(failure) => {
                self.failure(&failure);
                let usage = matches!(&failure, Failure::Said(said) if said.usage);
                if usage { 2 } else { 1 }
            }
        }
    }
}

/// Returns a path for messages.
fn shown(file: &Path) -> Cow<'_, str> {
    if file == Path::new("-") { Cow::Borrowed("stdin") } else { file.to_string_lossy() }
}
