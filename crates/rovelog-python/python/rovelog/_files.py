"""New files: whole or not there, never the input, and no file is replaced unasked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from rovelog._errors import ReadError


def place(out: str | os.PathLike[str]) -> str:
    """The path that a name means: `~` is the user's folder."""
    path = os.fspath(out)
    return os.path.expanduser(path) if path.startswith("~") and not os.path.exists(path) else path


def demand_free(path: str, source: str | None, force: bool) -> None:
    """Raises where a file cannot be written: it is the input, a folder, or there already and not to be replaced."""
    if not os.path.exists(path):
        return
    if source is not None and os.path.exists(source) and os.path.samefile(path, source):
        raise ReadError("the output is the input", path=path, next="name another file")
    if os.path.isdir(path):
        raise ReadError("the output is a folder", path=path, next="name a file in it")
    if not force:
        raise ReadError("there is such a file already", path=path, next="name another file, or force=True")


@contextlib.contextmanager
def partials(paths: list[str], source: str | None, force: bool) -> Iterator[list[str]]:
    """Names beside those of files to be written; the files get their own names only when all of them are whole."""
    for path in paths:
        demand_free(path, source, force)
    parts = [f"{path}.partial" for path in paths]
    _remove(parts)
    try:
        yield parts
        for part, path in zip(parts, paths, strict=True):
            os.replace(part, path)
    finally:
        _remove(parts)


def _remove(paths: list[str]) -> None:
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def whole(
    out: str | os.PathLike[str], source: str | None, force: bool, write: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """One new file, written under the name that `write` is given; what `write` returns."""
    with partials([place(out)], source, force) as parts:
        return write(parts[0])
