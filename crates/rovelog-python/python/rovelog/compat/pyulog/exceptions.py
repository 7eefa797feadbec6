"""The exceptions of pyulog."""

from rovelog._errors import RovelogError


class ULogException(RovelogError):
    """The file cannot be read at all: no ULog, or it ends inside its header."""


class ULogIncompatibleFlagException(ULogException):
    """The file says that it uses what this reader does not know."""


class DatasetNotFound(IndexError, KeyError, ValueError):
    """There is no such dataset. pyulog raises IndexError, and also documents KeyError and ValueError."""

    def __str__(self) -> str:
        return str(self.args[0])
