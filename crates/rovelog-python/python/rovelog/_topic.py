"""Topics of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rovelog import _core, _html, _times
from rovelog._errors import FieldNotFound, TopicNotFound
from rovelog._lazyframe import topic_frame
from rovelog._metadata import Field, Info, info_from
from rovelog._optional import require
from rovelog._pickling import OpenArguments, require_arguments
from rovelog._suggest import did_you_mean, field_not_found, short_name, similar_names
from rovelog._table import Columns, Table
from rovelog._times import TimeLike
from rovelog._types import FieldFacts, Part, TopicFacts, Window

if TYPE_CHECKING:
    import polars
    import pyarrow.dataset
    from numpy.typing import NDArray

ARRAY_LENGTH = re.compile(r"\[(\d+)\]$")
"""Number of elements at the end of a type such as `float32[4]`."""


class Topic(Columns):
    """A topic of a log: its fields, and its records as columns.

    Records are decoded when `table`, `batches`, `numpy` or `to_*` is called, or when a library
    reads the topic as Arrow data. `select` and `between` return narrower topics.
    """

    def __init__(
        self,
        reader: _core.Reader,
        info: Info,
        index: int,
        facts: TopicFacts,
        fields: list[str] | None = None,
        window: Window = (None, None),
        open_arguments: OpenArguments | None = None,
        signals: Mapping[str, str] | None = None,
    ) -> None:
        self._reader = reader
        self._info = info
        self._index = index
        self._facts = facts
        self._fields = fields
        self._window = window
        self._open_arguments = open_arguments
        """The arguments that open the log again; None if it was read from a file object."""
        self._signals = dict(signals or {})
        """Name of a computed column -> expression, such as `P` -> `V1*I1`."""

    @property
    def name(self) -> str:
        """Unique name of the topic: `vehicle_attitude/0`."""
        return self._facts["name"]

    @property
    def type(self) -> str:
        """Name of the record type: `vehicle_attitude`."""
        return self._facts["type"]

    @property
    def count(self) -> int:
        """Number of records of the whole topic, regardless of `between`."""
        return self._facts["count"]

    @property
    def nbytes(self) -> int | None:
        """Size in bytes of all records of the topic in the file. None if the index of the log does
        not contain the size.
        """
        return self._facts["bytes"]

    @property
    def rate_hz(self) -> float | None:
        """Mean rate of the whole topic in Hz. None if the topic has fewer than two records."""
        return self._facts["rate_hz"]

    @property
    def first_ns(self) -> int | None:
        """Time of the first record, ns on the log clock."""
        return self._facts["first_ns"]

    @property
    def last_ns(self) -> int | None:
        """Time of the last record, ns on the log clock."""
        return self._facts["last_ns"]

    @cached_property
    def fields(self) -> list[Field]:
        """Fields with types and units. Empty if the topic cannot be decoded."""
        return _fields(self._reader.fields(self._index))

    @property
    def derived(self) -> list[str]:
        """Names of derived fields for `select`: `q.roll` for a quaternion `q`, `I1` for a current
        of a power log.
        """
        return self._reader.derived(self._index)

    @property
    def definition(self) -> str | None:
        """Definition of the type as stored in the log. On the command line: `rovelog schema FILE
        TOPIC`.
        """
        return self._reader.definition(self._index)

    def select(self, *fields: str) -> Topic:
        """Returns the topic with only these fields. Other fields are not decoded.

        Each argument is one of these:

        - a field or a part of it: `q`, `q[0]`, `pos.x`
        - a pattern: `gyro*`, `q[0..2]`, `{x,y}`
        - a derived field: `q.roll`; see `derived`
        - an expression: `norm(gyro_rad)`, `P=V1*I1`; see `Log.signals`

        Derived fields and expressions become float64 columns after all other columns. On the
        command line: `rovelog cat FILE --fields`.

        Raises FieldNotFound. Its `suggestions` has the most similar names.
        """
        plain: dict[str, None] = {}
        signals: dict[str, str] = {}
        for field in fields:
            paths, computed = _resolve(self, field)
            plain.update(dict.fromkeys(paths))
            signals.update(computed)
        return self._narrower(list(plain), self._window, signals)

    def between(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Topic:
        """Returns the topic from `start` (inclusive) to `end` (exclusive).

        A time has one of these forms:

        - an integer: ns on the log clock
        - `"+10s"` or a timedelta: after the start of the data
        - `"-30s"`: before the end of the data
        - `"112.5s"`: on the log clock
        - an RFC 3339 string, or a datetime with a time zone

        Raises ValueError for an invalid time, and NoUtcError for a UTC time if the log has no UTC.
        """
        return self._narrower(self._fields, _times.window(start, end, self._info), self._signals)

    def _narrower(self, fields: list[str] | None, window: Window, signals: Mapping[str, str]) -> Topic:
        return Topic(self._reader, self._info, self._index, self._facts, fields, window, self._open_arguments, signals)

    def _within(self, window: Window) -> Topic:
        """Returns the records of the topic that are also in `window`."""
        return self._narrower(self._fields, _times.intersect(self._window, window), self._signals)

    @property
    def _part(self) -> Part:
        return (self._fields, self._window, list(self._signals.values()))

    def _table(self) -> _core.Table:
        return self._reader.table(self._index, self._part)

    def _path(self) -> str | None:
        return self._reader.path

    def table(self) -> Table:
        """Decodes the columns. Frames and arrays made from the table share its memory."""
        return Table(self._table(), self)

    def batches(self) -> Iterator[Table]:
        """Returns the columns in batches of at most 65536 rows and about 16 MB."""
        return map(Table, self._reader.batches(self._index, self._part))

    def lazy(self) -> polars.LazyFrame:
        """Returns the topic as a `polars.LazyFrame`. A query decodes only the columns and times
        that it needs.

        DuckDB can query the frame, too, and passes the columns and conditions of the query on:
        `duckdb.sql("SELECT max(x) FROM frame")`. For many logs, see `scan`.
        """
        return topic_frame(self)

    def dataset(self) -> pyarrow.dataset.Dataset:
        """Returns the topic as a `pyarrow.dataset.Dataset`. A scan decodes only the columns and
        times that it needs.

        Pyarrow, polars (`scan_pyarrow_dataset`) and DuckDB can query it and pass the columns and
        conditions of the query on: `duckdb.sql("SELECT max(x) FROM dataset WHERE t_ns > 5")`. The
        dataset can be pickled.
        """
        require("pyarrow.dataset")
        # `_dataset` derives a class from one of pyarrow, so it cannot be imported without pyarrow.
        from rovelog._dataset import TopicDataset

        return TopicDataset(self)

    def messages(self) -> _core.Messages:
        """Returns the records in time order with all fields; see `Log.messages`."""
        return self._reader.messages([self.name], self._window)

    def __arrow_c_schema__(self) -> object:
        """Returns the schema as a capsule."""
        return self._reader.schema(self._index, self._part)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a new stream that decodes the columns while it is read.

        If a schema with some of the columns is requested, only these columns are decoded, for
        example by `pyarrow.RecordBatchReader.from_stream(topic, schema)`. Types are converted if no
        value changes.
        """
        return self._reader.stream(self._index, self._part, requested_schema)

    def numpy(self, fields: str | Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Returns name -> array, with one entry per record along the first axis.

        With `fields`, only these are decoded. `t_ns` is int64, ns on the log clock. For the types
        of the arrays, see `Table.numpy`. Raises FieldNotFound.
        """
        if fields is None:
            return super().numpy()
        return self.select(*([fields] if isinstance(fields, str) else fields)).numpy()

    def __len__(self) -> int:
        """Number of records in the time window that `between` selected."""
        if self._window == (None, None):
            return self.count
        # A table without fields still has the time columns, and therefore one row per record.
        return len(self._reader.table(self._index, ([], self._window, [])))

    def __bool__(self) -> bool:
        """Always True. Without this method, a topic without records would be false."""
        return True

    def __iter__(self) -> Iterator[_core.Message]:
        """Returns the records in time order, with all fields."""
        return self.messages()

    def __getitem__(self, field: str) -> Any:
        """Returns a field as an array: `q`, `q[0]`, `pos.x`, `q.roll`, `norm(q)`.

        For a pattern and for a field with nested fields, returns a dict of arrays. See `select` and
        `numpy`. Raises FieldNotFound.
        """
        part = self.select(field)
        arrays = part.numpy()
        if field in arrays:
            return arrays[field]
        if len(part._signals) == 1 and not part._fields:
            return arrays[next(iter(part._signals))]
        # The fields nested in `pos` are `pos.x` and `pos.y`, and their keys are `x` and `y`.
        inner = {name.removeprefix(f"{field}."): values for name, values in arrays.items() if name.startswith(f"{field}.")}
        return inner or {name: values for name, values in arrays.items() if name not in ("t_ns", "time")}

    def _ipython_key_completions_(self) -> list[str]:
        return [*(field.name for field in self.fields), *self.derived]

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = require_arguments(self._open_arguments, "a topic")
        return _reopen, (arguments, self._index, self._fields, self._window, self._signals)

    def __repr__(self) -> str:
        rate = "" if self.rate_hz is None else f", {self.rate_hz:.1f} Hz"
        return f"<rovelog.Topic {self.name}: {self.count} records{rate}>"

    def _repr_html_(self) -> str:
        return _html.topic(self._facts, self.fields, lambda field: self.numpy([field])[field])


def _fields(rows: list[FieldFacts]) -> list[Field]:
    return [
        Field(name, type, source, unit, None if inner is None else _fields(inner))
        for name, type, source, unit, inner in rows
    ]


def complete_reader(reader: _core.Reader, info: Info) -> tuple[_core.Reader, Info]:
    """Returns a reader of the complete log and its summary.

    A remote log is opened by its start, end and index. These parts may not name all topics, so the
    whole log is read before the topics are listed.
    """
    if not info.at_least:
        return reader, info
    reader = reader.whole()
    return reader, info_from(reader.info())


def _reopen(
    arguments: OpenArguments, index: int, fields: list[str] | None, window: Window, signals: Mapping[str, str]
) -> Topic:
    """Opens the log and returns the topic from the values in its pickle."""
    # The index is an index into all topics of the file. So the topics that `open` selected are not
    # used here.
    arguments = arguments._replace(topics=None)
    reader = arguments.reader()
    reader, info = complete_reader(reader, info_from(reader.info()))
    return Topic(reader, info, index, reader.topics()[index], fields, window, arguments, signals)


def _resolve(topic: Topic, text: str) -> tuple[list[str], dict[str, str]]:
    """Returns the paths of the fields that an argument of `select` names, and its computed columns
    (name -> expression).
    """
    if text in topic._signals:
        return [], {text: topic._signals[text]}
    error = _path_error(topic, text)
    if error is None:
        return [text], {}
    found = topic._reader.resolve(topic._index, text)
    if found is None:
        raise error
    return found[0], dict(found[1])


def _path_error(topic: Topic, path: str) -> FieldNotFound | None:
    """Returns None if `path` is the path of a field, such as `pos.x` or `q[0]`. Otherwise returns
    the error to raise.
    """
    fields: list[Field] | None = topic.fields
    for piece in path.split("."):
        name, *elements = piece.split("[")
        inner = {field.name: field for field in fields or []}
        if name not in inner:
            similar = [path.replace(name, other, 1) for other in similar_names(name, inner)]
            return field_not_found(topic.name, path, similar, topic._reader.path)
        length = ARRAY_LENGTH.search(inner[name].type)
        if elements and not (length and len(elements) == 1 and _is_index(elements[0], int(length[1]))):
            has = f"{length[1]} elements" if length else "no elements that can be selected"
            return FieldNotFound(
                f"topic {topic.name} has no field {path}",
                suggestions=[name],
                path=topic._reader.path,
                next=f"{name} has {has}" + (", counted from 0" if length else ""),
            )
        fields = inner[name].fields
    return None


def _is_index(text: str, length: int) -> bool:
    """Returns True if `text` is an index below `length` and a closing bracket: `2]`."""
    number = text.removesuffix("]")
    return number != text and number.isascii() and number.isdigit() and int(number) < length


def topic_not_found(
    name: str | tuple[str, int], names: Iterable[str], where: str = "in this log", path: str | None = None
) -> TopicNotFound:
    """Returns the error for an unknown topic. `names` are the names of the existing topics."""
    wanted = full_name(name)
    found = similar_names(wanted, names)
    next = did_you_mean(found, "log.topics has all of them")
    return TopicNotFound(f"there is no topic {wanted} {where}", suggestions=found, path=path, next=next)


def full_name(name: object) -> str:
    """Returns the name of a topic from a name, or from a name and an instance: `("t", 1)` ->
    `t/1`.
    """
    if isinstance(name, str):
        return name
    if isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str) and type(name[1]) is int:
        return f"{name[0]}/{name[1]}"
    raise TypeError(f"a topic must be a name, or a name and an instance number, not {name!r}")


class Topics(Mapping[str, Topic]):
    """Topics by name. The suffix `/0` may be omitted. Raises TopicNotFound for unknown topics."""

    def __init__(self, topics: Iterable[Topic], path: str | None = None) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self._path = path

    def __getitem__(self, name: str | tuple[str, int]) -> Topic:
        found = self._find(name)
        if found is None:
            raise topic_not_found(name, self._topics, path=self._path)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, (str, tuple)) and self._find(name) is not None

    def _find(self, name: object) -> Topic | None:
        wanted = full_name(name)
        # Names that start with a slash are ROS names. `/imu/0` and `/imu` are different topics.
        first = wanted if wanted.startswith("/") else f"{wanted}/0"
        return self._topics.get(wanted) or self._topics.get(first)

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def _ipython_key_completions_(self) -> list[str]:
        return [short_name(name) for name in self._topics]

    def __repr__(self) -> str:
        return "\n".join(f"{topic.name}  {topic.count}" for topic in self._topics.values())
