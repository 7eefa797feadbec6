"""Exceptions and warnings. An error describes the problem, its offset in the file, and what to do
next.
"""

from __future__ import annotations

import sys
import warnings


class RovelogError(Exception):
    """Base class of all errors.

    `offset` is the offset of the byte at which reading failed. `format` is the id of the format,
    `path` is the path of the file, and `next` tells what to do next. An attribute is None if its
    value is unknown.
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
    """The format of the file is not one of the built-in formats. The message names the detected
    file type.
    """


class UnreadableError(RovelogError, ValueError):
    """A log of a known format cannot be read at all, for example because it ends inside its
    header.
    """


class CorruptError(RovelogError, ValueError):
    """The log is damaged, and was opened with `strict=True`. `lost` contains the byte ranges that
    could not be read.
    """

    def __init__(self, message: str, *, lost: list[tuple[int, int]] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.lost: list[tuple[int, int]] = lost or []


class UnsupportedError(RovelogError, NotImplementedError):
    """The log requires a feature that is not built in, or the format of the log does not support
    the operation.
    """


class NoUtcError(RovelogError, ValueError):
    """The log has no UTC."""


class _Missing(RovelogError, KeyError):
    """Base class of the errors for names that do not exist in the log."""

    def __init__(self, message: str, *, suggestions: list[str] | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.suggestions: list[str] = suggestions or []


class NameNotFound(_Missing):
    """The log has no parameter, info message or channel with this name. `suggestions` contains the
    most similar names.
    """


class TopicNotFound(_Missing):
    """The log has no topic with this name. `suggestions` contains the most similar names."""


class FieldNotFound(_Missing):
    """The topic has no field with this name. `suggestions` contains the most similar names."""


class ReadError(RovelogError, OSError):
    """A log cannot be read, because the operating system, the server, or another program prevents
    this.
    """

    # `OSError.__new__` accepts no keyword arguments, so only the positional arguments are passed.
    def __new__(cls, *args: object, **facts: object) -> ReadError:
        return super().__new__(cls, *args)


class MissingFileError(ReadError, FileNotFoundError):
    """The file does not exist."""


class WriteError(RovelogError, OSError):
    """An output cannot be written. `errno` is the error number returned by the operating system, or
    None.
    """

    def __new__(cls, *args: object, **facts: object) -> WriteError:
        return super().__new__(cls, *args)

    def __init__(self, message: str, *, errno: int | None = None, **facts: object) -> None:
        super().__init__(message, **facts)  # type: ignore[arg-type]
        self.errno = errno

    # OSError stores `errno` outside `__dict__`, so the default pickle would lose it.
    def __reduce__(self) -> tuple[type[WriteError], tuple[object, ...], dict[str, object]]:
        return type(self), self.args, {**vars(self), "errno": self.errno}


class MissingFolderError(WriteError, FileNotFoundError):
    """The folder for an output does not exist."""


class DataLossWarning(UserWarning):
    """Some data is missing.

    Either bytes of a log could not be read (see `log.problems`), or an output cannot contain some
    data (see `Converted.lost`).
    """


class UnreadLogWarning(UserWarning):
    """One of several logs cannot be read, so it is skipped."""


def warn(text: str, category: type[Warning] = DataLossWarning) -> None:
    """Issues a warning that is attributed to the line of user code that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "rovelog":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def warn_of_text(text: str) -> None:
    """Warns about texts that are not valid UTF-8. Their bytes are written as escape sequences, so
    no data is lost.
    """
    warn(text, UnicodeWarning)
