"""Many logs, one after the other."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rovelog import _log
from rovelog._errors import RovelogError, UnreadLogWarning
from rovelog._log import Log
from rovelog._source import paths

T = TypeVar("T")


class Logs:
    """The logs of files, folders and patterns; iterating opens one after the other.

    A log that cannot be read is left out: an `UnreadLogWarning` names it, and `failed` has its error. `len` is the number
    of files. Each iteration opens the logs again.
    """

    def __init__(self, paths: list[str], options: dict[str, Any]) -> None:
        self.paths = paths
        """The files, in the order of the arguments; those of a folder or a pattern sorted."""
        self.failed: dict[str, RovelogError] = {}
        """Path -> error of the logs that the last iteration left out."""
        self._options = options

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Log]:
        return (log for _, log, _ in self._each(lambda log: None))

    def map(self, work: Callable[[Log], T]) -> dict[str, T]:
        """Returns the result of `work` for each log: path -> result. A log for which it raises a RovelogError is left out,
        as one that cannot be read. Each log is closed after its work.

            rl.logs("flights/").map(lambda log: log.params["MC_ROLL_P"])
            rl.logs("flights/").map(lambda log: log.events("battery_status.voltage_v < 14 for 2s"))
        """
        results: dict[str, T] = {}
        for path, log, result in self._each(work):
            results[path] = result
            log.close()
        return results

    def _each(self, work: Callable[[Log], T]) -> Iterator[tuple[str, Log, T]]:
        self.failed = {}
        for path in self.paths:
            log = None
            try:
                log = _log.open(path, **self._options)
                done = (path, log, work(log))
            except RovelogError as error:
                if log is not None:
                    log.close()
                self.failed[path] = error
                warnings.warn(f"left out: {error}", UnreadLogWarning, stacklevel=3)
                continue
            yield done

    def __repr__(self) -> str:
        return f"<rovelog.Logs: {len(self)} files>"


def logs(*sources: str | os.PathLike[str], **options: Any) -> Logs:
    """Returns the logs of files, folders (all logs in them and below) and patterns (`flights/**/*.ulg`), which are opened one
    after the other when they are iterated over.

        for log in rl.logs("flights/", "bench.rld"):
            print(log.name, log.duration)

    One bad log does not end the loop: see `Logs`. `options` are those of `open`. Raises RovelogError for a folder or a
    pattern without logs. On the command line: `rovelog info LOG...`, and every other command that takes several logs.
    """
    return Logs([path for source in sources for path in paths(source)], options)
