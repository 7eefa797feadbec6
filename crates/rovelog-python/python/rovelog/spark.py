"""Logs as a data source of Apache Spark 4 and of Sail.

    spark.dataSource.register(rovelog.spark.RovelogSource)
    df = spark.read.format("rovelog").option("topic", "battery_status").load("flights/")

Options:

- `topic`: a topic, or several with commas between; `vehicle_attitude` means all instances. Without it, all topics.
- `fields`: the fields that are decoded, with commas between: `voltage_v,current_a`. Spark does not tell a source
  which columns a query needs.
- `targetBytes`: bytes of logs in a partition, 64 MiB. Small logs are packed, large ones divided.
- `blobs`: `true` adds fields of raw bytes.
- `settle` (streams): seconds since the last change after which a log counts as complete, 60.

Columns: `log` (path), `topic`, `instance`, `seq` (number of the row within the three), `t_ns` (log clock), `time` (UTC),
then the fields, those of all logs. Filters on `log`, `topic`, `t_ns` and `time` choose what is read; Spark hands them to
sources if `spark.sql.python.filterPushdown.enabled` is true. Workers need this package and pyarrow.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
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
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass
class _Selection:
    """What is read of which logs."""

    sources: list[str]
    target_bytes: int
    settle: float
    wanted: dict[str, Any]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> _Selection:
        # Spark ignores the case of options.
        known = {key.lower(): value for key, value in options.items()}
        paths = known.get("paths")
        sources = json.loads(paths) if paths else [known["path"]] if "path" in known else []
        if not sources:
            raise ValueError("no logs: name a file, a folder or a pattern in load()")
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
    # Spark may hand over a path as a URL.
    return source.removeprefix("file://") if source.startswith("file:///") else source.removeprefix("file:")


class _Split(InputPartition):
    """A split of a plan, as JSON."""

    def __init__(self, text: str) -> None:
        super().__init__(text)


class RovelogSource(DataSource):
    """Logs of all formats as a table. See the module."""

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format: `rovelog`."""
        return "rovelog"

    def schema(self) -> Any:
        """Returns the columns of all logs. No row is decoded."""
        selection = _Selection.of(self.options)
        schema = selection.schema(selection.logs())
        # Sail takes the types of Arrow, and no times of a StructType; Spark takes a StructType only.
        return schema if "pysail" in sys.modules else from_arrow_schema(schema)

    def reader(self, schema: StructType) -> RovelogReader:
        """Returns the reader of a query."""
        return RovelogReader(_Selection.of(self.options), schema)

    def streamReader(self, schema: StructType) -> RovelogStream:
        """Returns the reader of a stream: logs that are added to a folder."""
        return RovelogStream(_Selection.of(self.options), schema)


class _Rows:
    """Reads splits on workers."""

    def __init__(self, selection: _Selection, schema: StructType) -> None:
        self.selection = selection
        self.columns = _arrow(schema)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of a split."""
        rows = _core.scale_read(partition.value, self.columns)
        yield from pa.RecordBatchReader.from_stream(rows)


def _arrow(schema: StructType | pa.Schema) -> pa.Schema:
    """The columns that an engine asks for, in the types of Arrow."""
    arrow = schema if isinstance(schema, pa.Schema) else to_arrow_schema(schema, timezone="UTC")
    return pa.schema([(field.name, _type(field.type)) for field in arrow])


def _type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type):
        return pa.struct([(field.name, _type(field.type)) for field in type])
    if pa.types.is_list(type):
        return pa.list_(pa.field("element", _type(type.value_type)))
    return type


class RovelogReader(_Rows, DataSourceReader):
    """Reads the logs of a query."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Takes the filters that choose logs, topics and times; returns the others."""
        for filter in filters:
            if not self._take(filter):
                yield filter

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the splits of the logs that the filters leave."""
        # A query without rows has one partition without logs.
        return self.selection.splits(self.selection.logs()) or [_Split(_nothing())]

    def _take(self, filter: Filter) -> bool:
        wanted = self.selection.wanted
        name = ".".join(getattr(filter, "attribute", ()))
        if name in ("log", "topic") and isinstance(filter, (EqualTo, In)):
            values = [filter.value] if isinstance(filter, EqualTo) else list(filter.value)
            key = "logs" if name == "log" else "topics"
            if key in wanted and name == "topic":
                # A topic of the option may name an instance, which the filter does not.
                return False
            known = wanted.get(key)
            wanted[key] = [value for value in values if known is None or value in known]
            # A topic may be named with its instance here, and then means less than in the filter.
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
            return True
        return False


def _micros(value: Any) -> int | None:
    """A time as microseconds since 1970; None if its zone is not known."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return None
    return (value - EPOCH) // datetime.timedelta(microseconds=1)


def _nothing() -> str:
    return json.dumps({"rovelog_split": 1, "ordinal": 0, "base": "", "parts": []})


class RovelogStream(_Rows, DataSourceStreamReader):
    """Reads logs that are added to a folder, in the order of their times of change."""

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset before all logs."""
        return {"changed_us": -1, "log": ""}

    def latestOffset(self, *limits: Any) -> dict[str, Any]:
        """Returns the offset behind all logs that are complete."""
        until = (time.time() - self.selection.settle) * 1e6
        complete = [_place(log) for log in self.selection.logs() if log[2] <= until]
        changed_us, log = max(complete, default=(-1, ""))
        return {"changed_us": changed_us, "log": log}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the splits of the logs between two offsets."""
        after, until = ((offset["changed_us"], offset["log"]) for offset in (start, end))
        logs = [log for log in self.selection.logs() if after < _place(log) <= until]
        return self.selection.splits(logs) if logs else [_Split(_nothing())]


def _place(log: LogFile) -> tuple[int, str]:
    return log[2], log[0]
