"""The command line: `rovelog` and `python -m rovelog` are the same program as the binary."""

from __future__ import annotations

import signal
import sys

from rovelog import _core


def main() -> int:
    """Runs the command line with `sys.argv`; the exit code (0 done, 1 failure, 2 bad arguments, 3 data was lost)."""
    # Python only takes note of Ctrl-C, and nobody here would look at the note.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["rovelog", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
