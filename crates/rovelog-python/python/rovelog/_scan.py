"""Topics of many logs as one polars LazyFrame, and as tables of SQL queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rovelog import _log, _source, _sql
from rovelog._errors import RovelogError
from rovelog._lazyframe import batches, lazy_frame, topic_schema
from rovelog._log import Log, warn_of_loss
from rovelog._optional import require
from rovelog._pickling import require_arguments
from rovelog._schema import LogSchema, Schema, union_schema
from rovelog._source import SCHEME, Source, find_logs
from rovelog._topic import topic_not_found
from rovelog._types import Window

if TYPE_CHECKING:
    import duckdb
    import polars

    from rovelog._logs import Logs


def scan(
    logs: Source | Iterable[Source], topic: str | tuple[str, int], *, path_column: str | None = None
) -> polars.LazyFrame:
    """Returns a topic of one or many logs as a `polars.LazyFrame`. A query decodes only the columns
    and times that it needs.

    `logs` is an argument of `open`, a pattern (`flights/**/*.ulg`), a folder, or several of these.
    A folder is searched recursively for logs, by extension. `topic` is a name, or a name and an
    instance. `path_column` adds a column with the path of the log.

    All logs are opened once to find their columns, and again by each query. The frame has the
    columns that `to_polars` returns for any of the logs, in types that hold the values of all logs.
    Arrays of different lengths become lists. A column is null for logs that lack it, and logs
    without the topic add no rows.

    Raises:

    - TopicNotFound if no log has the topic
    - UnsupportedError, which names log, topic and column, if no type holds the values of all logs
    - ValueError if there are no logs, or if the topic itself has a column named `path_column`
    - the errors of `open`

    A query raises RovelogError if a log has changed since `scan`.
    """
    pl = require("polars")
    found, other_topics = [], dict[str, None]()
    sources = _sources(logs)
    for source in sources:
        with _open(source) as log:
            warn_of_loss(log)
            if topic in log:
                place = str(source) if isinstance(source, (str, os.PathLike)) else None
                found.append(_ScannedLog(place, partial(_open, source), topic, topic_schema(log[topic])))
            else:
                other_topics.update(dict.fromkeys(log.topics))
    if not found:
        path = sources[0] if len(sources) == 1 and isinstance(sources[0], (str, os.PathLike)) else None
        where = "in this log" if len(sources) == 1 else f"in any of the {len(sources)} logs"
        raise topic_not_found(topic, other_topics, where, None if path is None else os.fspath(path))
    name = topic if isinstance(topic, str) else f"{topic[0]}/{topic[1]}"
    columns = _common_columns(name, found)
    if path_column in columns:
        raise ValueError(f"the topic already has a column {path_column}, so give another path_column")
    schema = columns if path_column is None else {path_column: pl.String(), **columns}
    return lazy_frame(found, schema, path_column)


def _open(source: Source) -> Log:
    return Log(_source.open_reader(source))


def _sources(logs: Source | Iterable[Source]) -> list[Source]:
    """Returns a list of single logs. File objects are read into memory, because each query opens
    the logs again.
    """
    if isinstance(logs, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(logs, "read"):
        logs = [logs]  # type: ignore[list-item]
    sources: list[Source] = []
    for log in logs:
        if isinstance(log, (str, os.PathLike)):
            try:
                sources += find_logs(log)
            except RovelogError as error:
                # A local folder without logs is a wrong argument. For an address, a failure of the
                # server is another possible reason.
                if SCHEME.match(os.fspath(log)):
                    raise
                raise ValueError(str(error)) from error
        else:
            sources.append(log if isinstance(log, (bytes, bytearray, memoryview)) else log.read())
    if not sources:
        raise ValueError("no log to scan was given")
    return sources


class _ScannedLog(NamedTuple):
    """A log that contains the scanned topic."""

    path: str | None
    """Path of the log; None for a log in memory."""
    open: Callable[[], Log]
    """Opens the log again."""
    topic: str | tuple[str, int]
    schema: Schema
    """Columns of the topic when the log was opened for the first time."""

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        """Opens the log and returns its rows; see `FrameSource`."""
        import polars as pl

        with self.open() as log:
            topic = log[self.topic]
            if topic_schema(topic) != self.schema:
                changed = f"the columns of topic {topic.name} have changed since the log was scanned"
                raise RovelogError(changed, path=self.path, next="scan it again")
            for frame in batches(topic, limits, wanted, path_column):
                if path_column in wanted:
                    frame = frame.with_columns(pl.lit(self.path, pl.String).alias(path_column))
                yield frame.select(list(wanted))


def query_all(logs: Logs, text: str, params: _sql.Params) -> duckdb.DuckDBPyRelation:
    """Runs a query; see `Logs.sql`. Each topic whose name occurs in its text becomes a table with
    this name.
    """
    require("polars")
    tables: dict[str, list[_ScannedLog]] = {}

    def add(log: Log) -> None:
        again = partial(_log._reopen, require_arguments(log._open_arguments, "a log"))
        topics = _sql.used_topics(log, text).items()
        # All columns are found before a table is changed, because an error leaves out the log.
        found = [(name, _ScannedLog(log.path, again, topic.name, topic_schema(topic))) for name, topic in topics]
        for name, scanned in found:
            # The names of DuckDB's tables have no case.
            tables.setdefault(name.lower(), []).append(scanned)

    logs.map(add)
    return _sql.run(text, params, {name: _table(name, found) for name, found in tables.items()})


def _table(name: str, logs: list[_ScannedLog]) -> polars.LazyFrame:
    """Returns a topic of all logs, with their paths in the column `log`. As in a lake, a field
    that is named `log` becomes `log_`.
    """
    pl, columns = require("polars"), _common_columns(name, logs)
    free = "log"
    while free in columns:
        free += "_"
    return lazy_frame(logs, {"path of the log": pl.String(), **columns}, "path of the log").rename(
        {"log": free, "path of the log": "log"}, strict=False
    )


def _common_columns(topic: str, logs: list[_ScannedLog]) -> Schema:
    """Returns the columns of a topic in all logs; see `union_schema`."""
    return union_schema(topic, [LogSchema(log.path or "a log in memory", log.schema) for log in logs])
