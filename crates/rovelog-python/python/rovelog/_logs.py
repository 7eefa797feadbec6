"""Iteration over many logs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rovelog import _log, _scan
from rovelog._errors import RovelogError, UnreadLogWarning, warn
from rovelog._log import Log
from rovelog._source import find_logs

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


class Logs:
    """Several logs. An iteration opens them one after the other.

    A log that cannot be read is skipped. An `UnreadLogWarning` names this log, and `failed`
    contains its error. `len` returns the number of files. Each iteration opens the logs again.
    """

    def __init__(self, paths: list[str], options: dict[str, Any]) -> None:
        self.paths = paths
        """Paths of the logs, in the order of the arguments. The logs of a folder or a pattern are
        sorted.
        """
        self.failed: dict[str, RovelogError] = {}
        """Path -> error, for the logs that the last iteration left out."""
        self._options = options

    def __len__(self) -> int:
        return len(self.paths)

    def __iter__(self) -> Iterator[Log]:
        return (log for _, log, _ in self._each(lambda log: None))

    def map(self, work: Callable[[Log], T]) -> dict[str, T]:
        """Calls `work` with each log. Returns a dict from the path of each log to the result.

        A log for which `work` raises a RovelogError is skipped, like a log that cannot be read.
        Each log is closed after the call.

            rl.logs("flights/").map(lambda log: log.params["MC_ROLL_P"])
            rl.logs("flights/").map(lambda log: log.events("battery_status.voltage_v < 14 for 2s"))
        """
        results: dict[str, T] = {}
        for path, log, result in self._each(work):
            results[path] = result
            log.close()
        return results

    def sql(self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None) -> duckdb.DuckDBPyRelation:
        """Runs a SQL query with DuckDB. The tables are the topics of all logs, with the names of
        `Log.sql`. Their first column is `log`, the path of the log.

            rl.logs("flights/").sql("SELECT log, min(voltage_v) FROM battery_status GROUP BY log")

        Each log is opened to find its columns, and again when the query is run. Columns and types
        are those of `scan`. A log that cannot be read is skipped, as in an iteration.

        Raises MissingLibrary if duckdb, polars or pyarrow is not installed, UnsupportedError if no
        type holds the values of all logs, and the errors of DuckDB.
        """
        return _scan.query_all(self, query, params)

    def _each(self, work: Callable[[Log], T]) -> Iterator[tuple[str, Log, T]]:
        """Yields the path, the open log, and the result of `work` for each log that can be read."""
        self.failed = {}
        for path in self.paths:
            log = None
            try:
                log = _log.open(path, **self._options)
                item = (path, log, work(log))
            except RovelogError as error:
                if log is not None:
                    log.close()
                self.failed[path] = error
                warn(f"a log is left out: {error}", UnreadLogWarning)
                continue
            # This line is outside of `try`, because an error in the caller's loop is not an error
            # of this log.
            yield item

    def __repr__(self) -> str:
        return f"<rovelog.Logs: {len(self)} files>"


def logs(*sources: str | os.PathLike[str], **options: Any) -> Logs:
    """Returns the logs of files, folders and patterns (`flights/**/*.ulg`). Folders are searched
    recursively.

    An iteration opens the logs one after the other:

        for log in rl.logs("flights/", "bench.rld"):
            print(log.name, log.duration)

    A log that cannot be read does not end the loop; see `Logs`. `options` are keyword arguments of
    `open`. Raises RovelogError for a folder or a pattern without logs. On the command line:
    `rovelog info LOG...`, and every other command that accepts several logs.
    """
    return Logs([path for source in sources for path in find_logs(source)], options)
