"""Where logs come from."""

from __future__ import annotations

import os
from typing import IO

from rovelog import _core

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
"""A path, the bytes of a log, a binary file object, or an http(s) address."""


def reader(f: Source, format: str | None = None, types: str | os.PathLike[str] | None = None) -> _core.Reader:
    """Opens a log, of the format with this id or of that which its first bytes tell."""
    if isinstance(f, (bytes, bytearray, memoryview)):
        return _core.Reader.from_bytes(bytes(f), format, types=types)
    if isinstance(f, str) and f.startswith(("http://", "https://")):
        import urllib.request

        with urllib.request.urlopen(f) as answer:
            return _core.Reader.from_bytes(answer.read(), format, f, types)
    if isinstance(f, (str, os.PathLike)):
        return _core.Reader.open(os.fspath(f), format, types=types)
    if not hasattr(f, "read"):
        raise TypeError(f"a log is a path, bytes or a binary file object, not {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError("the file object gives text: open it with mode 'rb'")
    name = getattr(f, "name", None)
    return _core.Reader.from_bytes(data, format, name if isinstance(name, str) else None, types)
