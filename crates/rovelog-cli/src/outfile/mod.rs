//! Writes output files safely. An input file is never overwritten, an existing file is replaced
//! only with `--force`, and the output appears atomically under its name.
//!
//! For example, `-o out.mcap` first writes `out.mcap.partial`. When all data is written, the file
//! is flushed to the disk and renamed to `out.mcap`. If the command fails or a signal ends it, the
//! partial file is removed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use rovelog_export::partial::{self, is_same_file};

use crate::failure::{Failure, OutputError, cannot_write, file_system_failure};
use crate::remote::Upload;
use crate::unfinished;

/// Options of the commands that write files.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct OutArgs {
    /// Replace output files that already exist
    #[arg(long)]
    pub(crate) force: bool,
}

/// Returns `path`, or `None` if `path` is `-`, which stands for stdout.
pub(crate) fn unless_stdout(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// An output file. It is written as `OUT.partial` in the folder of the output, and renamed when it
/// is complete. If this value is dropped before [`finish`](Self::finish), the partial file is
/// removed.
///
/// The partial file is locked while it is written, so that two processes cannot write the same
/// output. A partial file without a lock was left behind by a killed process, and is replaced.
pub(crate) struct OutFile {
    file: BufWriter<File>,
    /// Path given by the user, which messages show.
    pub(crate) path: PathBuf,
    /// Rename that completes the output. `None` for a device or a pipe, which is written directly.
    pending: Option<Pending>,
    /// Upload that completes the output if its path is a URL.
    upload: Option<Upload>,
}

/// Paths and options of the rename that completes an output file.
struct Pending {
    /// Path of the file while it is being written.
    partial: PathBuf,
    /// Path of the file when it is complete.
    target: PathBuf,
    /// True if the file may replace an existing file.
    force: bool,
    /// True if the complete file must be removed when a later file of the same [`OutFolder`] fails.
    provisional: bool,
}

impl OutFile {
    /// Creates an output file at `path`. `inputs` are the files that the command reads, where `-`
    /// stands for stdin. Returns an error if `path` is one of these files.
    pub(crate) fn create(path: &Path, inputs: &[PathBuf], args: OutArgs) -> Result<Self, Failure> {
        if rovelog::is_address(path) {
            let upload = Upload::new(path, args.force)?;
            if inputs.contains(&upload.shown()) {
                return Err(output_is_input(&upload.shown()));
            }
            let mut out = Self::create(&upload.copy(), &[], args)?;
            (out.path, out.upload) = (upload.shown(), Some(upload));
            return Ok(out);
        }
        let failed = |error: io::Error| cannot_write(path, &error);
        let existing = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(existing) = &existing {
            if existing.is_dir() {
                return Err(Failure::usage("the output path is a directory, not a file")
                    .next("name a file in the directory")
                    .at(path));
            }
            refuse_input(path, existing, inputs)?;
            if !existing.is_file() {
                return Self::open_device(path);
            }
            if !args.force {
                return Err(Failure::usage("the output file already exists")
                    .next("name another file, or use --force to replace it")
                    .at(path));
            }
            // A rename does not require write permission for the replaced file. Without this check,
            // a write-protected file would be replaced.
            if existing.permissions().readonly() || is_denied(path) {
                return Err(Failure::failed("the output file is write-protected")
                    .next("name another file, or make it writable with chmod u+w FILE")
                    .at(path));
            }
        }
        // If the path is a symbolic link, the target of the link is replaced and not the link. The
        // target need not exist.
        let target = resolve_links(path).map_err(failed)?;
        let partial = partial::path(&target);
        let file = create_partial(path, &partial, inputs)?;
        let pending = Some(Pending { partial, target, force: args.force, provisional: false });
        let out = Self { file: buffered(file), path: path.to_owned(), pending, upload: None };
        if let Some(existing) = &existing {
            out.file.get_ref().set_permissions(existing.permissions()).map_err(failed)?;
        }
        Ok(out)
    }

    /// Opens a path that is not a regular file, such as a named pipe. It is written directly.
    fn open_device(path: &Path) -> Result<Self, Failure> {
        let opened = OpenOptions::new().write(true).open(path);
        let file = opened.map_err(|error| cannot_write(path, &error))?;
        if file.is_terminal() {
            return Err(Failure::usage("the output path is a terminal, which cannot show this output")
                .next("write the output to a file: -o FILE")
                .at(path));
        }
        Ok(Self { file: buffered(file), path: path.to_owned(), pending: None, upload: None })
    }

    /// Completes the file and renames it to the output path.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        self.file.flush().map_err(failed)?;
        let Some(pending) = &self.pending else { return Ok(()) };
        let Pending { partial, target, force, provisional } = pending;
        // If the file has replaced an existing file, it is never removed again, because the old
        // file cannot be restored. It must be on the disk before the rename. All other files of an
        // output folder are flushed together by `OutFolder::finish`.
        let provisional = *provisional && (!force || fs::symlink_metadata(target).is_err());
        if !provisional {
            flush_file(self.file.get_ref()).map_err(failed)?;
        }
        let mut unfinished = unfinished::lock();
        let moved = if *force { fs::rename(partial, target) } else { rename_new(partial, target) };
        moved.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::failed(
                "another program created a file with the name of the output while the output was written",
            )
            .next("name another file, or use --force to replace it")
            .at(&self.path),
            _ => failed(error),
        })?;
        unfinished.complete(partial);
        if provisional {
            unfinished.add(target);
        }
        let folder = target.parent().filter(|_| !provisional).map(Path::to_owned);
        self.pending = None;
        drop(unfinished);
        if let Some(upload) = self.upload.take() {
            return upload.finish();
        }
        // If the flush fails, the file is not removed, because it may have replaced an existing
        // file.
        let unsure = "the output is complete, but could be lost in a power failure, because it was not \
                      flushed to the disk";
        folder
            .map_or(Ok(()), |folder| flush_folder(&folder))
            .map_err(|error| file_system_failure(unsure, &self.path, &error))
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| OutputError::wrap(&self.path, error))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(|error| OutputError::wrap(&self.path, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| OutputError::wrap(&self.path, error))
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            unfinished::lock().remove(&pending.partial);
        }
    }
}

/// A folder into which a command writes several files. If this value is dropped before
/// [`finish`](Self::finish), everything that was created in the folder is removed.
pub(crate) struct OutFolder {
    path: PathBuf,
    /// Topmost folder that the command created, or the output folder itself if no folder had to be
    /// created.
    top: PathBuf,
    args: OutArgs,
}

impl OutFolder {
    /// Creates the output folder and its parents if they are missing.
    pub(crate) fn create(path: &Path, args: OutArgs) -> Result<Self, Failure> {
        if rovelog::is_address(path) {
            return Err(Failure::usage(
                "only one file can be written to a server, but this command writes several",
            )
            .next("name a single file, or write to a local folder and copy it to the server"));
        }
        if is_stdout(path) {
            return Err(Failure::usage("several files cannot be written to standard output")
                .next("name an output folder; a folder called - is written as ./-"));
        }
        if path.exists() && !path.is_dir() {
            return Err(Failure::usage("the output must be a folder, but the path is a file")
                .next("name a folder; it is created if it does not exist")
                .at(path));
        }
        let top = path.ancestors().take_while(|folder| is_missing(folder)).last().unwrap_or(path);
        let folder = Self { path: path.to_owned(), top: top.to_owned(), args };
        make_folder(path)?;
        Ok(folder)
    }

    /// Creates the subfolder `name` in this folder.
    pub(crate) fn folder(&self, name: &str) -> Result<(), Failure> {
        make_folder(&self.path.join(name))
    }

    /// Creates an output file at `path`, which must be in this folder.
    pub(crate) fn file(&self, path: &Path, inputs: &[PathBuf]) -> Result<OutFile, Failure> {
        let mut file = OutFile::create(path, inputs, self.args)?;
        if let Some(pending) = &mut file.pending {
            // A symbolic link may point out of the folder. Its target is not removed after a
            // failure.
            pending.provisional = pending.target.starts_with(&self.path);
        }
        Ok(file)
    }

    /// Flushes the folder and all files in it to the disk. The files are then kept.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let made = unfinished::lock().below(&self.top);
        let (folders, files): (Vec<_>, Vec<_>) = made.into_iter().partition(|path| path.is_dir());
        // Each flush mainly waits for the disk. So flushing several files in parallel is much
        // faster than flushing them one after the other.
        let synced = std::thread::scope(|scope| {
            let sync = |files: &[PathBuf]| {
                files.iter().try_for_each(|file| flush_file(&OpenOptions::new().append(true).open(file)?))
            };
            let pieces = files.chunks(files.len().div_ceil(16).max(1));
            let threads: Vec<_> = pieces.map(|files| scope.spawn(move || sync(files))).collect();
            let ended =
                threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            ended.collect::<io::Result<()>>()
        });
        let parent = self.top.parent().unwrap_or(Path::new(""));
        let mut folders = folders.iter().map(PathBuf::as_path).chain([self.path.as_path(), parent]);
        let synced = synced.and_then(|()| folders.try_for_each(flush_folder));
        synced.map_err(|error| cannot_write(&self.path, &error))?;
        unfinished::lock().complete_below(&self.top);
        Ok(())
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        unfinished::lock().remove_below(&self.top);
    }
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 16, file)
}

/// Returns true if the user has no write permission for an existing file.
fn is_denied(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn is_missing(folder: &Path) -> bool {
    !folder.as_os_str().is_empty() && !folder.exists()
}

/// Creates a folder and its missing parents. The new folders are removed if the command fails.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let mut unfinished = unfinished::lock();
    let missing: Vec<_> = path.ancestors().take_while(|folder| is_missing(folder)).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)
            .map_err(|error| file_system_failure("cannot create the folder", folder, &error))?;
        unfinished.add(folder);
    }
    Ok(())
}

/// Returns the file to which a path leads through any number of symbolic links. This file need not
/// exist. Returns an error after 40 links, which is the limit of Linux.
fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("the path has too many symbolic links"))
}

/// Creates and locks the partial file of an output.
fn create_partial(path: &Path, partial: &Path, inputs: &[PathBuf]) -> Result<File, Failure> {
    if let Ok(left) = fs::symlink_metadata(partial) {
        refuse_input(partial, &left, inputs)?;
    }
    let mut unfinished = unfinished::lock();
    let file = partial::create(partial).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Failure::usage("another run of rovelog is writing this output file")
            .next(
                "wait until the other run has finished, or name another file; if there is no other run, \
                 remove FILE",
            )
            .at(partial),
        // An existing partial file could not be replaced.
        _ if fs::symlink_metadata(partial).is_ok() => cannot_write(partial, &error),
        _ => cannot_write(path, &error),
    })?;
    unfinished.add(partial);
    Ok(file)
}

/// Renames a complete file, but fails if a file with the new name exists. `rename` would replace
/// that file. Creating a hard link is the portable way to check and rename atomically.
fn rename_new(partial: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(partial, target) {
        Ok(()) => fs::remove_file(partial).inspect_err(|_| {
            // The command fails, so the output must not remain under its new name either. If
            // removing it fails too, a complete file remains.
            let _ = fs::remove_file(target);
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // The file system has no hard links, so the check and the rename are two separate steps.
        Err(_) if fs::symlink_metadata(target).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(partial, target),
    }
}

/// Flushes a file to the disk. Does nothing if the file system does not support flushing.
fn flush_file(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Flushes the directory entries of a folder to the disk, so that a rename survives a power
/// failure.
fn flush_folder(folder: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder) {
        // A user may have write but no read permission for a folder. Such a folder cannot be
        // opened, so it is not flushed.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => flush_file(&opened?),
    }
}

/// Returns an error if the output would overwrite one of `inputs`. `output` is the metadata of the
/// existing file at `path`. The same file is also recognized through links and different spellings
/// of its path.
fn refuse_input(path: &Path, output: &Metadata, inputs: &[PathBuf]) -> Result<(), Failure> {
    for input in inputs {
        let stdin = input == Path::new("-");
        let file = if stdin { Path::new("/dev/stdin") } else { input };
        let Ok(metadata) = fs::metadata(file) else { continue };
        if metadata.is_file() && is_same_file(path, output, file, &metadata) {
            if stdin || inputs.first() == Some(input) {
                return Err(output_is_input(path));
            }
            let what = format!("the output file is also the input file {}", input.display());
            return Err(Failure::usage(what).next("name another output file").at(path));
        }
    }
    Ok(())
}

fn output_is_input(output: &Path) -> Failure {
    Failure::usage("the output file is also the input file").next("name another output file").at(output)
}

#[cfg(test)]
mod tests;
