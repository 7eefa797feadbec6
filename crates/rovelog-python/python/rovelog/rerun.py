"""Importer for the Rerun viewer. After `pip install 'rovelog[rerun]'`, `rerun flight.ulg` opens a
log.

To open a file, Rerun starts every program named `rerun-importer-*` and reads a recording from its
standard output. A program exits with the code 66 if it does not support the file.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Sequence

from rovelog._convert import convert
from rovelog._errors import NotALogError, RovelogError
from rovelog._log import Log, open
from rovelog._optional import require

UNSUPPORTED_FILE = 66
"""Exit code that tells Rerun to try other importers."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the recording of a log to standard output.

    Returns the exit code: 0 for success, 1 for a failure, 2 for invalid arguments, 66 for a file
    that is not a log.
    """
    parser = argparse.ArgumentParser("rerun-importer-rovelog", description="Writes a log as a recording of Rerun")
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--application-id")
    parser.add_argument("--opened-application-id")
    parser.add_argument("--recording-id")
    parser.add_argument("--opened-recording-id")
    parser.add_argument("--entity-path-prefix")
    # Rerun passes additional options, such as times, and future versions may add more options. They
    # are ignored.
    given, _ = parser.parse_known_args(arguments)
    if not given.path.is_file():
        return UNSUPPORTED_FILE
    try:
        with open(given.path) as log:
            _write(log, given)
    except NotALogError:
        return UNSUPPORTED_FILE
    except (RovelogError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _write(log: Log, given: argparse.Namespace) -> None:
    """Writes a log as a recording. The log is converted to MCAP first, which Rerun can read
    itself.
    """
    rerun = require("rerun")
    application = given.opened_application_id or given.application_id or given.path.name
    recording = rerun.RecordingStream(
        application, recording_id=given.opened_recording_id or given.recording_id
    )
    recording.stdout()
    with tempfile.TemporaryDirectory(prefix="rovelog-") as folder:
        path = pathlib.Path(folder, "log.mcap")
        # Rerun decodes ROS 2 messages, but not ROS 1 messages.
        convert(log, path, ros2=log.format == "rosbag")
        recording.log_file_from_path(path, entity_path_prefix=given.entity_path_prefix)
        recording.flush()


if __name__ == "__main__":
    sys.exit(main())
