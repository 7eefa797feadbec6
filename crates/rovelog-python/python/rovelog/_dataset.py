"""Topics as pyarrow datasets. A scan decodes only the columns and the times that the query needs.

Pyarrow passes the filter of a scan as an expression that cannot be inspected from Python. The time
window is found by asking Arrow instead whether a fragment with given times could match the filter:
Arrow skips such a fragment if its guarantee (for example `t_ns < 500`) contradicts the filter. A
binary search over the times of the topic finds the largest time below which no row can match, and
likewise for the end. For times from 0 to 1000 and the filter `t_ns >= 300`, the guarantees
`t_ns < 501`, `t_ns < 250`, `t_ns < 375`, ... are tested until the start is known to be 300.

This module is imported only if pyarrow is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from rovelog._metadata import Info
from rovelog._types import TopicColumns, Window

FORMAT = ds.IpcFileFormat()
NO_FILE = pa.py_buffer(b"")
"""Content of fragments that are only tested against filters and never read."""
MAX_TIME = (1 << 63) - 1
"""The largest time that fits into 64 bits."""


class DatasetTopic(TopicColumns, Protocol):
    """The part of `Topic` that datasets need."""

    _info: Info


class TopicDataset(ds.FileSystemDataset):
    """A topic as a `pyarrow.dataset.Dataset`.

    All methods of pyarrow datasets and DuckDB call `scanner`, which reads from the log. Joins and
    unions of pyarrow datasets bypass `scanner` and read the fragment. The fragment is an Arrow file
    in memory with the whole topic, which is created on the first access.
    """

    def __init__(self, topic: DatasetTopic) -> None:
        self._topic = topic
        memory = fs.PyFileSystem(_Memory(cache(lambda: _arrow_file(topic))))  # type: ignore[abstract]
        whole = FORMAT.make_fragment("topic.arrow", memory)
        super().__init__([whole], _schema(topic), FORMAT)

    def scanner(  # type: ignore[override]
        self, columns: Any = None, filter: ds.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """Returns a scanner that decodes only the columns that `columns` and `filter` use.

        Times that the filter excludes are not decoded either, if the filter compares `t_ns`. A
        comparison of `time` has the same effect if the offset from UTC is constant.
        """
        options = self._with_earlier({"columns": columns, "filter": filter, **options})
        columns, filter = options["columns"], options["filter"]
        needed = self._needed(columns, filter)
        fields = [name for name in needed if name not in self._times]
        topic = self._topic.select(*fields) if needed != self.schema.names else self._topic
        start, end = (None, None) if filter is None else self._window(filter)
        batches = _batches(_limited(topic, (start, end)))
        return ds.Scanner.from_batches(batches, schema=_schema(topic), **options)

    def filter(self, expression: ds.Expression) -> TopicDataset:
        """Returns a dataset of the rows that match `expression` and the filters of earlier
        calls.
        """
        filtered: TopicDataset = super().filter(expression)
        filtered._topic = self._topic
        return filtered

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._topic, self._with_earlier({}).get("filter"))

    def _with_earlier(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a scan, with the filters of earlier calls of `filter` added."""
        found: dict[str, Any] = self._scanner_options(options)  # type: ignore[attr-defined]
        return found

    @property
    def _times(self) -> list[str]:
        """Names of the time columns, which are always decoded."""
        return _schema(self._topic.select()).names

    def _needed(self, columns: Any, filter: ds.Expression | None) -> list[str]:
        """Returns the columns that a scan uses. The result may contain additional columns."""
        names = self.schema.names
        if columns is None:
            return names
        expressions = [*(columns.values() if isinstance(columns, dict) else ()), *([] if filter is None else [filter])]
        # An expression has no list of its columns, but its text contains their names. A name that
        # is part of another name or of a string adds a column, which only costs time.
        text = " ".join(map(str, expressions))
        # The text contains indices instead of names if columns are selected by index.
        if "FieldPath(" in text:
            return names
        named = set() if isinstance(columns, dict) else set(columns)
        return [name for name in names if name in named or name in text]

    def _window(self, filter: ds.Expression) -> Window:
        """Returns a window of `t_ns` that contains every row that may match the filter. The
        description of the module explains the search.
        """
        first, last = self._topic.first_ns, self._topic.last_ns
        if first is None or last is None:
            return None, None
        low, high = min(first, last), max(first, last) + 1
        # The guarantees below add the offset of UTC to the times, and the sums must fit into 64
        # bits.
        if max(-low, high) + abs(self._offset or 0) > MAX_TIME:
            return None, None
        # `low` and `high` are only starting points: if the times of a log are not in order, rows
        # can be earlier or later. If no row before `low` can match, the search moves the start to
        # the right; otherwise the window stays open.
        start = _last(low, high, lambda at: not self._may_match(filter, "less", at))
        end = _last(-high, -low, lambda at: not self._may_match(filter, "greater_equal", -at))
        return start, None if end is None else -end

    def _may_match(self, filter: ds.Expression, comparison: str, at: int) -> bool:
        """Returns True if the filter may match rows with times less than `at`, or at least `at`."""
        guarantee = _guarantee("t_ns", comparison, pa.scalar(at, pa.int64()))
        if self._offset is not None:
            time = pa.scalar(at + self._offset, pa.timestamp("ns", "UTC"))
            guarantee = guarantee & _guarantee("time", comparison, time)
        # `get_fragments` compares the guarantee with the filter and does not read the fragment.
        fragment = FORMAT.make_fragment(NO_FILE, partition_expression=guarantee)  # type: ignore[arg-type]
        return any(True for _ in ds.FileSystemDataset([fragment], self.schema, FORMAT).get_fragments(filter))

    @cached_property
    def _offset(self) -> int | None:
        """Difference between `time` and `t_ns` in ns. None if the log has no UTC, or if the
        difference changes during the log.
        """
        if "time" not in self._times or self._topic._info.utc_knots:
            return None
        for batch in self._topic.select().batches():
            rows = pa.table(batch).drop_null()
            if len(rows):
                time, t_ns = (rows[name].cast(pa.int64())[0].as_py() for name in ("time", "t_ns"))
                return int(time - t_ns)
        return None


def _schema(topic: TopicColumns) -> pa.Schema:
    return pa.schema(topic)  # type: ignore[arg-type]


def _guarantee(name: str, comparison: str, value: pa.Scalar[Any]) -> ds.Expression:
    """Returns the expression `name < value` or `name >= value`. It is also true for rows without a
    time.
    """
    column = pc.field(name)
    known: ds.Expression = column < value if comparison == "less" else column >= value
    return known | column.is_null()


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """Returns the largest number from `low` to `high` for which `holds` is true. Returns None if
    there is no such number.

    `holds` must be true up to some number and false after it.
    """
    if not holds(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _limited(topic: TopicColumns, window: Window) -> TopicColumns:
    """Returns the records of the topic in `window`. The tests replace this function to record the
    calls.
    """
    return topic._within(window)


def _batches(topic: TopicColumns) -> Iterator[pa.RecordBatch]:
    """Returns the batches of a topic.

    An Arrow stream of the topic would end with an error if the log has lost data that was not known
    before. Here, a warning reports it, and the query returns all other rows.
    """
    for table in topic.batches():
        yield from pa.table(table).to_batches()


def _restore(topic: DatasetTopic, filter: ds.Expression | None) -> TopicDataset:
    """Creates a dataset from the values in its pickle."""
    dataset = TopicDataset(topic)
    return dataset if filter is None else dataset.filter(filter)


def _arrow_file(topic: TopicColumns) -> pa.Buffer:
    """Returns a file in the Arrow format that contains the whole topic."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _schema(topic)) as writer:
        for batch in _batches(topic):
            writer.write_batch(batch)
    return sink.getvalue()


class _Memory(fs.FSSpecHandler):
    """A file system with one file in memory, which is created when it is opened.

    Each reader gets a file object of its own, because Arrow reads from several threads.
    """

    fs: Any
    """Function that creates the content of the file. The base class compares this attribute to find
    out whether two file systems are equal."""

    def __init__(self, make: Callable[[], pa.Buffer]) -> None:
        self.fs = make

    def get_type_name(self) -> str:
        return "memory"

    def open_input_file(self, path: str) -> pa.BufferReader:
        return pa.BufferReader(self.fs())
