"""Drop-in replacement for rocketlogger 2.1.3.

Scripts import `RocketLoggerData` from `rovelog.compat.rocketlogger.data`.

Intended differences are listed in docs/reference/python.md, with their reasons and tests.
"""

from rovelog.compat.rocketlogger.data import (
    RocketLoggerData,
    RocketLoggerDataError,
    RocketLoggerDataWarning,
    RocketLoggerFileError,
)

__all__ = ["RocketLoggerData", "RocketLoggerDataError", "RocketLoggerDataWarning", "RocketLoggerFileError"]
