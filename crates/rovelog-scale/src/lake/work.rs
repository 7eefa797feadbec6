//! Workers: processes that each make one pack, so that a log that ends its process ends no other.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};

use super::member::Pack;
use super::pack::{Packed, write};
use crate::ScaleError;

/// How a worker is started: a program with arguments that calls [`Worker::serve`].
#[derive(Clone, Debug)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
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
}

/// Why a worker has made nothing of a pack.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It said so: a log cannot be read to its end.
    Refused(String),
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
        let task: Task = serde_json::from_str(&line).map_err(|error| ScaleError::Split(error.to_string()))?;
        thread::spawn(move || {
            // Nothing more comes: the end of the input is the end of the program that wrote to it.
            let _ = input.read_line(&mut String::new());
            std::process::exit(1);
        });
        let answer = match write(&task.pack, &task.staging) {
            Ok(packed) => Answer::Done(packed),
            Err(error) => Answer::Refused(error.to_string()),
        };
        let text = serde_json::to_string(&answer).map_err(|error| ScaleError::Split(error.to_string()))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(ScaleError::lake("stdout"))
    }

    /// Has a process make a pack.
    pub(crate) fn run(&self, pack: &Pack, staging: &Path) -> Result<Packed, Failure> {
        let ended = |why: &dyn std::fmt::Display| Failure::Ended(why.to_string());
        let task = Task { pack: pack.clone(), staging: staging.to_owned() };
        let text = serde_json::to_string(&task).map_err(|error| ended(&error))?;
        let mut process = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| ended(&format!("{}: {error}", self.program.display())))?;
        let mut input = process.stdin.take();
        if let Some(input) = &mut input {
            // A process that has ended already says why by its status.
            let _ = writeln!(input, "{text}");
        }
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            // The same.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        // The answer is the last thing that a worker does; it ends at the latest now.
        drop(input);
        let status = process.wait().map_err(|error| ended(&error))?;
        match serde_json::from_str(&line) {
            Ok(Answer::Done(packed)) => Ok(packed),
            Ok(Answer::Refused(why)) => Err(Failure::Refused(why)),
            _ => Err(ended(&status)),
        }
    }
}
