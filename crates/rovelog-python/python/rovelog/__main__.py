"""Command line. `rovelog` and `python -m rovelog` run the same program as the binary."""

from __future__ import annotations

import signal
import sys

from rovelog import _core


def main() -> int:
    """Runs the command line with `sys.argv`.

    Returns the exit code: 0 for success, 1 for a failure, 2 for invalid arguments, 3 if the command
    finished but some data was lost.
    """
    # Python's handler for Ctrl-C only sets a flag, which no Python code checks while Rust code
    # runs. With the default handler of the system, Ctrl-C ends the process immediately.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["rovelog", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
