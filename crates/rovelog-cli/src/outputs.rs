//! One output for each of several logs: files in a folder, named after the logs.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use rovelog::core::parallel::Jobs;

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, is_several};
use crate::outfile::{OutArgs, OutFolder};
use crate::text::short;

/// Where a command that makes one output of each log writes.
pub(crate) struct Outputs<'a> {
    /// The path that the user gave; `None` is stdout.
    pub(crate) path: Option<&'a Path>,
    /// Whether the path is the name of a file of this kind.
    pub(crate) is_file: bool,
    /// Extension of the files in the folder; `None` if each log has a folder.
    pub(crate) extension: Option<&'a str>,
    /// What to write for several logs: `-o plots/ --to svg`; `None` if stdout takes them, too.
    pub(crate) folder: Option<String>,
    pub(crate) out: OutArgs,
}

impl Outputs<'_> {
    /// Runs `each` for all logs, each with the path of its output. Of several logs or a folder, it
    /// continues after a failure, and the path is in the folder that the user gave.
    pub(crate) fn each(
        &self,
        logs: &[PathBuf],
        context: &Context,
        mut each: impl FnMut(&Input, Option<&Path>) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(logs)?;
        // A new folder is removed at the end if nothing is in it.
        let (paths, _folder) = self.paths(logs, &inputs)?;
        Input::in_turn(&inputs, context, &mut |at| each(&inputs[at], paths[at].as_deref()))
    }

    /// Runs `write` for all logs on so many threads, each with the path of its output, and `take` with
    /// what it returns, in the order of the logs. Several logs are as in [`Self::each`].
    pub(crate) fn each_read<R: Send>(
        &self,
        logs: &[PathBuf],
        context: &Context,
        jobs: Jobs,
        write: impl Fn(&Input, Option<&Path>) -> Result<R, Failure> + Sync,
        mut take: impl FnMut(&Input, Option<&Path>, R) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(logs)?;
        let (paths, _folder) = self.paths(logs, &inputs)?;
        let path = |at: usize| paths[at].as_deref();
        let write = |at: usize| write(&inputs[at], path(at));
        Input::each_read(&inputs, context, jobs, write, |at, written| take(&inputs[at], path(at), written))
    }

    /// Returns the path of the output of each log, and the folder that was made for them.
    fn paths(
        &self,
        logs: &[PathBuf],
        inputs: &[Input],
    ) -> Result<(Vec<Option<PathBuf>>, Option<OutFolder>), Failure> {
        let Some(folder) = self.path.filter(|_| is_many(logs)) else {
            return match &self.folder {
                Some(next) if is_many(logs) => Err(several(next)),
                _ => Ok((vec![self.path.map(Path::to_owned); inputs.len()], None)),
            };
        };
        if self.is_file && !folder.is_dir() {
            return Err(several(self.folder.as_deref().unwrap_or("-o DIR/")).at(folder));
        }
        let names = names(inputs)?;
        let made = OutFolder::create(folder, self.out)?;
        let path = |name: &String| match self.extension {
            Some(extension) => folder.join(format!("{name}.{extension}")),
            None => folder.join(name),
        };
        Ok((names.iter().map(|name| Some(path(name))).collect(), Some(made)))
    }
}

/// Returns whether arguments name several logs, or may do so: a folder, a pattern.
pub(crate) fn is_many(logs: &[PathBuf]) -> bool {
    logs.len() > 1 || logs.iter().any(|log| is_several(log))
}

fn several(next: &str) -> Failure {
    Failure::usage("several logs make several files").next(format!("name a folder for them: {next}"))
}

/// The most folders that are a part of a name.
const MOST_FOLDERS: usize = 8;

/// Returns a name for the output of each log: that of the log without its extension. If several logs
/// have it, with the extension, or after the folders that tell them apart.
fn names(inputs: &[Input]) -> Result<Vec<String>, Failure> {
    let name = |input: &Input, folders, whole| name(&input.path, folders, whole);
    let mut names: Vec<String> = inputs.iter().map(|input| name(input, 0, false)).collect();
    let forms = (0..=MOST_FOLDERS).flat_map(|folders| [(folders, false), (folders, true)]);
    for (folders, whole) in forms.skip(1) {
        let taken = counts(&names);
        let mut clash = false;
        for (input, known) in inputs.iter().zip(&mut names) {
            if taken[&known.to_lowercase()] > 1 {
                (*known, clash) = (name(input, folders, whole), true);
            }
        }
        if !clash {
            return Ok(names);
        }
    }
    let taken = counts(&names);
    let double = inputs.iter().zip(&names).find(|(_, name)| taken[&name.to_lowercase()] > 1);
    let Some((input, name)) = double else { return Ok(names) };
    Err(Failure::usage(format!("several outputs would be called {name}"))
        .next("name each log once")
        .at(&input.path))
}

/// Returns how many outputs have each name: some file systems do not tell `a` from `A`.
fn counts(names: &[String]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name.to_lowercase()).or_default() += 1;
    }
    counts
}

/// Returns the name of a log after those of the folders that it is in, with its extension if `whole`.
fn name(path: &Path, folders: usize, whole: bool) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    let own = if whole { path.file_name() } else { path.file_stem() };
    let around = path.parent().into_iter().flat_map(Path::components).rev();
    let around = around.filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let mut parts: Vec<_> =
        own.map(|own| own.to_string_lossy()).into_iter().chain(around.take(folders)).collect();
    parts.reverse();
    let parts: Vec<&str> = parts.iter().map(|part| short(part)).collect();
    parts.join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Result<Vec<String>, Failure> {
        names(&paths.iter().map(|path| Input::new(Some(Path::new(path))).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn outputs_are_named_after_their_logs() {
        assert_eq!(of(&["a/x.ulg", "b/y.bag", "-"]).unwrap(), ["x", "y", "stdin"]);
        assert_eq!(of(&["x.ulg", "x.bag", "y.ulg"]).unwrap(), ["x.ulg", "x.bag", "y"]);
        assert_eq!(of(&["/d/1/x.ulg", "/d/2/x.ulg"]).unwrap(), ["1_x", "2_x"]);
        assert_eq!(of(&["1/a/x.ulg", "2/a/X.ulg"]).unwrap(), ["1_a_x", "2_a_X"]);
        // A log has the name that another one would get.
        assert_eq!(of(&["a/x.ulg", "b/x.ulg", "c/a_x.ulg"]).unwrap(), ["a_x.ulg", "b_x", "c_a_x.ulg"]);
    }

    #[test]
    fn a_log_named_twice_is_refused() {
        let Err(Failure::Said(said)) = of(&["a/x.ulg", "a/x.ulg"]) else {
            panic!("two outputs with one name")
        };
        assert_eq!(said.next.as_deref(), Some("name each log once"));
    }
}
