"""The exceptions of rosbag."""

from __future__ import annotations


class ROSBagException(Exception):
    """Anything that the bag cannot do; `value` is the text."""

    def __init__(self, value: str | None = None) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return str(self.value)


class ROSBagFormatException(ROSBagException):
    """The file is no bag, or none that can be read."""


class ROSBagUnindexedException(ROSBagException):
    """The bag has no index: it was not closed."""

    def __init__(self, *args: object) -> None:
        # What was pickled has the text as an argument.
        super().__init__("Unindexed bag")


class ROSBagEncryptNotSupportedException(ROSBagException):
    """Encryption is not supported."""


class ROSBagEncryptException(ROSBagException):
    """Encryption or decryption failed."""
