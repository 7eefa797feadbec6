"""Exceptions of pyulog."""

from rovelog._errors import RovelogError


class ULogException(RovelogError):
    """The file cannot be read at all: it is not a ULog, or ends inside its header."""


class ULogIncompatibleFlagException(ULogException):
    """The file uses a feature that this reader does not support, according to its incompatible
    flags.
    """


class DatasetNotFound(IndexError, KeyError, ValueError):
    """The log has no dataset with this name and instance. It is an IndexError, which pyulog raises,
    and also a KeyError and a ValueError, which pyulog documents.
    """

    def __str__(self) -> str:
        return str(self.args[0])
