"""Exceptions. Each names the problem, the byte and the next step."""

from __future__ import annotations

import sys
import warnings


class RovelogError(Exception):
    """Base class of all errors.

    `offset` is the byte of the file, `format` the id of the format, `path` the file, `next` the
    next step; each is None if unknown.
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
    """The first bytes are those of no built-in format; the message names the detected file type."""


class UnreadableError(RovelogError, ValueError):
    """A log of a known format that cannot be read at all, for example one that ends inside its
    header.
    """


class CorruptError(RovelogError, ValueError):
    """Damage with `strict=True`. `lost` has the byte ranges that could not be read."""

    def __init__(self, message: str, *, lost: list[tuple[int, int]] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.lost: list[tuple[int, int]] = lost or []


class UnsupportedError(RovelogError, NotImplementedError):
    """The log needs a feature that is not built in, or its format does not support the operation."""


class NoUtcError(RovelogError, ValueError):
    """The log has no UTC."""


class _Missing(RovelogError, KeyError):
    def __init__(self, message: str, *, suggestions: list[str] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.suggestions: list[str] = suggestions or []


class NameNotFound(_Missing):
    """The log has no parameter, info message or channel with that name. `suggestions` has the most
    similar names.
    """


class TopicNotFound(_Missing):
    """The log has no such topic. `suggestions` has the most similar names."""


class FieldNotFound(_Missing):
    """The topic has no such field. `suggestions` has the most similar names."""


class ReadError(RovelogError, OSError):
    """A log cannot be read: the operating system, the server, or another program prevents it."""

    # OSError would take the message apart.
    def __new__(cls, *args: object, **facts: object) -> ReadError:
        return super().__new__(cls, *args)


class MissingFileError(ReadError, FileNotFoundError):
    """The file does not exist."""


class WriteError(RovelogError, OSError):
    """An output cannot be written. `errno` is the number of the operating system's error, or None."""

    def __new__(cls, *args: object, **facts: object) -> WriteError:
        return super().__new__(cls, *args)

    def __init__(self, message: str, *, errno: int | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.errno = errno

    # OSError keeps the number outside of the attributes that are pickled.
    def __reduce__(self) -> tuple[type[WriteError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**vars(self), "errno": self.errno}


class MissingFolderError(WriteError, FileNotFoundError):
    """The folder of an output does not exist."""


class DataLossWarning(UserWarning):
    """Data is missing: bytes that could not be read (`log.problems`), or data that an output cannot
    contain (`Converted.lost`).
    """


class UnreadLogWarning(UserWarning):
    """One of several logs is left out, because it cannot be read."""


def warn(text: str, category: type[Warning] = DataLossWarning) -> None:
    """Warns, of lost data by default, at the line of the caller."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rovelog":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of_text(text: str) -> None:
    """Warns of texts that are not UTF-8. Nothing of them is lost."""
    warn(text, UnicodeWarning)
