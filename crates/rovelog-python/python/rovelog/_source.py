"""Sources of logs: paths, folders, patterns, addresses, bytes and file objects."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
from collections.abc import Mapping
from typing import IO

from rovelog import _core
from rovelog._errors import NotALogError, RovelogError, UnreadableError, UnsupportedError
from rovelog._output import expand_user

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""A path, the bytes of a log, a binary file object, or an address."""

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
"""The start of an address. One letter is no scheme, because `C://` is a path on Windows."""
REMOTE = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https")
"""Schemes of addresses from which only the required byte ranges are fetched."""


def find_logs(source: str | os.PathLike[str]) -> list[str]:
    """Returns the sorted paths of the logs in a folder, or of the logs that match a pattern. Any
    other path is returned unchanged.

    A folder is searched recursively, by the same rules as on the command line. Raises RovelogError
    for a folder or a pattern without logs.
    """
    path = os.fspath(source)
    if SCHEME.match(path):
        several = path.endswith("/") or "*" in path
    else:
        path = os.path.expanduser(path)
        # The name of an existing file may contain `[` or `*`. The path of a missing file without
        # such characters is returned, so that opening it raises MissingFileError.
        several = os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))
    return [uri for uri, _, _ in _core.scale_find([path])] if several else [path]


def open_reader(
    f: Source,
    format: str | None = None,
    types: str | os.PathLike[str] | None = None,
    max_unpacked: int | None = None,
    msgs: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, object] | None = None,
    max_bytes: int | None = None,
    utc_start: int | None = None,
    time_base: str | None = None,
    text_encoding: str | None = None,
) -> _core.Reader:
    """Opens a log. `format` is the id of its format; None detects the format by the first bytes."""
    types = None if types is None else expand_user(types)
    msgs = None if msgs is None else expand_user(msgs)
    further = utc_start, time_base, text_encoding
    if isinstance(f, (bytes, bytearray, memoryview)):
        try:
            return _core.Reader.from_bytes(bytes(f), format, None, types, max_unpacked, msgs, *further)
        except (NotALogError, UnreadableError) as error:
            raise _with_hint(error, bytes(f)) from None
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        scheme = SCHEME.match(path)
        if scheme is None:
            return _core.Reader.open(expand_user(path), format, False, types, max_unpacked, msgs, *further)
        if scheme[1].lower() in REMOTE:
            storage = [(str(key), str(value)) for key, value in (storage_options or {}).items()]
            return _core.Reader.remote(path, None, format, types, max_unpacked, msgs, storage, max_bytes, *further)
        if scheme[1].lower() == "file":
            return _core.Reader.open(_local(path), format, False, types, max_unpacked, msgs, *further)
        raise UnsupportedError(
            f"addresses that start with {scheme[1]}:// are not supported",
            path=path,
            next="use an address that starts with s3://, gs://, az://, https:// or http://, or pass a binary file object",
        )
    if not hasattr(f, "read"):
        raise TypeError(f"a log must be a path, bytes or a binary file object, not {type(f).__name__}")
    name = getattr(f, "name", None)
    name = name if isinstance(name, str) else None
    # These file objects are read completely. The caller may close a local file after `open`, and
    # reading by ranges saves nothing for data in memory or for decompressed data. All other
    # seekable objects, such as files of fsspec, are read by ranges.
    read_completely = isinstance(f, (io.BytesIO, io.BufferedReader, bz2.BZ2File, gzip.GzipFile, lzma.LZMAFile))
    by_ranges = not read_completely and getattr(f, "seekable", bool)()
    data = f.read(0) if by_ranges else f.read()
    if not isinstance(data, bytes):
        raise TypeError("the file object returns text, so open it with mode 'rb'")
    if by_ranges:
        return _core.Reader.remote(f, name, format, types, max_unpacked, msgs, [], max_bytes, *further)
    return _core.Reader.from_bytes(data, format, name, types, max_unpacked, msgs, *further)


def _with_hint(error: RovelogError, data: bytes) -> RovelogError:
    """Returns the error. If the bytes look like a path, its advice tells how to pass a path."""
    if len(data) < 1024:
        name = os.fsdecode(data)
        if name.isprintable() and (os.path.splitext(name)[1] or os.path.exists(name)):
            error.next = f"a bytes argument is read as the content of a log; to open a path, pass a str: open({name!r})"
    return error


def _local(address: str) -> str:
    """Returns the path in a `file:` address."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise UnsupportedError(
            f"the file is on another machine, {parts.netloc}", path=address, next="for a file on this machine, write three slashes: file:///x.ulg"
        )
    return url2pathname(parts.path)
