//! The parts of an output that are of one log each, where a command reads several logs.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::Failure;
use crate::format::Format;
use crate::text::{Paint, escape};

/// Which log the output is of now. In text, its name is above its part, as `head` writes it;
/// JSON is a list of documents; lines of NDJSON and rows of CSV start with the name.
pub(crate) struct Parts {
    format: Format,
    // Outputs are written in other threads too.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The log of this part; `None` if the command reads one log.
    name: Option<String>,
    /// Whether the text of each log has its name anyway.
    named: bool,
    /// Whether something was written of the log of this part, and of any log.
    started: bool,
    any: bool,
    /// The columns of CSV, and the log that they are of.
    head: Option<(Vec<String>, String)>,
}

impl Parts {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that the text of each log has its name.
    pub(crate) fn are_named(&self) {
        self.state().named = true;
    }

    /// Starts the part of one of several logs.
    pub(crate) fn start(&self, name: String) {
        let mut state = self.state();
        (state.name, state.started) = (Some(name), false);
    }

    /// Ends the output of several logs.
    pub(crate) fn end(&self, mut out: impl io::Write) -> io::Result<()> {
        self.state().started = true;
        if self.format == Format::Json {
            let any = self.state().any;
            out.write_all(if any { b"]\n" } else { b"[]\n" })?;
        }
        out.flush()
    }

    /// Returns the log of this part, if the command reads several.
    pub(crate) fn name(&self) -> Option<String> {
        self.state().name.clone()
    }

    /// Returns `"file":"a.ulg",`, which starts an object of NDJSON.
    pub(crate) fn key(&self) -> Option<String> {
        let name = serde_json::Value::from(self.name()?);
        Some(format!("\"file\":{name},"))
    }

    /// Returns whether the columns of CSV are still to be written.
    ///
    /// # Errors
    /// Returns an error if they differ from those of an earlier log.
    pub(crate) fn takes_head(&self, head: &[&str]) -> Result<bool, Failure> {
        let mut state = self.state();
        let Some(name) = state.name.clone() else { return Ok(true) };
        match &state.head {
            None => {
                state.head = Some((head.iter().map(|&column| column.to_owned()).collect(), name));
                Ok(true)
            }
            Some((columns, _)) if columns.iter().eq(head) => Ok(false),
            Some((_, first)) => Err(Failure::failed(format!("its columns differ from those of {first}"))
                .next("name the fields that all logs have (--fields), or use -f ndjson")),
        }
    }

    /// Returns what comes before the first byte of a part.
    pub(crate) fn before(&self, paint: Paint) -> Option<String> {
        let mut state = self.state();
        if std::mem::replace(&mut state.started, true) {
            return None;
        }
        let title = paint.bold(&format!("==> {} <==", escape(state.name.as_deref()?)));
        let later = std::mem::replace(&mut state.any, true);
        match self.format {
            Format::Json => Some(if later { "," } else { "[" }.to_owned()),
            Format::Text if !state.named => Some(format!("{}{title}\n", if later { "\n" } else { "" })),
            _ => None,
        }
    }
}
