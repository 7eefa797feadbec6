"""Where logs come from."""

from __future__ import annotations

import os
import re
import time
from typing import IO

from rovelog import _core
from rovelog._errors import MissingFileError, NotALogError, ReadError, RovelogError, UnreadableError, UnsupportedError
from rovelog._files import place

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""A path, the bytes of a log, a binary file object, or an http(s) address."""

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
HTTP_BYTES = 4 << 30
"""What is larger is refused: an answer is held in memory."""
HTTP_SECONDS = 600
"""What takes longer is given up."""
HTTP_SILENCE = 30
"""Seconds without a byte after which a server is given up."""


def reader(
    f: Source,
    format: str | None = None,
    types: str | os.PathLike[str] | None = None,
    max_unpacked: int | None = None,
    msgs: str | os.PathLike[str] | None = None,
) -> _core.Reader:
    """Opens a log, of the format with this id or of that which its first bytes tell."""
    types = None if types is None else place(types)
    msgs = None if msgs is None else place(msgs)
    if isinstance(f, (bytes, bytearray, memoryview)):
        try:
            return _core.Reader.from_bytes(bytes(f), format, None, types, max_unpacked, msgs)
        except (NotALogError, UnreadableError) as error:
            raise _hinted(error, bytes(f)) from None
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        scheme = SCHEME.match(path)
        if scheme is None:
            return _core.Reader.open(place(path), format, False, types, max_unpacked, msgs)
        if scheme[1].lower() in ("http", "https"):
            return _core.Reader.from_bytes(_download(path), format, path, types, max_unpacked, msgs)
        if scheme[1].lower() == "file":
            return _core.Reader.open(_local(path), format, False, types, max_unpacked, msgs)
        raise UnsupportedError(
            f"logs at {scheme[1]}:// cannot be opened yet",
            path=path,
            next="copy the log to this machine, or hand over a binary file object that reads it",
        )
    if not hasattr(f, "read"):
        raise TypeError(f"a log is a path, bytes or a binary file object, not {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError("the file object gives text: open it with mode 'rb'")
    name = getattr(f, "name", None)
    return _core.Reader.from_bytes(data, format, name if isinstance(name, str) else None, types, max_unpacked, msgs)


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


def _download(address: str) -> bytes:
    """The answer of a server, whole, within limits of size and time."""
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    def failed(what: str, next: str, error: type[ReadError] = ReadError) -> ReadError:
        return error(what, path=address, next=next)

    def too_large(size: int) -> ReadError:
        return failed(f"the log has more than {size >> 20} MiB, which is too large to hold in memory", "download it, then open the file")

    again = "check the address and the network, or download it, then open the file"
    until = time.monotonic() + HTTP_SECONDS
    try:
        with urllib.request.urlopen(address, timeout=HTTP_SILENCE) as answer:
            told = answer.headers.get("Content-Length")
            size = int(told) if told is not None and told.isdigit() else None
            if size is not None and size > HTTP_BYTES:
                raise too_large(HTTP_BYTES)
            data = bytearray()
            # `read1` gives what has come, so that a slow server does not pass the time that it has.
            while piece := answer.read1(1 << 20):
                data += piece
                if len(data) > HTTP_BYTES:
                    raise too_large(HTTP_BYTES)
                if time.monotonic() > until:
                    raise failed(f"the server has sent {len(data)} bytes in {HTTP_SECONDS} s, and not all", again)
    except urllib.error.HTTPError as error:
        error.close()
        gone = error.code in (404, 410)
        what = f"the server answers {error.code} {error.reason}"
        raise failed(what, "check the address", MissingFileError if gone else ReadError) from error
    except (urllib.error.URLError, HTTPException, TimeoutError, OSError) as error:
        if isinstance(error, RovelogError):
            raise
        why = getattr(error, "reason", error)
        raise failed(f"the log cannot be fetched: {why}", again) from error
    if size is not None and len(data) != size:
        raise failed(f"the answer breaks off: {len(data)} of {size} bytes", again)
    return bytes(data)
