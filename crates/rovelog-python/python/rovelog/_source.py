"""Where logs come from."""

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
from rovelog._files import place

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""A path, the bytes of a log, a binary file object, or an address."""

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
REMOTE = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https")
"""Schemes of addresses that are read by ranges."""


def paths(source: str | os.PathLike[str]) -> list[str]:
    """The logs of a folder (all in it and below) or of a pattern, sorted, as the command line finds them; the path of
    anything else. Raises RovelogError for a folder or a pattern without logs."""
    path = os.fspath(source)
    if SCHEME.match(path):
        several = path.endswith("/") or "*" in path
    else:
        path = os.path.expanduser(path)
        # A file that does not exist is a log that cannot be read; a folder or a pattern without logs is a mistake.
        several = os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))
    return [uri for uri, _, _ in _core.scale_find([path])] if several else [path]


def reader(
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
    """Opens a log, of the format with this id or of that which its first bytes tell."""
    types = None if types is None else place(types)
    msgs = None if msgs is None else place(msgs)
    further = utc_start, time_base, text_encoding
    if isinstance(f, (bytes, bytearray, memoryview)):
        try:
            return _core.Reader.from_bytes(bytes(f), format, None, types, max_unpacked, msgs, *further)
        except (NotALogError, UnreadableError) as error:
            raise _hinted(error, bytes(f)) from None
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        scheme = SCHEME.match(path)
        if scheme is None:
            return _core.Reader.open(place(path), format, False, types, max_unpacked, msgs, *further)
        if scheme[1].lower() in REMOTE:
            storage = [(str(key), str(value)) for key, value in (storage_options or {}).items()]
            return _core.Reader.remote(
                path, None, format, types, max_unpacked, msgs, storage, max_bytes, *further
            )
        if scheme[1].lower() == "file":
            return _core.Reader.open(_local(path), format, False, types, max_unpacked, msgs, *further)
        raise UnsupportedError(
            f"addresses of the kind {scheme[1]}:// are not supported",
            path=path,
            next="use s3://, gs://, az://, https:// or http://, or hand over a binary file object that reads it",
        )
    if not hasattr(f, "read"):
        raise TypeError(f"a log is a path, bytes or a binary file object, not {type(f).__name__}")
    name = getattr(f, "name", None)
    name = name if isinstance(name, str) else None
    # Files of this machine may be closed after this, and what is in memory, what cannot seek and what
    # is decompressed gains nothing: they are read whole.
    whole = isinstance(f, (io.BytesIO, io.BufferedReader, bz2.BZ2File, gzip.GzipFile, lzma.LZMAFile))
    parts = not whole and getattr(f, "seekable", bool)()
    data = f.read(0) if parts else f.read()
    if not isinstance(data, bytes):
        raise TypeError("the file object gives text: open it with mode 'rb'")
    if parts:
        return _core.Reader.remote(
            f, name, format, types, max_unpacked, msgs, [], max_bytes, *further
        )
    return _core.Reader.from_bytes(data, format, name, types, max_unpacked, msgs, *further)


def _hinted(error: RovelogError, data: bytes) -> RovelogError:
    """The error, with a hint where the bytes look like the name of a file."""
    if len(data) < 1024:
        name = os.fsdecode(data)
        if name.isprintable() and (os.path.splitext(name)[1] or os.path.exists(name)):
            error.next = f"bytes are taken as the log itself; a path is a str: open({name!r})"
    return error


def _local(address: str) -> str:
    """The path in a `file:` address."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    parts = urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise UnsupportedError(
            f"the file is on another machine, {parts.netloc}", path=address, next="a file here has three slashes: file:///x.ulg"
        )
    return url2pathname(parts.path)
