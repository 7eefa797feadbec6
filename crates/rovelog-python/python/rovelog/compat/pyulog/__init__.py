"""Drop-in replacement for pyulog 1.3.0: `from rovelog.compat.pyulog import ULog`.

Reading is many times faster, and data are decoded when they are accessed. Intended differences are
listed in docs/reference/python.md, with their reasons and tests.
"""

from rovelog.compat.pyulog import core, exceptions, px4
from rovelog.compat.pyulog.core import ULog
from rovelog.compat.pyulog.exceptions import ULogException, ULogIncompatibleFlagException

__all__ = ["ULog", "ULogException", "ULogIncompatibleFlagException", "core", "exceptions", "px4"]
