"""Logs and topics in other processes: a pickle has what opens the log again, not its data."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._errors import UnsupportedError
from rovelog._files import place
from rovelog._source import SCHEME, Source
from rovelog._types import Window

KEPT = 8
"""Readers that a process keeps for the next pickle of the same log."""


class Opening(NamedTuple):
    """The arguments of `open`: a path or an address, or the bytes of a log."""

    f: str | bytes
    topics: tuple[str, ...] | None
    format: str | None
    types: str | None
    max_unpacked: int | None
    msgs: str | None
    storage_options: tuple[tuple[str, str], ...]
    max_bytes: int | None
    utc_start: int | None
    time_base: str | None
    text_encoding: str | None

    def reader(self) -> _core.Reader:
        """Opens the log, or returns the reader of the last time if the file is the same."""
        key = self._key()
        found = None if key is None else _readers.pop(key, None)
        if found is None:
            storage = dict(self.storage_options)
            found = _source.reader(
                self.f,
                self.format,
                self.types,
                self.max_unpacked,
                self.msgs,
                storage,
                self.max_bytes,
                self.utc_start,
                self.time_base,
                self.text_encoding,
            )
        if key is not None:
            _readers[key] = found
            if len(_readers) > KEPT:
                _readers.popitem(last=False)
        return found

    def _key(self) -> tuple[Any, ...] | None:
        if isinstance(self.f, bytes) or SCHEME.match(self.f):
            return None
        try:
            facts = os.stat(self.f)
        except OSError:
            # Opening says what is wrong.
            return None
        return (*self._replace(topics=None), facts.st_size, facts.st_mtime_ns)


_readers: OrderedDict[tuple[Any, ...], _core.Reader] = OrderedDict()


def opening(
    f: Source,
    topics: list[str] | None,
    format: str | None,
    types: str | os.PathLike[str] | None,
    max_unpacked: int | None,
    msgs: str | os.PathLike[str] | None,
    storage_options: Mapping[str, object] | None = None,
    max_bytes: int | None = None,
    utc_start: int | None = None,
    time_base: str | None = None,
    text_encoding: str | None = None,
) -> Opening | None:
    """Returns what opens a log again; None for a file object, which was read."""
    if isinstance(f, (bytes, bytearray, memoryview)):
        source: str | bytes = bytes(f)
    elif isinstance(f, (str, os.PathLike)):
        # The other process may work in another folder.
        source = os.fspath(f) if SCHEME.match(os.fspath(f)) else _absolute(f)
    else:
        return None
    files = (None if extra is None else _absolute(extra) for extra in (types, msgs))
    wanted = None if topics is None else tuple(topics)
    storage = tuple((str(key), str(value)) for key, value in (storage_options or {}).items())
    return Opening(
        source,
        wanted,
        format,
        next(files),
        max_unpacked,
        next(files),
        storage,
        max_bytes,
        utc_start,
        time_base,
        text_encoding,
    )


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(place(path))


def demand(opened: Opening | None, what: str) -> Opening:
    """Returns what opens the log again. Raises UnsupportedError if it cannot be opened again."""
    if opened is None:
        raise UnsupportedError(f"{what} of a file object cannot be pickled", next="open the log by its path, or by its bytes")
    return opened


def log(opened: Opening) -> Any:
    """Returns the log, opened again."""
    from rovelog._log import Log

    return Log(opened.reader(), opened.topics, opened)


def topic(
    opened: Opening, index: int, fields: list[str] | None, window: Window, signals: Mapping[str, str]
) -> Any:
    """Returns the topic of the log, opened again."""
    # Topics are counted in the file; the selection of the log has no part in it.
    whole = log(opened._replace(topics=None))
    return list(whole.topics.values())[index]._narrower(fields, window, signals)


def table(of: Any) -> Any:
    """Returns the columns of a topic, decoded again."""
    return of.table()
