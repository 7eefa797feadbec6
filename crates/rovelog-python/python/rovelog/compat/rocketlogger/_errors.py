"""Exceptions and warnings of rocketlogger."""


class RocketLoggerFileError(IOError):
    """The file cannot be read."""


class RocketLoggerDataError(Exception):
    """The data do not support the requested operation."""


class RocketLoggerDataWarning(Warning):
    """The data can be used, but are unusual or incomplete."""
