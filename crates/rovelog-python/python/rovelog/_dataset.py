"""A topic as a dataset of pyarrow: scans decode the columns and the times that they need. Everything here needs pyarrow."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rovelog._times import in_both
from rovelog._topic import Topic
from rovelog._types import Window

FORMAT = ds.IpcFileFormat()
NO_FILE = pa.py_buffer(b"")
MAX_TIME = (1 << 63) - 1


class TopicDataset(ds.FileSystemDataset):
    """A topic as a `pyarrow.dataset.Dataset`.

    `scanner`, which all functions and DuckDB use, reads the topic itself. What reads a dataset without its scanner (a join in
    pyarrow, a union of datasets) gets the whole topic as an Arrow file in memory, which is made when it is read.
    """

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        whole = FORMAT.make_fragment(_Lazy(lambda: _file(topic)))  # type: ignore[arg-type]
        super().__init__([whole], _schema(topic), FORMAT)

    def scanner(  # type: ignore[override]
        self, columns: Any = None, filter: ds.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """Returns a scanner that decodes only the columns which `columns` and `filter` name, and only the times which
        `filter` leaves, as far as that is evident.
        """
        options = self._with_earlier({"columns": columns, "filter": filter, **options})
        columns, filter = options["columns"], options["filter"]
        needed = self._needed(columns, filter)
        fields = [name for name in needed if name not in self._times]
        topic = self._topic.select(*fields) if needed != self.schema.names else self._topic
        start, end = (None, None) if filter is None else self._window(filter)
        return ds.Scanner.from_batches(pa.RecordBatchReader.from_stream(_part(topic, (start, end))), **options)

    def filter(self, expression: ds.Expression) -> TopicDataset:
        """Returns a dataset of the rows for which the expression holds, and for which those of earlier calls hold."""
        filtered: TopicDataset = super().filter(expression)
        filtered._topic = self._topic
        return filtered

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._topic, self._with_earlier({}).get("filter"))

    def _with_earlier(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a scan with the filter of earlier calls of `filter`."""
        found: dict[str, Any] = self._scanner_options(options)  # type: ignore[attr-defined]
        return found

    @property
    def _times(self) -> list[str]:
        """The columns that are times, which are always decoded."""
        return _schema(self._topic.select()).names

    def _needed(self, columns: Any, filter: ds.Expression | None) -> list[str]:
        """The columns that a scan names, at least."""
        names = self.schema.names
        if columns is None:
            return names
        expressions = [*(columns.values() if isinstance(columns, dict) else ()), *([] if filter is None else [filter])]
        # An expression does not tell its columns, but its text has their names. One more than needed costs time only.
        text = " ".join(map(str, expressions))
        if "FieldPath(" in text:
            return names
        named = set() if isinstance(columns, dict) else set(columns)
        return [name for name in names if name in named or name in text]

    def _window(self, filter: ds.Expression) -> Window:
        """The window of `t_ns` outside of which a filter holds for no row; open where that is not evident."""
        first, last = self._topic.first_ns, self._topic.last_ns
        if first is None or last is None:
            return None, None
        low, high = min(first, last), max(first, last) + 1
        if max(-low, high) + abs(self._offset or 0) > MAX_TIME:
            return None, None
        # Rows may be earlier and later in a log that is not in time order.
        start = _last(low, high, lambda at: not self._possible(filter, "less", at))
        end = _last(-high, -low, lambda at: not self._possible(filter, "greater_equal", -at))
        return start, None if end is None else -end

    def _possible(self, filter: ds.Expression, comparison: str, at: int) -> bool:
        """Whether a filter may hold for a row whose time compares like this with `at`."""
        guarantee = _guarantee("t_ns", comparison, pa.scalar(at, pa.int64()))
        if self._offset is not None:
            time = pa.scalar(at + self._offset, pa.timestamp("ns", "UTC"))
            guarantee = guarantee & _guarantee("time", comparison, time)
        # Arrow says which files may have such rows, and reads none of them.
        fragment = FORMAT.make_fragment(NO_FILE, partition_expression=guarantee)  # type: ignore[arg-type]
        return any(True for _ in ds.FileSystemDataset([fragment], self.schema, FORMAT).get_fragments(filter))

    @cached_property
    def _offset(self) -> int | None:
        """`time` minus `t_ns`; None without `time`."""
        if "time" not in self._times:
            return None
        for batch in self._topic.select().batches():
            rows = pa.table(batch).drop_null()
            if len(rows):
                time, t_ns = (rows[name].cast(pa.int64())[0].as_py() for name in ("time", "t_ns"))
                return int(time - t_ns)
        return None


def _schema(topic: Topic) -> pa.Schema:
    return pa.schema(topic)  # type: ignore[arg-type]


def _guarantee(name: str, comparison: str, value: pa.Scalar[Any]) -> ds.Expression:
    column = pc.field(name)
    known: ds.Expression = column < value if comparison == "less" else column >= value
    return known | column.is_null()


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int | None:
    """The last number from `low` to `high` for which a condition holds that holds for all before it; None if for none."""
    if not holds(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def _part(topic: Topic, window: Window) -> Topic:
    """The part of a topic that is in its own window and in another one."""
    return topic._narrower(topic._fields, in_both(topic._window, window), topic._signals)


def _again(topic: Topic, filter: ds.Expression | None) -> TopicDataset:
    dataset = TopicDataset(topic)
    return dataset if filter is None else dataset.filter(filter)


def _file(topic: Topic) -> pa.Buffer:
    """An Arrow file with a topic."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _schema(topic)) as writer:
        for batch in pa.RecordBatchReader.from_stream(topic):
            writer.write_batch(batch)
    return sink.getvalue()


class _Lazy(io.RawIOBase):
    """A file in memory that is made when it is read."""

    def __init__(self, make: Callable[[], pa.Buffer]) -> None:
        self._make = make

    @cached_property
    def _opened(self) -> pa.BufferReader:
        return pa.BufferReader(self._make())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._opened.read(None if size < 0 else size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        return self._opened.tell()
