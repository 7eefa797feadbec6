//! Output files of the commands that write one file for each log. Each file is named after its log.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::{Input, may_be_several};
use crate::outfile::{OutArgs, OutFolder};
use crate::text::short;

/// Destination of a command that writes one output for each log.
pub(crate) struct Outputs<'a> {
    /// Path given by the user, or `None` if the output goes to stdout.
    pub(crate) path: Option<&'a Path>,
    /// True if the extension of the path shows that the path names a single file, such as
    /// `plot.svg`, and not a folder.
    pub(crate) is_file: bool,
    /// Extension of the files that are written into the output folder. `None` if the output of each
    /// log is a folder of its own.
    pub(crate) extension: Option<&'a str>,
    /// Option that an error message suggests if an output folder is needed for several logs, such
    /// as `-o plots/ --to svg`. `None` if the outputs of several logs can be written to stdout.
    pub(crate) folder: Option<String>,
    /// Options that apply to output files, such as `--force`.
    pub(crate) out: OutArgs,
}

impl Outputs<'_> {
    /// Calls `each` for one log after the other, with the path of its output. If the user named
    /// several logs or a folder, the outputs are written into the output folder. If one log fails,
    /// the remaining logs are still read.
    pub(crate) fn each(
        &self,
        logs: &[PathBuf],
        context: &Context,
        mut each: impl FnMut(&Input, Option<&Path>) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(logs)?;
        // `_folder` is dropped at the end. This removes the folder if it is new and still empty.
        let (paths, _folder) = self.paths(logs, &inputs)?;
        Input::each_index(&inputs, context, &mut |at| each(&inputs[at], paths[at].as_deref()))
    }

    /// Calls `write` for all logs on several threads, with the path of the output for the log. Then
    /// calls `take` with each result, in the order of the logs. If there are several logs, their
    /// outputs are written into the output folder, as in [`Self::each`].
    pub(crate) fn read_parallel<R: Send>(
        &self,
        logs: &[PathBuf],
        context: &Context,
        write: impl Fn(&Input, Option<&Path>) -> Result<R, Failure> + Sync,
        mut take: impl FnMut(&Input, R) -> Outcome,
    ) -> Outcome {
        let inputs = Input::all(logs)?;
        let (paths, _folder) = self.paths(logs, &inputs)?;
        let write = |at: usize| write(&inputs[at], paths[at].as_deref());
        Input::read_parallel(&inputs, context, write, |at, written| take(&inputs[at], written))
    }

    /// Returns the path of the output for each log, and the folder that was created for the
    /// outputs.
    fn paths(
        &self,
        logs: &[PathBuf],
        inputs: &[Input],
    ) -> Result<(Vec<Option<PathBuf>>, Option<OutFolder>), Failure> {
        // The output of a single log is written to the path given by the user.
        let Some(folder) = self.path.filter(|_| is_many(logs)) else {
            return match &self.folder {
                Some(next) if is_many(logs) => Err(several_files(next)),
                _ => Ok((vec![self.path.map(Path::to_owned); inputs.len()], None)),
            };
        };
        // A path such as `plot.svg` is probably a mistake if there are several logs. It is accepted
        // if a folder with this name exists.
        if self.is_file && !folder.is_dir() {
            return Err(several_files(self.folder.as_deref().unwrap_or("-o DIR/")).at(folder));
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

/// Returns true if the arguments may stand for several logs, as a folder or a pattern does.
pub(crate) fn is_many(logs: &[PathBuf]) -> bool {
    logs.len() > 1 || logs.iter().any(|log| may_be_several(log))
}

fn several_files(next: &str) -> Failure {
    Failure::usage("several logs are written to several files, so the output must be a folder")
        .next(format!("name a folder: {next}"))
}

/// Maximum number of parent folders that are added to a name to make it distinct.
const MAX_FOLDERS: usize = 8;

/// Returns a distinct name for the output of each log.
///
/// The name is the file name of the log without its extension. If several logs have the same name,
/// only these names are extended. The extension is tried first, then the name of the parent folder,
/// then both, then the next parent folder, and so on, until all names differ. For example,
/// `1/x.ulg` and `2/x.ulg` become `1_x` and `2_x`, whereas `x.ulg` and `x.bag` only get their
/// extensions.
fn names(inputs: &[Input]) -> Result<Vec<String>, Failure> {
    let name = |input: &Input, folders, whole| name(&input.path, folders, whole);
    let mut names: Vec<String> = inputs.iter().map(|input| name(input, 0, false)).collect();
    let forms = (0..=MAX_FOLDERS).flat_map(|folders| [(folders, false), (folders, true)]);
    for (folders, whole) in forms.skip(1) {
        // Only names that occur several times are extended. So adding a log to the arguments
        // changes as few names as possible.
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
    Err(Failure::usage(format!("several logs would be written to the same output file {name}"))
        .next("name each log only once")
        .at(&input.path))
}

/// Returns the number of outputs for each name. The names are compared in lower case, because some
/// file systems do not distinguish `a` from `A`.
fn counts(names: &[String]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for name in names {
        *counts.entry(name.to_lowercase()).or_default() += 1;
    }
    counts
}

/// Returns the output name for the log at a path. It starts with the names of `folders` parent
/// folders. If `whole` is true, it includes the extension.
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
        // `a/x.ulg` cannot become `a_x`, because this is the name of the output for `c/a_x.ulg`.
        assert_eq!(of(&["a/x.ulg", "b/x.ulg", "c/a_x.ulg"]).unwrap(), ["a_x.ulg", "b_x", "c_a_x.ulg"]);
    }

    #[test]
    fn a_log_named_twice_is_refused() {
        let Err(Failure::Message(said)) = of(&["a/x.ulg", "a/x.ulg"]) else {
            panic!("two outputs with one name")
        };
        assert_eq!(said.next.as_deref(), Some("name each log only once"));
    }
}
