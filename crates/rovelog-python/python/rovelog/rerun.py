"""Importer of the Rerun viewer: with `pip install 'rovelog[rerun]'`, `rerun flight.ulg` opens a log.

Rerun starts every program `rerun-importer-*` that it finds with each file that it is asked to open,
and reads a recording from the output. The exit code 66 says that a file is not for this program.
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
from rovelog._need import need

NOT_MINE = 66
"""The exit code for a file of another importer."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the recording of a log to standard output. Returns the exit code: 0 success, 1 failure,
    2 invalid arguments, 66 a file that is no log.
    """
    parser = argparse.ArgumentParser("rerun-importer-rovelog", description="Writes a log as a recording of Rerun")
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--application-id")
    parser.add_argument("--opened-application-id")
    parser.add_argument("--recording-id")
    parser.add_argument("--opened-recording-id")
    parser.add_argument("--entity-path-prefix")
    # Rerun also passes times and what later versions add.
    given, _ = parser.parse_known_args(arguments)
    if not given.path.is_file():
        return NOT_MINE
    try:
        with open(given.path) as log:
            _write(log, given)
    except NotALogError:
        return NOT_MINE
    except (RovelogError, ModuleNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _write(log: Log, given: argparse.Namespace) -> None:
    """Writes a log by the MCAP file that `rovelog export` makes, which Rerun reads itself."""
    rerun = need("rerun")
    application = given.opened_application_id or given.application_id or given.path.name
    recording = rerun.RecordingStream(
        application, recording_id=given.opened_recording_id or given.recording_id
    )
    recording.stdout()
    with tempfile.TemporaryDirectory(prefix="rovelog-") as folder:
        path = pathlib.Path(folder, "log.mcap")
        # Rerun decodes messages of ROS 2, not those of ROS 1.
        convert(log, path, ros2=log.format == "rosbag")
        recording.log_file_from_path(path, entity_path_prefix=given.entity_path_prefix)
        recording.flush()


if __name__ == "__main__":
    sys.exit(main())
