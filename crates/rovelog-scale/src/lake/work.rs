//! Workers, which are processes that each write the files of one pack of logs. If a log crashes its
//! worker, no other pack is affected. Workers run on this machine, or on the machines of a query
//! engine.

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
use super::pack::{Failure, Packed, write};
use crate::ScaleError;

/// A function that passes a task to a query engine. The engine calls [`Worker::answer`] on one of
/// its machines. The function returns the result of that call, or the reason why there is no
/// result.
pub type Engine = Arc<dyn Fn(&str) -> Result<String, Failure> + Send + Sync>;

/// Kind of worker that writes the files of packs.
#[derive(Clone)]
pub enum Worker {
    /// The worker is a process on this machine.
    Process {
        /// Path of a program that calls [`Worker::serve`].
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
    },
    /// The worker runs on a query engine. Its machines must have access to the logs and the lake
    /// under the same paths.
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

/// A task for a worker. The worker writes the files of `pack` to the folder `staging`.
#[derive(Serialize, Deserialize)]
struct Task {
    pack: Pack,
    staging: PathBuf,
}

impl Worker {
    /// Runs a worker, which reads a task from stdin and prints its answer. The worker exits if the
    /// program that started it ends.
    ///
    /// # Errors
    /// Returns an error if stdin does not contain a task.
    pub fn serve() -> Result<(), ScaleError> {
        let mut line = String::new();
        let mut input = BufReader::new(std::io::stdin());
        input.read_line(&mut line).map_err(ScaleError::lake("stdin"))?;
        thread::spawn(move || {
            // The parent program sends only one line. The second read returns when the parent
            // program has ended, because the operating system then closes the pipe. A worker
            // without a parent would write files that nobody commits.
            let _ = input.read_line(&mut String::new());
            std::process::exit(1);
        });
        let text = Self::answer(&line)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(ScaleError::lake("stdout"))
    }

    /// Runs a task and returns the answer. Both are JSON text.
    ///
    /// # Errors
    /// Returns an error if `task` is not the JSON text of a task.
    pub fn answer(task: &str) -> Result<String, ScaleError> {
        let json = |error: serde_json::Error| ScaleError::Split(error.to_string());
        let task: Task = serde_json::from_str(task).map_err(json)?;
        // The folder name must be unique, because an engine may run a task a second time while the
        // first attempt is still writing.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let staging = task.staging.join(format!("{}-{now}", std::process::id()));
        let answer = write(&task.pack, &staging).map_err(|error| {
            // If the folder cannot be removed here, `ingest` removes it together with the folder of
            // the task.
            let _ = fs::remove_dir_all(&staging);
            error.failure()
        });
        serde_json::to_string(&answer).map_err(json)
    }

    /// Runs a worker that writes a pack to the folder `staging`.
    pub(crate) fn run(&self, pack: &Pack, staging: &Path) -> Result<Packed, Failure> {
        let task = Task { pack: pack.clone(), staging: staging.to_owned() };
        let task = serde_json::to_string(&task).map_err(|error| Failure::Ended(error.to_string()))?;
        let (answer, why) = match self {
            Self::Process { program, arguments } => in_process(program, arguments, &task)?,
            Self::Engine(engine) => (engine(&task)?, "the engine returned no result".to_owned()),
        };
        serde_json::from_str(&answer).unwrap_or(Err(Failure::Ended(why)))
    }
}

/// Runs a task in a new process. Returns the answer, which may be empty, and the exit status as
/// text.
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
        // If writing fails because the process has already ended, its exit status shows the reason.
        let _ = writeln!(input, "{task}");
    }
    let mut answer = String::new();
    if let Some(output) = process.stdout.take() {
        // If reading fails, the exit status of the process shows the reason.
        let _ = BufReader::new(output).read_line(&mut answer);
    }
    // The worker ends after its answer, or at the latest when its input is closed here.
    drop(input);
    let status = process.wait().map_err(|error| ended(&error))?;
    Ok((answer, status.to_string()))
}
