"""Exceptions of rosbag."""

from __future__ import annotations


class ROSBagException(Exception):
    """Base class of the errors of a bag. `value` is the message."""

    def __init__(self, value: str | None = None) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return str(self.value)


class ROSBagFormatException(ROSBagException):
    """The file is not a bag, or cannot be read."""


class ROSBagUnindexedException(ROSBagException):
    """The bag has no index, because it was not closed."""

    def __init__(self, *args: object) -> None:
        # Unpickling passes the message as an argument.
        super().__init__("Unindexed bag")


class ROSBagEncryptNotSupportedException(ROSBagException):
    """Encryption is not supported."""


class ROSBagEncryptException(ROSBagException):
    """Encryption or decryption failed."""


class SerializationError(Exception):
    """A message has a value that its type does not allow. The class is named as in genpy."""
