"""Topics of a log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rovelog import _again, _core, _html, _times
from rovelog._again import Opening
from rovelog._errors import FieldNotFound, TopicNotFound
from rovelog._facts import Field, Info
from rovelog._near import hint, near, no_field, short
from rovelog._need import need
from rovelog._table import Columns, Table
from rovelog._times import Moment
from rovelog._types import FieldFacts, Part, TopicFacts, Window

if TYPE_CHECKING:
    import polars
    import pyarrow.dataset
    from numpy.typing import NDArray

LENGTH = re.compile(r"\[(\d+)\]$")
"""How many elements a type has: `float32[4]`."""


class Topic(Columns):
    """A topic of a log: its fields, and its records as columns.

    Nothing is decoded before `table`, `batches`, `numpy` or `to_*` is called or a library reads it
    as Arrow data. `select` and `between` return narrower topics.
    """

    def __init__(
        self,
        reader: _core.Reader,
        info: Info,
        index: int,
        facts: TopicFacts,
        fields: list[str] | None = None,
        window: Window = (None, None),
        opening: Opening | None = None,
        signals: Mapping[str, str] | None = None,
    ) -> None:
        self._reader = reader
        self._info = info
        self._index = index
        self._facts = facts
        self._fields = fields
        self._window = window
        self._opening = opening
        self._signals = dict(signals or {})
        """Column -> what it is computed of."""

    @property
    def name(self) -> str:
        """Name, unique in the log: `vehicle_attitude/0`."""
        return self._facts["name"]

    @property
    def type(self) -> str:
        """Name of the type of its records: `vehicle_attitude`."""
        return self._facts["type"]

    @property
    def count(self) -> int:
        """Number of records of the whole topic."""
        return self._facts["count"]

    @property
    def nbytes(self) -> int | None:
        """Size of the records of the whole topic in the file; None if the index of the log does not tell it."""
        return self._facts["bytes"]

    @property
    def rate_hz(self) -> float | None:
        """Mean rate of the whole topic in Hz; None below two records."""
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
        """Fields with types and units; empty if the topic cannot be decoded."""
        return _fields(self._reader.fields(self._index))

    @property
    def derived(self) -> list[str]:
        """Names of what is computed of its fields, for `select`: `q.roll` of quaternions, `I1` of power logs."""
        return self._reader.derived(self._index)

    @property
    def definition(self) -> str | None:
        """Definition of the type as stored in the log. On the command line: `rovelog schema FILE
        TOPIC`.
        """
        return self._reader.definition(self._index)

    def select(self, *fields: str) -> Topic:
        """Returns the topic with only these fields; others are not decoded.

        A field is `q`, `q[0]`, `pos.x`, a pattern (`gyro*`, `q[0..2]`, `{x,y}`), or what is computed of fields, whose
        columns come last, as float64: a derived field (`q.roll`, see `derived`) or an expression (`norm(gyro_rad)`,
        `P=V1*I1`; see `Log.signals`). These are the names that `rovelog cat FILE --fields` takes.

        Raises FieldNotFound; its `suggestions` has the most similar names.
        """
        plain: dict[str, None] = {}
        signals: dict[str, str] = {}
        for field in fields:
            names, further = _found(self, field)
            plain.update(dict.fromkeys(names))
            signals.update(further)
        return self._narrower(list(plain), self._window, signals)

    def between(self, start: Moment | None = None, end: Moment | None = None) -> Topic:
        """Returns the topic from `start` (inclusive) to `end` (exclusive).

        Times are ints (ns on the log clock), `"+10s"` after the start of the data, `"-30s"` before
        its end, `"112.5s"` on the log clock, RFC 3339 strings or datetimes with a zone, or
        timedeltas from the start of the data.

        Raises ValueError for an invalid time, and NoUtcError for a UTC time if the log has no UTC.
        """
        return self._narrower(self._fields, _times.window(start, end, self._info), self._signals)

    def _narrower(self, fields: list[str] | None, window: Window, signals: Mapping[str, str]) -> Topic:
        return Topic(self._reader, self._info, self._index, self._facts, fields, window, self._opening, signals)

    @property
    def _part(self) -> Part:
        return (self._fields, self._window, list(self._signals.values()))

    def _table(self) -> _core.Table:
        return self._reader.table(self._index, self._part)

    def _path(self) -> str | None:
        return self._reader.path

    def table(self) -> Table:
        """Returns the columns in memory, decoded once and shared by polars, pyarrow and numpy."""
        return Table(self._table(), self)

    def batches(self) -> Iterator[Table]:
        """Returns the columns in batches of at most 65536 rows or about 16 MB."""
        return map(Table, self._reader.batches(self._index, self._part))

    def lazy(self) -> polars.LazyFrame:
        """Returns the topic as a `polars.LazyFrame`: only the columns and times that a query needs are decoded.

        DuckDB takes it, too, and hands on its columns and conditions: `duckdb.sql("SELECT max(x) FROM frame")`. See also
        `scan`, for many logs.
        """
        from rovelog._scan import lazy

        return lazy(self)

    def dataset(self) -> pyarrow.dataset.Dataset:
        """Returns the topic as a `pyarrow.dataset.Dataset`: each scan decodes only the columns and times that it needs.

        For pyarrow, polars (`scan_pyarrow_dataset`) and DuckDB, whose columns and conditions reach the log:
        `duckdb.sql("SELECT max(x) FROM dataset WHERE t_ns > 5")`. It can be pickled.
        """
        need("pyarrow.dataset")
        from rovelog._dataset import TopicDataset

        return TopicDataset(self)

    def messages(self) -> _core.Messages:
        """Returns the records in time order, with all fields; see `Log.messages`."""
        return self._reader.messages([self.name], self._window)

    def __arrow_c_schema__(self) -> object:
        """Returns the schema as a capsule."""
        return self._reader.schema(self._index, self._part)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the columns as a new stream that decodes while it is read.

        A requested schema with some of the columns decodes only these, as
        `pyarrow.RecordBatchReader.from_stream(topic, schema)`; types are converted if no value changes.
        """
        return self._reader.stream(self._index, self._part, requested_schema)

    def numpy(self, fields: str | Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Returns name -> array, with one entry per record along the first axis; with `fields`,
        only these are decoded.

        `t_ns` is int64, ns on the log clock; see also `Table.numpy`. Raises FieldNotFound.
        """
        if fields is None:
            return super().numpy()
        return self.select(*([fields] if isinstance(fields, str) else fields)).numpy()

    def __len__(self) -> int:
        """Number of records, of the part that `between` selected."""
        if self._window == (None, None):
            return self.count
        return len(self._reader.table(self._index, ([], self._window, [])))

    def __bool__(self) -> bool:
        """A topic is there, with or without records."""
        return True

    def __iter__(self) -> Iterator[_core.Message]:
        """Returns the records in time order, with all fields."""
        return self.messages()

    def __getitem__(self, field: str) -> Any:
        """Returns a field as an array (`q`, `q[0]`, `pos.x`, `q.roll`, `norm(q)`), or as a dict of arrays if it is a
        pattern, or has fields itself.

        See `select` and `numpy`. Raises FieldNotFound.
        """
        part = self.select(field)
        arrays = part.numpy()
        if field in arrays:
            return arrays[field]
        if len(part._signals) == 1 and not part._fields:
            return arrays[next(iter(part._signals))]
        inner = {name.removeprefix(f"{field}."): values for name, values in arrays.items() if name.startswith(f"{field}.")}
        return inner or {name: values for name, values in arrays.items() if name not in ("t_ns", "time")}

    def _ipython_key_completions_(self) -> list[str]:
        return [*(field.name for field in self.fields), *self.derived]

    def __reduce__(self) -> tuple[Any, ...]:
        opened = _again.demand(self._opening, "a topic")
        return _again.topic, (opened, self._index, self._fields, self._window, self._signals)

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


def _found(topic: Topic, text: str) -> tuple[list[str], dict[str, str]]:
    """The paths of the fields that a text names, and what is computed of fields: column -> text."""
    if text in topic._signals:
        return [], {text: topic._signals[text]}
    error = _missing(topic, text)
    if error is None:
        return [text], {}
    found = topic._reader.resolve(topic._index, text)
    if found is None:
        raise error
    return found[0], dict(found[1])


def _missing(topic: Topic, path: str) -> FieldNotFound | None:
    """The error for a path that is none of the topic's fields."""
    fields: list[Field] | None = topic.fields
    for piece in path.split("."):
        name, *elements = piece.split("[")
        inner = {field.name: field for field in fields or []}
        if name not in inner:
            return no_field(topic.name, path, [path.replace(name, other, 1) for other in near(name, inner)], topic._reader.path)
        length = LENGTH.search(inner[name].type)
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
    number = text.removesuffix("]")
    return number != text and number.isascii() and number.isdigit() and int(number) < length


def missing(
    name: str | tuple[str, int], names: Iterable[str], where: str = "in this log", path: str | None = None
) -> TopicNotFound:
    """The error for a topic that is not there."""
    wanted = named(name)
    found = near(wanted, names)
    next = hint(found, "log.topics has all of them")
    return TopicNotFound(f"there is no topic {wanted} {where}", suggestions=found, path=path, next=next)


def named(name: object) -> str:
    """Returns the full name for a name, or a name and an instance."""
    if isinstance(name, str):
        return name
    if isinstance(name, tuple) and len(name) == 2 and isinstance(name[0], str) and type(name[1]) is int:
        return f"{name[0]}/{name[1]}"
    raise TypeError(f"a topic is a name, or a name and the number of an instance, not {name!r}")


class Topics(Mapping[str, Topic]):
    """Topics by name; `/0` is optional. Raises TopicNotFound for unknown topics."""

    def __init__(self, topics: Iterable[Topic], path: str | None = None) -> None:
        self._topics = {topic.name: topic for topic in topics}
        self._path = path

    def __getitem__(self, name: str | tuple[str, int]) -> Topic:
        found = self._find(name)
        if found is None:
            raise missing(name, self._topics, path=self._path)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, (str, tuple)) and self._find(name) is not None

    def _find(self, name: object) -> Topic | None:
        wanted = named(name)
        # `/imu/0` of ROS is another path than `/imu`, not an instance of it.
        first = wanted if wanted.startswith("/") else f"{wanted}/0"
        return self._topics.get(wanted) or self._topics.get(first)

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def _ipython_key_completions_(self) -> list[str]:
        return [short(name) for name in self._topics]

    def __repr__(self) -> str:
        return "\n".join(f"{topic.name}  {topic.count}" for topic in self._topics.values())
