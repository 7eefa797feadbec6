"""Output files. They are written atomically and never replace an input. They replace any other
existing file only on request.

An output `a.csv` is written as `a.csv.partial` and renamed when it is complete. After a crash, the
complete file exists, or no file exists. The steps are:

1. `check_writable` rejects paths that must not be written.
2. `PartialFile` creates and locks the partial file, so that two programs do not write the same
   output.
3. The caller writes the partial file.
4. `_sync` waits until the data are on the disk, and the file gets its final name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rovelog import _core
from rovelog._errors import MissingFolderError, WriteError


def expand_user(out: str | os.PathLike[str]) -> str:
    """Returns the path with a leading `~` replaced by the user's home folder."""
    path = os.fspath(out)
    # An existing file may have a name that starts with `~`.
    return os.path.expanduser(path) if path.startswith("~") and not os.path.exists(path) else path


def check_writable(path: str, sources: Iterable[str], force: bool) -> None:
    """Raises WriteError if `path` is an input, a folder, a terminal, or an existing file without
    `force`.
    """
    if not os.path.exists(path):
        return
    _check_no_input(path, sources)
    if os.path.isdir(path):
        raise WriteError("the output is a folder", errno=errno.EISDIR, path=path, next="name a file in the folder")
    if _is_special(path):
        _check_no_terminal(path)
    elif not force:
        what = "the output file already exists"
        raise WriteError(what, errno=errno.EEXIST, path=path, next="name another file, or use force=True to replace it")
    elif not os.access(path, os.W_OK):
        # A rename does not require write permission for the replaced file.
        what = "the output file is write-protected"
        raise WriteError(what, errno=errno.EACCES, path=path, next="name another file, or make this one writable")


def _check_no_input(path: str, sources: Iterable[str]) -> None:
    if any(os.path.exists(source) and os.path.samefile(path, source) for source in sources):
        raise WriteError("the output file is also the input file", path=path, next="name another file")


def _is_special(path: str) -> bool:
    """Returns True if `path` is a device, a pipe or a socket.

    Such a node is written in place, because a rename would replace it by a regular file.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _check_no_terminal(path: str) -> None:
    if not stat.S_ISCHR(os.stat(path).st_mode):
        return
    try:
        # With O_NOCTTY, opening a terminal does not make it the controlling terminal of this
        # process.
        file = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        if os.isatty(file):
            raise WriteError("the output path is a terminal, which cannot show this output", path=path, next="name a file")
    finally:
        os.close(file)


@contextlib.contextmanager
def partial_files(paths: list[str], sources: Iterable[str], force: bool) -> Iterator[list[str]]:
    """Context manager that returns a path to write for each output.

    The returned paths are partial files in the folders of the outputs. On success, all partial
    files are renamed to the outputs. On failure, they are removed. A partial file is locked while
    it is written. An unlocked partial file was left by a program that was killed, and is reused.
    For a device, a pipe or a socket, the returned path is the output itself.
    """
    sources = list(sources)
    for path in paths:
        check_writable(path, sources, force)
    # A rename would replace a symbolic link, so the target of the link is replaced instead.
    targets = [os.path.realpath(path) for path in paths]
    with contextlib.ExitStack() as stack:
        special = {target for target in targets if _is_special(target)}
        claimed = {target: _core.PartialFile(target) for target in targets if target not in special}
        for part in claimed.values():
            if os.path.exists(part.path):
                _check_no_input(part.path, sources)
            stack.enter_context(part)
        yield [target if target in special else claimed[target].path for target in targets]
        for target, part in claimed.items():
            try:
                _sync(part.path, os.O_RDWR)
                if force and os.path.isfile(target):
                    # The new file keeps the permissions of the file that it replaces.
                    shutil.copymode(target, part.path)
                    os.replace(part.path, target)
                else:
                    _name_new(part.path, target)
            except OSError as error:
                raise _not_written(target, error) from error
        for folder in {os.path.dirname(target) for target in claimed}:
            _sync_folder(folder)


@contextlib.contextmanager
def output_folder(folder: str) -> Iterator[None]:
    """Context manager that creates `folder` and its parents. After a failure, it removes the new
    folders if they are empty.
    """
    created, above = [], os.path.abspath(folder)
    # The root of a missing drive on Windows does not exist and is its own parent.
    while not os.path.lexists(above) and above != os.path.dirname(above):
        created.append(above)
        above = os.path.dirname(above)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise _refused(WriteError, "cannot create the folder", folder, error) from error
    try:
        yield
    except BaseException:
        for path in created:
            with contextlib.suppress(OSError):
                os.rmdir(path)
        raise


def _not_written(path: str, error: OSError) -> WriteError:
    kind = MissingFolderError if isinstance(error, FileNotFoundError) else WriteError
    return _refused(kind, "cannot write the output", path, error)


def _refused(kind: type[WriteError], what: str, path: str, error: OSError) -> WriteError:
    after = _core.next_step(error.errno or 0)
    return kind(f"{what}: {error.strerror}", errno=error.errno, path=path, next=after)


def _sync(path: str, flags: int) -> None:
    """Waits until the data of a file or a folder are on the disk, if the file system supports that.
    `flags` are the flags with which it is opened.
    """
    file = os.open(path, flags)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(file)


def _sync_folder(path: str) -> None:
    """Waits until the directory entries of a folder are on the disk. Before that, a power failure
    may undo a rename.
    """
    # Windows cannot open folders as files.
    if os.name == "nt":
        return
    try:
        _sync(path, os.O_RDONLY)
    except PermissionError:
        # The user has write permission but no read permission for the folder.
        return
    except OSError as error:
        what = f"the output is complete, but could be lost in a power failure, because it was not flushed to the disk: {error.strerror}"
        after = "check the disk, and write again with force=True"
        raise WriteError(what, errno=error.errno, path=path, next=after) from error


def _name_new(part: str, target: str) -> None:
    """Renames a complete partial file. Raises WriteError if another program has created `target`
    meanwhile.
    """
    try:
        # `os.rename` would replace an existing file without notice, but `os.link` fails. The caller
        # removes the partial name later.
        os.link(part, target)
    except FileExistsError as error:
        what = "another program has created a file with the name of the output in the meantime"
        after = "name another file, or force=True"
        raise WriteError(what, errno=error.errno, path=target, next=after) from error
    except OSError:
        # File systems such as FAT have no hard links.
        if os.path.lexists(target):
            raise
        os.replace(part, target)


def write_file(
    out: str | os.PathLike[str], sources: Iterable[str], force: bool, write: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """Calls `write` with the path of a partial file, renames the file to `out`, and returns the
    result of `write`.
    """
    with partial_files([expand_user(out)], sources, force) as parts:
        return write(parts[0])
