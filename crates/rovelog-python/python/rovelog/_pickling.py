"""Pickling of logs, topics and tables.

A pickle contains the arguments that open the log again, not the data of the log. For example, the
pickle of a topic in a log of 2 GB is a few hundred bytes. The process that unpickles it must have
access to the same file.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._errors import UnsupportedError
from rovelog._output import expand_user
from rovelog._source import SCHEME, Source

MAX_READERS = 8
"""Maximum number of open readers that a process caches for further pickles of the same logs."""


class OpenArguments(NamedTuple):
    """The arguments of `open`. The source `f` is a path, an address, or the bytes of a log."""

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
        """Opens the log. If this process has opened the file before and the file is unchanged,
        returns the cached reader.
        """
        key = self._key()
        found = None if key is None else _readers.pop(key, None)
        if found is None:
            storage = dict(self.storage_options)
            found = _source.open_reader(
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
            # The reader was removed from the cache above. Inserting it again makes it the most
            # recent entry. So the entry that is dropped here was not used for the longest time.
            _readers[key] = found
            if len(_readers) > MAX_READERS:
                _readers.popitem(last=False)
        return found

    def _key(self) -> tuple[Any, ...] | None:
        """Returns the cache key of the log. Returns None if the log cannot be cached.

        The key includes the size and the modification time of the file, so that a changed file is
        opened again. Remote logs and logs in memory are not cached.
        """
        if isinstance(self.f, bytes) or SCHEME.match(self.f):
            return None
        try:
            facts = os.stat(self.f)
        except OSError:
            # The error is not raised here, because opening the log raises a more detailed error.
            return None
        return (*self._replace(topics=None), facts.st_size, facts.st_mtime_ns)


_readers: OrderedDict[tuple[Any, ...], _core.Reader] = OrderedDict()
"""The cached readers, least recently used first."""


def open_arguments(
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
) -> OpenArguments | None:
    """Returns arguments that open the log in any process. Returns None for a file object, which
    cannot be opened again.
    """
    if isinstance(f, (bytes, bytearray, memoryview)):
        source: str | bytes = bytes(f)
    elif isinstance(f, (str, os.PathLike)):
        # Paths become absolute because the other process may have another working directory.
        source = os.fspath(f) if SCHEME.match(os.fspath(f)) else _absolute(f)
    else:
        return None
    files = (None if extra is None else _absolute(extra) for extra in (types, msgs))
    wanted = None if topics is None else tuple(topics)
    storage = tuple((str(key), str(value)) for key, value in (storage_options or {}).items())
    return OpenArguments(
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
    return os.path.abspath(expand_user(path))


def require_arguments(arguments: OpenArguments | None, what: str) -> OpenArguments:
    """Returns the arguments of `open`. Raises UnsupportedError if they are None, because the log
    cannot be opened again.
    """
    if arguments is None:
        raise UnsupportedError(f"{what} of a file object cannot be pickled", next="open the log by its path, or by its bytes")
    return arguments
