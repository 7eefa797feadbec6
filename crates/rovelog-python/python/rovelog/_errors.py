"""The exceptions. Each says what is wrong, at which byte, and what to do next."""

from __future__ import annotations

import sys
import warnings


class RovelogError(Exception):
    """Anything that Rovelog refuses to do.

    `offset` is the byte of the file that is to blame, `format` the id of the format, `path` the file, `next` what can
    be done; each None where there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        format: str | None = None,
        path: str | None = None,
        next: str | None = None,
    ) -> None:
        super().__init__(message)
        self.offset = offset
        self.format = format
        self.path = path
        self.next = next

    def __str__(self) -> str:
        text = str(self.args[0]) if self.args else ""
        if self.path is not None:
            text += f": {self.path}"
        if self.offset is not None:
            text += f" (byte {self.offset})"
        if self.next is not None:
            text += f"\n  next: {self.next}"
        return text


class NotALogError(RovelogError, ValueError):
    """The first bytes are those of no format that is built in; the message names what they look like."""


class UnreadableError(RovelogError, ValueError):
    """A log of a known format of which nothing can be read, for example one that ends inside its header."""


class CorruptError(RovelogError, ValueError):
    """Damage, and `strict=True` asked for an exception. `lost` has the ranges of bytes that could not be read."""

    def __init__(self, message: str, *, lost: list[tuple[int, int]] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.lost = lost or []


class UnsupportedError(RovelogError, NotImplementedError):
    """The log is sound but needs what is not built in, or its format has no such thing."""


class NoUtcError(RovelogError, ValueError):
    """Nothing in the log tells how its clock stands to UTC."""


class _Missing(RovelogError, KeyError):
    def __init__(self, message: str, *, suggestions: list[str] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.suggestions = suggestions or []


class NameNotFound(_Missing):
    """The log has no parameter, information or channel of that name. `suggestions` has the names that look most like it."""


class TopicNotFound(_Missing):
    """The log has no such topic. `suggestions` has the names that look most like it."""


class FieldNotFound(_Missing):
    """The topic has no such field. `suggestions` has the names that look most like it."""


class ReadError(RovelogError, OSError):
    """The operating system refused to read or write."""

    # OSError would take the message apart.
    def __new__(cls, *args: object, **facts: object) -> ReadError:
        return super().__new__(cls, *args)


class MissingFileError(ReadError, FileNotFoundError):
    """There is no such file."""


class DataLossWarning(UserWarning):
    """Data are missing: bytes that could not be read (`log.problems`), or what a kind of file could not carry (`Converted.lost`)."""


def warn(text: str) -> None:
    """Warns of lost data at the line of the user's that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rovelog":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DataLossWarning, stacklevel=level)
