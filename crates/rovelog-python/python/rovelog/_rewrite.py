"""Logs made of logs: what recovering and slicing leave."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from rovelog._errors import ReadError


class Recovered(NamedTuple):
    """What became of the bytes of a damaged log; kept, lost and stale bytes together are its length."""

    records: int
    """Records of the recovered log."""
    kept_bytes: int
    lost_bytes: int
    """Bytes that no reader can use."""
    lost: list[tuple[int, int]]
    """Their ranges."""
    stale_bytes: int
    """Sound bytes left out because they are of another time."""
    stale_records: int
    unchanged: bool
    """Whether the log was sound, so that the recovered one is a copy."""


class Sliced(NamedTuple):
    """What the part of a log holds."""

    records: int
    others: int
    """What else has a time: texts, dropouts, changes of parameters."""
    topics: int
    bytes: int


def whole(
    out: str | os.PathLike[str], source: str | None, force: bool, write: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """A file that is whole or not there, never the input, and replaces nothing unasked."""
    path = os.fspath(out)
    if source is not None and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
        raise ReadError("the output is the input", path=path, next="name another file")
    if os.path.exists(path) and not force:
        raise ReadError("there is such a file already", path=path, next="name another file, or force=True")
    partial = f"{path}.partial"
    if os.path.exists(partial):
        os.remove(partial)
    facts = write(partial)
    os.replace(partial, path)
    return facts
