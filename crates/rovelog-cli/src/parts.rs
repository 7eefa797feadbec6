//! Joins the outputs of a command that reads several logs into one output.

use std::io;
use std::sync::Mutex;

use rovelog::core::internal::parallel::lock;

use crate::failure::Failure;
use crate::format::Format;
use crate::text::{Paint, escape};

/// Joins the outputs for several logs into one output, which shows to which log each output
/// belongs:
///
/// - In text, each log has a heading with its name, in the style of the Unix program `head`.
/// - JSON is an array with one document for each log.
/// - Each line of NDJSON and each row of CSV starts with the name of its log.
///
/// If the command reads a single log, none of these are added.
pub(crate) struct Parts {
    format: Format,
    // The state is behind a mutex, because several threads may write output.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Name of the current log. `None` if the command reads a single log.
    name: Option<String>,
    /// True if the text output already contains the name of each log, so that no headings are
    /// needed.
    has_names: bool,
    /// True if something has been written for the current log.
    started: bool,
    /// True if something has been written for any log of the command.
    any: bool,
    /// Columns of the CSV header and the name of the first log, which determined these columns.
    head: Option<(Vec<String>, String)>,
}

impl Parts {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, state: Mutex::default() }
    }

    /// Suppresses the headings in text, because the text already contains the names of the logs.
    pub(crate) fn suppress_headings(&self) {
        lock(&self.state).has_names = true;
    }

    /// Starts the output of the next log.
    pub(crate) fn start(&self, name: String) {
        let mut state = lock(&self.state);
        (state.name, state.started) = (Some(name), false);
    }

    /// Ends the joined output after all logs, for example with the closing bracket of a JSON array.
    pub(crate) fn end(&self, mut out: impl io::Write) -> io::Result<()> {
        // Without this line, a comma would be written before the closing bracket, because the
        // bracket would count as the output of the next log.
        lock(&self.state).started = true;
        if self.format == Format::Json {
            let any = lock(&self.state).any;
            out.write_all(if any { b"]\n" } else { b"[]\n" })?;
        }
        out.flush()
    }

    /// Returns the name of the current log. Returns `None` if the command reads a single log.
    pub(crate) fn name(&self) -> Option<String> {
        lock(&self.state).name.clone()
    }

    /// Returns the text that starts a line of NDJSON and names the log, for example
    /// `"file":"a.ulg",`. Returns `None` if the command reads a single log.
    pub(crate) fn key(&self) -> Option<String> {
        let name = serde_json::Value::from(self.name()?);
        Some(format!("\"file\":{name},"))
    }

    /// Returns true if the CSV header must be written, that is, for the first log only.
    ///
    /// # Errors
    /// Returns an error if the columns differ from the columns of the first log.
    pub(crate) fn needs_header(&self, head: &[&str]) -> Result<bool, Failure> {
        let mut state = lock(&self.state);
        // If there is a single log, its header is always written.
        let Some(name) = state.name.clone() else { return Ok(true) };
        match &state.head {
            None => {
                state.head = Some((head.iter().map(|&column| column.to_owned()).collect(), name));
                Ok(true)
            }
            Some((columns, _)) if columns.iter().eq(head) => Ok(false),
            Some((_, first)) => {
                Err(Failure::failed(format!("the columns of this log differ from the columns of {first}"))
                    .next("select fields that all logs have with --fields, or use -f ndjson"))
            }
        }
    }

    /// Returns the text to write before the first output of a log, such as a heading or a comma.
    /// Returns `None` if something has already been written for this log.
    pub(crate) fn separator(&self, paint: Paint) -> Option<String> {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.started, true) {
            return None;
        }
        let title = paint.bold(&format!("==> {} <==", escape(state.name.as_deref()?)));
        let later = std::mem::replace(&mut state.any, true);
        match self.format {
            Format::Json => Some(if later { "," } else { "[" }.to_owned()),
            Format::Text if !state.has_names => Some(format!("{}{title}\n", if later { "\n" } else { "" })),
            _ => None,
        }
    }
}
