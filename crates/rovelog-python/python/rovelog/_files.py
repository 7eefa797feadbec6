"""New files: whole or not there, never an input, and no file is replaced unasked."""

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

try:
    import fcntl
except ImportError:  # Windows refuses to remove a file that another program has open
    fcntl = None  # type: ignore[assignment]


def place(out: str | os.PathLike[str]) -> str:
    """The path that a name means: `~` is the user's folder."""
    path = os.fspath(out)
    return os.path.expanduser(path) if path.startswith("~") and not os.path.exists(path) else path


def demand_free(path: str, sources: Iterable[str], force: bool) -> None:
    """Raises if a path cannot be written: it is an input, a folder, a terminal, or an existing file without `force`."""
    if not os.path.exists(path):
        return
    _demand_no_input(path, sources)
    if os.path.isdir(path):
        raise WriteError("the output is a folder", errno=errno.EISDIR, path=path, next="name a file in it")
    if _is_special(path):
        _demand_no_terminal(path)
    elif not force:
        what = "there is such a file already"
        raise WriteError(what, errno=errno.EEXIST, path=path, next="name another file, or force=True")


def _demand_no_input(path: str, sources: Iterable[str]) -> None:
    if any(os.path.exists(source) and os.path.samefile(path, source) for source in sources):
        raise WriteError("the output is the input", path=path, next="name another file")


def _is_special(path: str) -> bool:
    """Whether a device, a pipe or a socket is at a path. Such a node is written in place: a rename would replace it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _demand_no_terminal(path: str) -> None:
    if not stat.S_ISCHR(os.stat(path).st_mode):
        return
    try:
        file = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        if os.isatty(file):
            raise WriteError("the output is a terminal", path=path, next="name a file")
    finally:
        os.close(file)


@contextlib.contextmanager
def partials(paths: list[str], sources: Iterable[str], force: bool) -> Iterator[list[str]]:
    """Returns partial files next to the outputs; they are renamed when all of them are complete.

    Each is locked while it is written. One that is not locked was left by a program that was killed, and is replaced.
    A device, a pipe or a socket is returned itself: it is written in place.
    """
    sources = list(sources)
    for path in paths:
        demand_free(path, sources, force)
    # A link stays a link: the file that it leads to is written.
    targets = [os.path.realpath(path) for path in paths]
    with contextlib.ExitStack() as stack:
        special = {target for target in targets if _is_special(target)}
        claimed = {
            target: stack.enter_context(_claimed(f"{target}.partial", sources)) for target in targets if target not in special
        }
        yield [target if target in special else claimed[target][0] for target in targets]
        for target, (part, file) in claimed.items():
            try:
                _sync(file)
                if force and os.path.isfile(target):
                    shutil.copymode(target, part)
                    os.replace(part, target)
                else:
                    _name_new(part, target)
            except OSError as error:
                raise _not_written(target, error) from error
        for folder in {os.path.dirname(target) for target in claimed}:
            _sync_folder(folder)


@contextlib.contextmanager
def folder_for_outputs(folder: str) -> Iterator[None]:
    """A folder, created if it does not exist; what was created is removed after a failure if nothing is in it."""
    created, above = [], os.path.abspath(folder)
    # A drive that does not exist has no folder above it.
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


@contextlib.contextmanager
def _claimed(part: str, sources: list[str]) -> Iterator[tuple[str, int]]:
    """An empty file that no other program writes, open; gone at the end unless it got another name."""
    if os.path.exists(part):
        _demand_no_input(part, sources)
    file = _locked(part)
    while not _is_at(file, part):
        # Another program has just given this file its name.
        os.close(file)
        file = _locked(part)
    try:
        os.truncate(file, 0)
        try:
            yield part, file
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part)
    finally:
        os.close(file)


def _locked(part: str) -> int:
    """A file that was left, or a new one, open and locked. A link is not followed: it would lead out of the folder."""
    try:
        if os.path.islink(part):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        file = os.open(part, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise _not_written(part.removesuffix(".partial"), error) from error
    if fcntl is None:
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        what = "another program is writing this output"
        after = "wait until it is done, or name another file"
        raise WriteError(what, errno=error.errno, path=part, next=after) from error
    except OSError:  # a file system without locks
        pass
    return file


def _is_at(file: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _not_written(path: str, error: OSError) -> WriteError:
    kind = MissingFolderError if isinstance(error, FileNotFoundError) else WriteError
    return _refused(kind, "cannot write the output", path, error)


def _refused(kind: type[WriteError], what: str, path: str, error: OSError) -> WriteError:
    after = _core.next_step(error.errno or 0)
    return kind(f"{what}: {error.strerror}", errno=error.errno, path=path, next=after)


def _sync(file: int) -> None:
    """Waits until a file is on the disk, if its file system supports that."""
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise


def _sync_folder(path: str) -> None:
    """Waits until the names in a folder are on the disk. Until then a file is complete, but may be lost."""
    if os.name == "nt":
        return
    try:
        folder = os.open(path, os.O_RDONLY)
    except PermissionError:  # write, but no read permission
        return
    try:
        _sync(folder)
    except OSError as error:
        what = f"the output is complete, but may be lost if the power fails: {error.strerror}"
        after = "check the disk, and write again with force=True"
        raise WriteError(what, errno=error.errno, path=path, next=after) from error
    finally:
        os.close(folder)


def _name_new(part: str, target: str) -> None:
    """Gives a whole file its name, unless another file got it meanwhile."""
    try:
        os.link(part, target)
    except FileExistsError as error:
        what = "a file with the name of the output was created meanwhile"
        after = "name another file, or force=True"
        raise WriteError(what, errno=error.errno, path=target, next=after) from error
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise
        os.replace(part, target)


def whole(
    out: str | os.PathLike[str], sources: Iterable[str], force: bool, write: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """One new file, written under the name that `write` is given; what `write` returns."""
    with partials([place(out)], sources, force) as parts:
        return write(parts[0])
