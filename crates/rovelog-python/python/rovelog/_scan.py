"""Topics of many logs as one polars LazyFrame."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rovelog import _source
from rovelog._errors import RovelogError
from rovelog._lazyframe import batches, lazy_frame, topic_schema
from rovelog._log import Log, warn_of_loss
from rovelog._optional import require
from rovelog._schema import LogSchema, Schema, union_schema
from rovelog._source import SCHEME, Source, find_logs
from rovelog._topic import topic_not_found
from rovelog._types import Window

if TYPE_CHECKING:
    import polars


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
        with Log(_source.open_reader(source)) as log:
            warn_of_loss(log)
            if topic in log:
                found.append(_ScannedLog(source, topic, topic_schema(log[topic])))
            else:
                other_topics.update(dict.fromkeys(log.topics))
    if not found:
        path = sources[0] if len(sources) == 1 and isinstance(sources[0], (str, os.PathLike)) else None
        where = "in this log" if len(sources) == 1 else f"in any of the {len(sources)} logs"
        raise topic_not_found(topic, other_topics, where, None if path is None else os.fspath(path))
    name = topic if isinstance(topic, str) else f"{topic[0]}/{topic[1]}"
    columns = union_schema(name, [LogSchema(scanned.label, scanned.schema) for scanned in found])
    if path_column in columns:
        raise ValueError(f"the topic already has a column {path_column}, so give another path_column")
    schema = columns if path_column is None else {path_column: pl.String(), **columns}
    return lazy_frame(found, schema, path_column)


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

    source: Source
    topic: str | tuple[str, int]
    schema: Schema
    """Columns of the topic when `scan` opened the log."""

    @property
    def label(self) -> str:
        """Name of the log, as shown in messages."""
        return self.path or "a log in memory"

    @property
    def path(self) -> str | None:
        """Path of the log; None for a log in memory."""
        return str(self.source) if isinstance(self.source, (str, os.PathLike)) else None

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        """Opens the log and returns its rows; see `FrameSource`."""
        import polars as pl

        with Log(_source.open_reader(self.source)) as log:
            topic = log[self.topic]
            if topic_schema(topic) != self.schema:
                changed = f"the columns of topic {topic.name} have changed since the log was scanned"
                raise RovelogError(changed, path=self.path, next="scan it again")
            for frame in batches(topic, limits, wanted, path_column):
                if path_column in wanted:
                    frame = frame.with_columns(pl.lit(self.path, pl.String).alias(path_column))
                yield frame.select(list(wanted))
