//! Workers: processes that each make one pack, so that a log that ends its process ends no other.
//! They run on this machine, or where an engine has its own.

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

/// Has a task done elsewhere, and returns what [`Worker::answer`] returned there, or why there is
/// no answer.
pub type Engine = Arc<dyn Fn(&str) -> Result<String, NoAnswer> + Send + Sync>;

/// Why an engine has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// Its worker ended. The task is tried again.
    Ended(String),
    /// The run is to end: no log that is left is added.
    Stopped(String),
}

/// How a worker is started.
#[derive(Clone)]
pub enum Worker {
    /// A process of this machine: a program with arguments that calls [`Worker::serve`].
    Process {
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// An engine, whose workers see the logs and the lake under the same paths.
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

/// Why a worker has made nothing of a pack.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It said so: a log is such that it cannot be read to its end.
    Refused(String),
    /// It said so: a log cannot be read now.
    Unread(String),
    /// It could not write, or could not even be started: no log can be added.
    Stopped(String),
    /// It ended without a word.
    Ended(String),
}

impl Worker {
    /// Runs in a worker: reads a task from stdin, and prints the answer. If the program that
    /// started the worker ends, the worker ends too.
    ///
    /// # Errors
    /// Returns an error if stdin has no task.
    pub fn serve() -> Result<(), ScaleError> {
        let mut line = String::new();
        let mut input = BufReader::new(std::io::stdin());
        input.read_line(&mut line).map_err(ScaleError::lake("stdin"))?;
        thread::spawn(move || {
            // Nothing more comes: the end of the input is the end of the program that wrote to it.
            let _ = input.read_line(&mut String::new());
            std::process::exit(1);
        });
        let text = Self::answer(&line)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(ScaleError::lake("stdout"))
    }

    /// Does a task, and returns the answer; both are JSON.
    ///
    /// # Errors
    /// Returns an error if this is no task.
    pub fn answer(task: &str) -> Result<String, ScaleError> {
        let json = |error: serde_json::Error| ScaleError::Split(error.to_string());
        let task: Task = serde_json::from_str(task).map_err(json)?;
        // An engine may try a task again while the first attempt still writes.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let staging = task.staging.join(format!("{}-{now}", std::process::id()));
        let answer = match write(&task.pack, &staging) {
            Ok(packed) => Answer::Done(packed),
            Err(error) => {
                // What is left here is removed with the folder of the task.
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

    /// Has a worker make a pack.
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

/// Has a process do a task. Returns its answer, if any, and how it ended.
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
        // A process that has ended already says why by its status.
        let _ = writeln!(input, "{task}");
    }
    let mut answer = String::new();
    if let Some(output) = process.stdout.take() {
        // The same.
        let _ = BufReader::new(output).read_line(&mut answer);
    }
    // The answer is the last thing that a worker does; it ends at the latest now.
    drop(input);
    let status = process.wait().map_err(|error| ended(&error))?;
    Ok((answer, status.to_string()))
}
