//! Workers, which are processes that make one pack each. If a log crashes its worker, no other pack
//! is affected. Workers run on this machine or on those of an engine.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::member::Pack;
use super::pack::{Packed, write};
use crate::ScaleError;
use crate::error::Blame;

/// A function that runs a task on an engine. It returns the result of [`Worker::answer`], which the
/// engine called, or the reason why there is none.
pub type Engine = Arc<dyn Fn(&str) -> Result<String, NoAnswer> + Send + Sync>;

/// Why an engine has no answer to a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The worker ended. The task is tried again.
    Ended(String),
    /// The run must stop. No further log is added.
    Stopped(String),
}

/// How workers are started.
#[derive(Clone)]
pub enum Worker {
    /// A process on this machine, which is a program that calls [`Worker::serve`].
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// An engine. Its workers must have the logs and the lake under the same paths.
    Engine(Engine),
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { program, arguments } => {
                f.debug_struct("Process").field("program", program).field("arguments", arguments).finish()
            }
            Self::Engine(_) => f.write_str("Engine"),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Task {
    pack: Pack,
    staging: PathBuf,
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Done(Packed),
    Refused(String),
    Unread(String),
    Unwritten(String),
}

/// Why a worker has not made a pack.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The worker reported that a log cannot be read to its end, and never will be.
    Refused(String),
    /// The worker reported that a log cannot be read at present.
    Unread(String),
    /// The worker could not write or could not be started, so no log can be added.
    Stopped(String),
    /// The worker ended without an answer.
    Ended(String),
}

impl Worker {
    /// Runs a worker, which reads a task from stdin and prints the answer. It exits if the program
    /// that started it ends.
    ///
    /// # Errors
    /// Returns an error if stdin has no task.
    pub fn serve() -> Result<(), ScaleError> {
        let mut line = String::new();
        let mut input = BufReader::new(std::io::stdin());
        input.read_line(&mut line).map_err(ScaleError::lake("stdin"))?;
        thread::spawn(move || {
            // The other program sends nothing more, so reading only returns when that program ends.
            let _ = input.read_line(&mut String::new());
            std::process::exit(1);
        });
        let text = Self::answer(&line)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(ScaleError::lake("stdout"))
    }

    /// Runs a task and returns the answer. Both are JSON.
    ///
    /// # Errors
    /// Returns an error if `task` is not a task.
    pub fn answer(task: &str) -> Result<String, ScaleError> {
        let json = |error: serde_json::Error| ScaleError::Split(error.to_string());
        let task: Task = serde_json::from_str(task).map_err(json)?;
        // The folder name is unique, because an engine may repeat a task while the first attempt is
        // still writing.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let staging = task.staging.join(format!("{}-{now}", std::process::id()));
        let answer = match write(&task.pack, &staging) {
            Ok(packed) => Answer::Done(packed),
            Err(error) => {
                // If this fails, the folder is removed later with that of the task.
                let _ = fs::remove_dir_all(&staging);
                let why = error.to_string();
                match error.blame() {
                    Blame::Log => Answer::Refused(why),
                    Blame::Source => Answer::Unread(why),
                    Blame::Lake => Answer::Unwritten(why),
                }
            }
        };
        serde_json::to_string(&answer).map_err(json)
    }

    /// Runs a worker that makes a pack.
    pub(crate) fn run(&self, pack: &Pack, staging: &Path) -> Result<Packed, Failure> {
        let task = Task { pack: pack.clone(), staging: staging.to_owned() };
        let task = serde_json::to_string(&task).map_err(|error| Failure::Ended(error.to_string()))?;
        let (answer, why) = match self {
            Self::Process { program, arguments } => in_process(program, arguments, &task)?,
            Self::Engine(engine) => {
                let answer = engine(&task).map_err(|error| match error {
                    NoAnswer::Ended(why) => Failure::Ended(why),
                    NoAnswer::Stopped(why) => Failure::Stopped(why),
                })?;
                (answer, "no answer".to_owned())
            }
        };
        match serde_json::from_str(&answer) {
            Ok(Answer::Done(packed)) => Ok(packed),
            Ok(Answer::Refused(why)) => Err(Failure::Refused(why)),
            Ok(Answer::Unread(why)) => Err(Failure::Unread(why)),
            Ok(Answer::Unwritten(why)) => Err(Failure::Stopped(why)),
            Err(_) => Err(Failure::Ended(why)),
        }
    }
}

/// Runs a task in a process. Returns its answer, which may be empty, and its exit status as text.
fn in_process(program: &Path, arguments: &[String], task: &str) -> Result<(String, String), Failure> {
    let ended = |why: &dyn fmt::Display| Failure::Ended(why.to_string());
    let mut process = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::Stopped(format!("{}: {error}", program.display())))?;
    let mut input = process.stdin.take();
    if let Some(input) = &mut input {
        // If the process has already ended, its status is the reason.
        let _ = writeln!(input, "{task}");
    }
    let mut answer = String::new();
    if let Some(output) = process.stdout.take() {
        // If this fails, the status of the process is the reason, too.
        let _ = BufReader::new(output).read_line(&mut answer);
    }
    // The worker ends after its answer, or at the latest when its input is closed here.
    drop(input);
    let status = process.wait().map_err(|error| ended(&error))?;
    Ok((answer, status.to_string()))
}
