//! Safe output files: an input is never overwritten, an existing file only on request, and a file
//! is either complete or absent.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Refused, cannot_write, refused_by_disk};
use crate::remote::Upload;
use crate::unfinished;

/// Options of commands that write a file.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct OutArgs {
    /// Replace an existing output file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Returns the given path, unless it is `-` for stdout.
pub(crate) fn unless_stdout(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file that is written next to its final place, as `OUT.partial`, and moved there when it is
/// complete. If it is dropped before [`finish`](Self::finish), it leaves nothing behind.
///
/// The partial file is locked while it is written. One without a lock was left by a killed process,
/// and is replaced.
pub(crate) struct OutFile {
    file: BufWriter<File>,
    /// The path that the user gave, for messages.
    pub(crate) path: PathBuf,
    /// `None` if a device or a pipe is written in place.
    pending: Option<Pending>,
    /// Where the complete file is sent to, if its place is on a server.
    upload: Option<Upload>,
}

/// How a complete file gets its name.
struct Pending {
    partial: PathBuf,
    target: PathBuf,
    force: bool,
    /// True if the file is removed when the rest of its folder is not completed.
    provisional: bool,
}

impl OutFile {
    /// Creates a file at `path`. `inputs` are the files that the command reads; `-` is stdin.
    pub(crate) fn create(path: &Path, inputs: &[PathBuf], args: OutArgs) -> Result<Self, Failure> {
        if rovelog::is_address(path) {
            let upload = Upload::new(path, args.force)?;
            if inputs.contains(&upload.shown()) {
                return Err(the_input(&upload.shown()));
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
                return Err(Failure::usage("the output is a directory").next("name a file in it").at(path));
            }
            refuse_input(path, existing, inputs)?;
            if !existing.is_file() {
                let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
                if file.is_terminal() {
                    return Err(Failure::usage("the output is a terminal").next("name a file").at(path));
                }
                return Ok(Self { file: buffered(file), path: path.to_owned(), pending: None, upload: None });
            }
            if !args.force {
                return Err(Failure::usage("the output already exists")
                    .next("name another file, or replace it: --force")
                    .at(path));
            }
            // A rename would replace a write-protected file.
            if existing.permissions().readonly() || is_denied(path) {
                return Err(Failure::failed("the output is write-protected")
                    .next("name another file, or allow it: chmod u+w FILE")
                    .at(path));
            }
        }
        // A symbolic link stays one: its target is written, whether it exists or not.
        let target = leads_to(path).map_err(failed)?;
        let partial = partial_of(&target);
        let file = claim(path, &partial, inputs)?;
        let pending = Some(Pending { partial, target, force: args.force, provisional: false });
        let out = Self { file: buffered(file), path: path.to_owned(), pending, upload: None };
        if let Some(existing) = &existing {
            out.file.get_ref().set_permissions(existing.permissions()).map_err(failed)?;
        }
        Ok(out)
    }

    /// Completes the file and gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let failed = |error: io::Error| cannot_write(&self.path, &error);
        self.file.flush().map_err(failed)?;
        let Some(pending) = &self.pending else { return Ok(()) };
        let Pending { partial, target, force, provisional } = pending;
        let provisional = *provisional && (!force || fs::symlink_metadata(target).is_err());
        if !provisional {
            on_disk(self.file.get_ref()).map_err(failed)?;
        }
        let mut unfinished = unfinished::lock();
        let moved = if *force { fs::rename(partial, target) } else { name_new(partial, target) };
        moved.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::failed("a file with the name of the output was created meanwhile")
                    .next("name another file, or replace it: --force")
                    .at(&self.path)
            }
            _ => failed(error),
        })?;
        unfinished.keep(partial);
        if provisional {
            unfinished.add(target);
        }
        let folder = target.parent().filter(|_| !provisional).map(Path::to_owned);
        self.pending = None;
        drop(unfinished);
        if let Some(upload) = self.upload.take() {
            return upload.finish();
        }
        // The file stays: it may have replaced another one.
        let unsure = "the output is complete, but may be lost if the power fails";
        folder
            .map_or(Ok(()), |folder| folder_on_disk(&folder))
            .map_err(|error| refused_by_disk(unsure, &self.path, &error))
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|error| Refused::by(&self.path, error))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(|error| Refused::by(&self.path, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| Refused::by(&self.path, error))
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            unfinished::lock().remove(&pending.partial);
        }
    }
}

/// A folder for the files of one run. If it is dropped before [`keep`](Self::keep), everything that
/// this run made is removed.
pub(crate) struct OutFolder {
    path: PathBuf,
    /// The topmost folder that was created, or the folder itself.
    top: PathBuf,
    args: OutArgs,
}

impl OutFolder {
    /// Creates the folder if it is missing.
    pub(crate) fn create(path: &Path, args: OutArgs) -> Result<Self, Failure> {
        if rovelog::is_address(path) {
            return Err(Failure::usage("several files cannot be written to a server")
                .next("name one file, or write them to a folder and copy that"));
        }
        if is_stdout(path) {
            return Err(Failure::usage("several files cannot be written to standard output")
                .next("name a folder; ./- is one called -"));
        }
        if path.exists() && !path.is_dir() {
            return Err(Failure::usage("the output is a file, not a folder")
                .next("name a folder; it is created if it does not exist")
                .at(path));
        }
        let top = path.ancestors().take_while(|folder| is_missing(folder)).last().unwrap_or(path);
        let folder = Self { path: path.to_owned(), top: top.to_owned(), args };
        make_folder(path)?;
        Ok(folder)
    }

    /// Creates a folder in this one.
    pub(crate) fn folder(&self, name: &str) -> Result<(), Failure> {
        make_folder(&self.path.join(name))
    }

    /// Creates a file at `path`, which is in this folder.
    pub(crate) fn file(&self, path: &Path, inputs: &[PathBuf]) -> Result<OutFile, Failure> {
        let mut file = OutFile::create(path, inputs, self.args)?;
        if let Some(pending) = &mut file.pending {
            // The target of a link outside of the folder must not be removed.
            pending.provisional = pending.target.starts_with(&self.path);
        }
        Ok(file)
    }

    /// Keeps the folder and its files: all of them are complete.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        let made = unfinished::lock().below(&self.top);
        let (folders, files): (Vec<_>, Vec<_>) = made.into_iter().partition(|path| path.is_dir());
        // File systems write many files at once as fast as one.
        let synced = std::thread::scope(|scope| {
            let sync = |files: &[PathBuf]| {
                files.iter().try_for_each(|file| on_disk(&OpenOptions::new().append(true).open(file)?))
            };
            let pieces = files.chunks(files.len().div_ceil(16).max(1));
            let threads: Vec<_> = pieces.map(|files| scope.spawn(move || sync(files))).collect();
            let ended = threads.into_iter().map(|thread| thread.join().unwrap_or(Ok(())));
            ended.collect::<io::Result<()>>()
        });
        let parent = self.top.parent().unwrap_or(Path::new(""));
        let mut folders = folders.iter().map(PathBuf::as_path).chain([self.path.as_path(), parent]);
        let synced = synced.and_then(|()| folders.try_for_each(folder_on_disk));
        synced.map_err(|error| cannot_write(&self.path, &error))?;
        unfinished::lock().keep_below(&self.top);
        Ok(())
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        unfinished::lock().remove_below(&self.top);
    }
}

/// Maximum length in bytes of a file name: the limit of common file systems.
const MAX_NAME: usize = 255;

/// Returns the name of an output while it is written: `OUT.partial`. A name that would be too long is
/// cut, and a hash of the whole name keeps it apart from others.
fn partial_of(target: &Path) -> PathBuf {
    const SUFFIX: &str = ".partial";
    let name = target.file_name().unwrap_or_default();
    if name.len() + SUFFIX.len() <= MAX_NAME {
        let mut partial = target.to_owned().into_os_string();
        partial.push(SUFFIX);
        return partial.into();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let text = name.to_string_lossy();
    let start = &text[..text.floor_char_boundary(MAX_NAME - SUFFIX.len() - "-0123456789abcdef".len())];
    target.with_file_name(format!("{start}-{:016x}{SUFFIX}", hasher.finish()))
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 16, file)
}

/// Returns whether the user has no write permission for an existing file.
fn is_denied(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

fn is_missing(folder: &Path) -> bool {
    !folder.as_os_str().is_empty() && !folder.exists()
}

/// Creates a folder and its missing parents. They are removed if the run fails.
fn make_folder(path: &Path) -> Result<(), Failure> {
    let mut unfinished = unfinished::lock();
    let missing: Vec<_> = path.ancestors().take_while(|folder| is_missing(folder)).collect();
    for folder in missing.into_iter().rev() {
        fs::create_dir(folder)
            .map_err(|error| refused_by_disk("cannot create the folder", folder, &error))?;
        unfinished.add(folder);
    }
    Ok(())
}

/// Returns the target of a chain of links, which need not exist.
fn leads_to(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other("too many links"))
}

/// Creates and locks the partial file of an output. Replaces one that no process has locked.
fn claim(path: &Path, partial: &Path, inputs: &[PathBuf]) -> Result<File, Failure> {
    let failed = |error: io::Error| cannot_write(partial, &error);
    let mut unfinished = unfinished::lock();
    // Only another process that takes the same name at this moment makes a second attempt
    // necessary.
    for _ in 0..100 {
        match OpenOptions::new().write(true).create_new(true).open(partial) {
            Ok(file) => {
                // A file system without locks is no obstacle.
                if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && is_at(&file, partial) {
                    unfinished.add(partial);
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let Ok(left) = fs::symlink_metadata(partial) else { continue };
                refuse_input(partial, &left, inputs)?;
                if !left.is_file() {
                    return Err(failed(error));
                }
                let file = match OpenOptions::new().write(true).open(partial) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened.map_err(failed)?,
                };
                if file.try_lock().is_err() {
                    break;
                }
                if is_at(&file, partial) {
                    fs::remove_file(partial).map_err(failed)?;
                }
            }
            Err(error) => return Err(cannot_write(path, &error)),
        }
    }
    Err(Failure::usage("another run is writing this output")
        .next("wait until it finishes, or name another file; if no such run exists, remove FILE")
        .at(partial))
}

/// Gives a complete file its name, unless another file has it.
fn name_new(partial: &Path, target: &Path) -> io::Result<()> {
    match fs::hard_link(partial, target) {
        Ok(()) => fs::remove_file(partial).inspect_err(|_| {
            // The run fails, so its output must not appear. If this fails too, it is complete.
            let _ = fs::remove_file(target);
        }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links.
        Err(_) if fs::symlink_metadata(target).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(partial, target),
    }
}

/// Waits until a file is on the disk, if its file system supports that.
fn on_disk(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Waits until the names in a folder are on the disk.
fn folder_on_disk(folder: &Path) -> io::Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    match File::open(folder) {
        // A folder with write but no read permission.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => on_disk(&opened?),
    }
}

/// Returns an error if `output` is one of `inputs`, by any name.
fn refuse_input(path: &Path, output: &Metadata, inputs: &[PathBuf]) -> Result<(), Failure> {
    for input in inputs {
        let stdin = input == Path::new("-");
        let file = if stdin { Path::new("/dev/stdin") } else { input };
        let Ok(metadata) = fs::metadata(file) else { continue };
        if metadata.is_file() && same(path, output, file, &metadata) {
            if stdin || inputs.first() == Some(input) {
                return Err(the_input(path));
            }
            let what = format!("the output is one of the input files, {}", input.display());
            return Err(Failure::usage(what).next("name another file").at(path));
        }
    }
    Ok(())
}

fn the_input(output: &Path) -> Failure {
    Failure::usage("the output is the input").next("name another file").at(output)
}

/// Returns whether an open file is the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let (open, there) = (file.metadata(), fs::symlink_metadata(path));
    matches!((open, there), (Ok(open), Ok(there)) if same(path, &open, path, &there))
}

#[cfg(unix)]
fn same(_: &Path, a: &Metadata, _: &Path, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same(a: &Path, _: &Metadata, b: &Path, _: &Metadata) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORCE: OutArgs = OutArgs { force: true };

    fn failure<T>(result: Result<T, Failure>) -> String {
        format!("{:?}", result.map(|_| ()).unwrap_err())
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_name_may_have_all_255_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let long = |end: &str| format!("{}{end}", "ä".repeat(126));
        for (name, other) in [("x".repeat(248), "y".repeat(248)), (long("one"), long("two"))] {
            let place = |name: &str| folder.path().join(name);
            let mut first = OutFile::create(&place(&name), &[], OutArgs::default()).unwrap();
            let second = OutFile::create(&place(&other), &[], OutArgs::default()).unwrap();
            first.write_all(b"one").unwrap();
            drop(second);
            first.finish().unwrap();
            assert_eq!(fs::read(place(&name)).unwrap(), b"one");
        }
        let partial = partial_of(Path::new(&"x".repeat(255)));
        assert_eq!(partial.as_os_str().len(), MAX_NAME);
        assert_eq!(partial, partial_of(Path::new(&"x".repeat(255))));
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.gpx");
        let mut out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
        out.write_all(b"one").unwrap();
        assert_eq!(names(folder.path()), ["out.gpx.partial"]);
        out.finish().unwrap();
        assert_eq!(names(folder.path()), ["out.gpx"]);
        assert!(failure(OutFile::create(&path, &[], OutArgs::default())).contains("already exists"));
        let mut out = OutFile::create(&path, &[], FORCE).unwrap();
        out.write_all(b"lost").unwrap();
        drop(out);
        assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, b"one".to_vec()));
    }

    #[test]
    fn a_partial_file_is_taken_over_unless_a_run_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.gpx");
        let partial = folder.path().join("out.gpx.partial");
        fs::write(&partial, "left by a run that was killed, and longer than the output").unwrap();
        let mut out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
        for args in [OutArgs::default(), FORCE] {
            let refused = failure(OutFile::create(&path, &[], args));
            assert!(refused.contains("another run is writing this output"), "{refused}");
        }
        out.write_all(b"new").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::create_dir(&partial).unwrap();
        assert!(failure(OutFile::create(&path, &[], FORCE)).contains("cannot write the output"));
    }

    #[test]
    fn a_file_that_appears_meanwhile_stays_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.gpx");
        let out = OutFile::create(&path, &[], OutArgs::default()).unwrap();
        fs::write(&path, "of another run").unwrap();
        assert!(failure(out.finish()).contains("was created meanwhile"));
        assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, b"of another run".to_vec()));
        fs::remove_file(&path).unwrap();
        let out = OutFile::create(&path, &[], FORCE).unwrap();
        fs::write(&path, "of another run").unwrap();
        out.finish().unwrap();
        assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap()), (1, Vec::new()));
    }

    #[test]
    fn a_folder_is_kept_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        let write = |folder: &OutFolder, name: &str| {
            folder.file(&path.join(name), &[]).and_then(OutFile::finish).unwrap();
        };
        let folder = OutFolder::create(&path, OutArgs::default()).unwrap();
        folder.folder("images/0").unwrap();
        write(&folder, "images/0/1.jpg");
        write(&folder, "index.csv");
        assert_eq!(names(&path), ["images", "index.csv"]);
        drop(folder);
        assert!(names(root.path()).is_empty());
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("other"), "").unwrap();
        fs::write(path.join("replaced"), "").unwrap();
        let folder = OutFolder::create(&path, FORCE).unwrap();
        write(&folder, "replaced");
        write(&folder, "new");
        drop(folder);
        assert_eq!(names(&path), ["other", "replaced"]);
        let folder = OutFolder::create(&path, OutArgs::default()).unwrap();
        write(&folder, "new");
        folder.keep().unwrap();
        assert_eq!(names(&path), ["new", "other", "replaced"]);
    }

    #[test]
    #[cfg(unix)]
    fn an_output_is_never_an_input() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.ulg");
        let (linked, hard) = (folder.path().join("linked"), folder.path().join("hard"));
        fs::write(&log, b"log").unwrap();
        std::os::unix::fs::symlink(&log, &linked).unwrap();
        fs::hard_link(&log, &hard).unwrap();
        let inputs = [log.clone()];
        for path in [&log, &linked, &hard] {
            let refused = failure(OutFile::create(path, &inputs, FORCE));
            assert!(refused.contains("the output is the input"), "{refused}");
        }
        let partial = folder.path().join("out.partial");
        fs::rename(&hard, &partial).unwrap();
        let out = folder.path().join("out");
        let refused = failure(OutFile::create(&out, &inputs, FORCE));
        assert!(refused.contains("the output is the input"), "{refused}");
        assert_eq!(fs::read(&log).unwrap(), b"log");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (link, chain) = (folder.path().join("link"), folder.path().join("chain"));
        std::os::unix::fs::symlink("there", &link).unwrap();
        std::os::unix::fs::symlink(&link, &chain).unwrap();
        for (args, text) in [(OutArgs::default(), "dangling"), (FORCE, "replaced")] {
            let mut file = OutFile::create(&chain, &[], args).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read(folder.path().join("there")).unwrap(), text.as_bytes());
            assert_eq!(names(folder.path()), ["chain", "link", "there"]);
            assert!(fs::symlink_metadata(&chain).unwrap().is_symlink());
        }
        fs::remove_file(&chain).unwrap();
        std::os::unix::fs::symlink("chain", &chain).unwrap();
        assert!(failure(OutFile::create(&chain, &[], FORCE)).contains("cannot write the output"));
    }

    #[test]
    #[cfg(unix)]
    fn a_replaced_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let set = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        set(0o600);
        let out = OutFile::create(&path, &[], FORCE).unwrap();
        assert_eq!(mode(&folder.path().join("out.partial")), 0o600);
        out.finish().unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, Vec::new()));
        set(0o400);
        assert!(failure(OutFile::create(&path, &[], FORCE)).contains("write-protected"));
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_device_is_written_in_place() {
        let mut out = OutFile::create(Path::new("/dev/null"), &[], OutArgs::default()).unwrap();
        out.write_all(b"x").unwrap();
        out.finish().unwrap();
    }
}
