"""Logs as a data source of Apache Spark 4 and of Sail.

    spark.dataSource.register(rovelog.spark.RovelogSource)
    df = spark.read.format("rovelog").option("topic", "battery_status").load("flights/")

Options:

- `topic`: one topic, or several separated by commas. `vehicle_attitude` selects all instances. The
  default is all topics.
- `fields`: the fields to decode, separated by commas: `voltage_v,current_a`. The default is all
  fields, because Spark does not tell a source which columns a query needs.
- `targetBytes`: target size of a partition in bytes of log files, by default 64 MiB. Small logs
  share a partition, and large logs are divided.
- `blobs`: `true` adds fields of raw bytes.
- `settle` (streams): number of seconds without a change after which a log counts as complete, by
  default 60

Columns:

- `log`: path of the log
- `topic`, `instance`: name and instance of the topic
- `seq`: number of the row within this instance and log
- `t_ns`: time in ns on the log clock
- `time`: UTC
- the fields of all logs

Filters on `log`, `topic`, `t_ns` and `time` reduce the amount of data that is read. Spark passes
filters to the source only if `spark.sql.python.filterPushdown.enabled` is true. Workers need this
package and pyarrow.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rovelog import _core

if TYPE_CHECKING:
    from rovelog._types import LogFile

TARGET_BYTES = 64 << 20
"""Default of the option `targetBytes`."""
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class _Selection:
    """The logs to read, and the part of them to decode."""

    sources: list[str]
    """Files, folders and patterns."""
    target_bytes: int
    settle: float
    """Number of seconds without a change after which a log counts as complete."""
    wanted: dict[str, Any]
    """Selection for the compiled part: topics, fields, and limits of the time."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Selection:
        # Spark treats the names of options as case-insensitive.
        known = {key.lower(): value for key, value in options.items()}
        paths = known.get("paths")
        sources = json.loads(paths) if paths else [known["path"]] if "path" in known else []
        if not sources:
            raise ValueError("no logs were given; name a file, a folder or a pattern in load()")
        wanted: dict[str, Any] = {"blobs": known.get("blobs", "").lower() == "true"}
        for option, key in (("topic", "topics"), ("fields", "fields")):
            if option in known:
                wanted[key] = [name.strip() for name in known[option].split(",")]
        size, settle = known.get("targetbytes"), known.get("settle")
        return cls(sources, int(size) if size else TARGET_BYTES, float(settle) if settle else 60.0, wanted)

    def logs(self) -> list[LogFile]:
        return _core.scale_find([_local(source) for source in self.sources])

    def schema(self, logs: Sequence[LogFile]) -> pa.Schema:
        return pa.schema(_core.scale_schema(logs, json.dumps(self.wanted)))  # type: ignore[arg-type]

    def splits(self, logs: Sequence[LogFile]) -> list[_Split]:
        texts = _core.scale_divide(logs, json.dumps(self.wanted), self.target_bytes)
        return [_Split(text) for text in texts]


def _local(source: str) -> str:
    """Returns a path without the scheme `file:` that Spark may add."""
    return source.removeprefix("file://") if source.startswith("file:///") else source.removeprefix("file:")


class _Split(InputPartition):
    """A partition: a group of logs, or a part of a log, as JSON."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


class RovelogSource(DataSource):
    """Data source for logs of all formats. The options are described at the top of the module."""

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format: `rovelog`."""
        return "rovelog"

    def schema(self) -> Any:
        """Returns the columns of all logs. No row is decoded."""
        selection = _Selection.of(self.options)
        schema = selection.schema(selection.logs())
        # Spark accepts only a StructType. Sail accepts an Arrow schema, and rejects a StructType
        # with times.
        return schema if "pysail" in sys.modules else from_arrow_schema(schema)

    def reader(self, schema: StructType) -> RovelogReader:
        """Returns the reader for a query."""
        return RovelogReader(_Selection.of(self.options), schema)

    def streamReader(self, schema: StructType) -> RovelogStream:
        """Returns the reader for a stream of logs that are added to a folder."""
        return RovelogStream(_Selection.of(self.options), schema)


class _Rows:
    """Base class of the readers. It reads partitions on workers."""

    def __init__(self, selection: _Selection, schema: StructType) -> None:
        self.selection = selection
        self.columns = _arrow(schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        rows = _core.scale_read(partition.value, self.columns)
        yield from pa.RecordBatchReader.from_stream(rows)


def _arrow(schema: StructType | pa.Schema) -> pa.Schema:
    """Returns the requested columns as an Arrow schema. Spark passes a StructType, Sail an Arrow
    schema.
    """
    arrow = schema if isinstance(schema, pa.Schema) else to_arrow_schema(schema, timezone="UTC")
    return pa.schema([(field.name, _type(field.type)) for field in arrow])


def _type(type: pa.DataType) -> pa.DataType:
    """Returns the type with the name `element` for list items. The compiled part uses this name,
    and Arrow compares it.
    """
    if pa.types.is_struct(type):
        return pa.struct([(field.name, _type(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(pa.field("element", _type(type.value_type)))
    return type


class RovelogReader(_Rows, DataSourceReader):
    """Reads the logs of a query."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Applies filters on logs, topics and times to the selection. Yields the filters that the
        engine must still apply.
        """
        for filter in filters:
            if not self._apply(filter):
                yield filter

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the partitions of the logs that match the filters."""
        # Spark requires at least one partition. So a query without logs has an empty partition.
        return self.selection.splits(self.selection.logs()) or [_Split(_empty_split())]

    def _apply(self, filter: Filter) -> bool:
        """Narrows the selection by a filter. Returns True if the engine need not apply the filter
        again.
        """
        wanted = self.selection.wanted
        name = ".".join(getattr(filter, "attribute", ()))
        if name in ("log", "topic") and isinstance(filter, (EqualTo, In)):
            values = [filter.value] if isinstance(filter, EqualTo) else list(filter.value)
            key = "logs" if name == "log" else "topics"
            if key in wanted and name == "topic":
                # The option may be `t/1`, while the column `topic` has only the name `t`. The names
                # cannot be compared, so the engine filters the rows.
                return False
            known = wanted.get(key)
            wanted[key] = [value for value in values if known is None or value in known]
            # The selection also accepts `t/1`, which never matches in the column `topic`. The
            # engine must therefore apply filters on topics again.
            return name == "log"
        if name in ("t_ns", "time") and isinstance(
            filter, (EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
        ):
            value = filter.value if name == "t_ns" else _micros(filter.value)
            if value is None:
                return False
            unit = "ns" if name == "t_ns" else "us"
            if isinstance(filter, (EqualTo, GreaterThan, GreaterThanOrEqual)):
                start = value + isinstance(filter, GreaterThan)
                wanted[f"start_{unit}"] = max(start, wanted.get(f"start_{unit}", start))
            if isinstance(filter, (EqualTo, LessThan, LessThanOrEqual)):
                end = value + (not isinstance(filter, LessThan))
                wanted[f"end_{unit}"] = min(end, wanted.get(f"end_{unit}", end))
            # If the clock was set back during a log, its rows are not ordered by UTC. The rows from
            # the first match to the last one then include rows that do not match, so the engine
            # must apply filters on `time` again.
            return name == "t_ns"
        return False


def _micros(value: Any) -> int | None:
    """Returns a time in microseconds since 1970. Returns None if the time has no time zone."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return None
    return (value - EPOCH) // datetime.timedelta(microseconds=1)


def _empty_split() -> str:
    """Returns a split without logs."""
    return json.dumps({"rovelog_split": 1, "ordinal": 0, "base": "", "parts": []})


Position = tuple[int, str]
"""Position of a log in a stream: time at which it arrived, in microseconds since 1970, then path."""


class RovelogStream(_Rows, DataSourceStreamReader):
    """Reads logs that are added to a folder, in the order in which they arrive."""

    def __init__(self, selection: _Selection, schema: StructType) -> None:
        super().__init__(selection, schema)
        self.latest: Position = (-1, "")

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset before the first log."""
        return _offset((-1, ""))

    def latestOffset(self, start: dict[str, Any] | None = None, *limits: Any) -> dict[str, Any]:
        """Returns the offset after the last complete log. It is never less than `start`, the result
        of the previous call, which Spark passes since version 4.2.
        """
        until = (time.time() - self.selection.settle) * 1e6
        known = [self.latest] if start is None else [self.latest, _position(start)]
        complete = [at for at in map(_arrival, self.selection.logs()) if at[0] <= until]
        # If the last logs were deleted, a smaller offset would make the stream repeat logs.
        self.latest = max(known + complete)
        return _offset(self.latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the partitions of the logs after `start`, up to and including `end`."""
        after, until = _position(start), _position(end)
        logs = [log for log in self.selection.logs() if after < _arrival(log) <= until]
        return self.selection.splits(logs) if logs else [_Split(_empty_split())]


def _offset(position: Position) -> dict[str, Any]:
    changed_us, log = position
    return {"changed_us": changed_us, "log": log}


def _position(offset: dict[str, Any]) -> Position:
    return offset["changed_us"], offset["log"]


def _arrival(log: LogFile) -> Position:
    """Returns the position of a log in the stream.

    A copied or unpacked log can keep an old modification time. So the time of the last change of
    the file's metadata counts too, which the system sets when the file is created or moved.
    """
    path, _, changed_us = log
    # A log in an archive has the times of the archive. A log at an address is not a local file, and
    # has only a modification time.
    places = [pathlib.Path(path), *pathlib.Path(path).parents]
    file = next((place for place in places if place.is_file()), None)
    return (changed_us if file is None else max(changed_us, file.stat().st_ctime_ns // 1000)), path
