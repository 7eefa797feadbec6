"""The exceptions and the warning of rocketlogger."""


class RocketLoggerFileError(IOError):
    """The file cannot be read."""


class RocketLoggerDataError(Exception):
    """The data cannot be used as asked."""


class RocketLoggerDataWarning(Warning):
    """Something about the data is worth knowing."""
