"""Command line: `rovelog` and `python -m rovelog` are the same program as the binary."""

from __future__ import annotations

import signal
import sys

from rovelog import _core


def main() -> int:
    """Runs the command line with `sys.argv` and returns the exit code: 0 success, 1 failure, 2
    invalid arguments, 3 finished, but data was lost.
    """
    # Python only sets a flag on Ctrl-C, and no Python code runs here to check it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["rovelog", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
