"""Logs and their topics."""

from __future__ import annotations

import builtins
import datetime as dt
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import TracebackType
from typing import IO, TYPE_CHECKING

from rovelog import _core, _html, _times
from rovelog._errors import (
    CorruptError,
    DataLossWarning,
    FieldNotFound,
    RovelogError,
    TopicNotFound,
    UnsupportedError,
)
from rovelog._facts import Field, Info, Problem, Text
from rovelog._near import hint, near
from rovelog._rewrite import Recovered, Sliced, whole
from rovelog._table import Columns, Table
from rovelog._times import Moment
from rovelog._types import FieldFacts, Part, TopicFacts

if TYPE_CHECKING:
    from rovelog._bag import BagExtras
    from rovelog._rld import RldExtras
    from rovelog._ulog import UlogExtras
    from rovelog._vel import VelExtras

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes]


def open(
    f: Source,
    *,
    topics: Iterable[str] | None = None,
    format: str | None = None,
    strict: bool = False,
    types: str | os.PathLike[str] | None = None,
) -> Log:
    """Opens a log. Its headers are walked over once; nothing is decoded until it is asked for.

    `f` is a path, the bytes of a log, a binary file object, or an http(s) address. `topics` restricts the log to some
    topics. `format` is an id (`ulog`) and leaves the first bytes unasked. Damage is no error: it is in `log.problems`, and a
    `DataLossWarning` says so once; with `strict=True` it is a `CorruptError`. `types` is a file that declares message types of
    your own, of which VEL logs carry only ids; other formats have no use for it.

    Raises MissingFileError, ReadError, NotALogError (the message names what it looks like), UnreadableError.
    On the command line: `rovelog info FILE`, with `--types`.
    """
    reader = _open(f, format, types)
    log = Log(reader, topics)
    lost = log.info.lost_bytes
    if lost:
        text = f"{lost} bytes in {len(log.info.lost)} places could not be read: {log.name}"
        if strict:
            raise CorruptError(
                text,
                lost=log.info.lost,
                offset=log.info.lost[0][0] if log.info.lost else None,
                format=log.format,
                next="leave strict out to skip damage; log.problems has all of it",
            )
        warnings.warn(f"{text} (see log.problems)", DataLossWarning, stacklevel=2)
    return log


def _open(f: Source, format: str | None, types: str | os.PathLike[str] | None = None) -> _core.Reader:
    if isinstance(f, (bytes, bytearray, memoryview)):
        return _core.Reader.from_bytes(bytes(f), format, None, types)
    if isinstance(f, str) and f.startswith(("http://", "https://")):
        import urllib.request

        with urllib.request.urlopen(f) as answer:
            return _core.Reader.from_bytes(answer.read(), format, f, types)
    if isinstance(f, (str, os.PathLike)):
        return _core.Reader.open(os.fspath(f), format, False, types)
    if not hasattr(f, "read"):
        raise TypeError(f"a log is a path, bytes or a binary file object, not {type(f).__name__}")
    data = f.read()
    if not isinstance(data, bytes):
        raise TypeError("the file object gives text: open it with mode 'rb'")
    name = getattr(f, "name", None)
    return _core.Reader.from_bytes(data, format, name if isinstance(name, str) else None, types)


class Log:
    """An open log: topics by name, records in the order of time, and what the log says about itself.

    `log["vehicle_attitude"]` is a topic, `log["vehicle_attitude", 1]` its second instance. A log may be read by many
    threads at once; `with` or `close` lets go of the file.
    """

    def __init__(self, reader: _core.Reader, topics: Iterable[str] | None = None) -> None:
        self._open_reader: _core.Reader | None = reader
        self._wanted = None if topics is None else builtins.list(topics)
        facts = reader.info()
        self._info = Info(**facts)

    @property
    def _reader(self) -> _core.Reader:
        if self._open_reader is None:
            raise RovelogError("the log is closed", next="open it again: rovelog.open(path)")
        return self._open_reader

    @property
    def path(self) -> str | None:
        """The file, where the log came from one."""
        return self._reader.path

    @property
    def name(self) -> str:
        """The file's name, for people."""
        path = self._reader.path
        return "a log in memory" if path is None else os.path.basename(path)

    @property
    def info(self) -> Info:
        """The summary. On the command line: `rovelog info FILE`."""
        return self._info

    @property
    def format(self) -> str:
        """The id of the format: `ulog`."""
        return self._info.format

    @property
    def state(self) -> str:
        """`complete`, `truncated` (the recording breaks off) or `damaged` (something inside could not be read)."""
        return self._info.state

    @property
    def records(self) -> int:
        """Records on all topics."""
        return self._info.records

    @property
    def start_ns(self) -> int | None:
        """The beginning, integer ns of the log's clock."""
        return self._info.start_ns

    @property
    def end_ns(self) -> int | None:
        """The end, integer ns of the log's clock."""
        return self._info.end_ns

    @property
    def start(self) -> dt.datetime | None:
        """The beginning in UTC, floored to microseconds; None where nothing in the log tells its UTC."""
        return self.utc(self._info.start_ns)

    @property
    def end(self) -> dt.datetime | None:
        """The end in UTC, floored to microseconds; None where nothing in the log tells its UTC."""
        return self.utc(self._info.end_ns)

    @property
    def duration(self) -> dt.timedelta | None:
        """From start to end, floored to microseconds; `info.duration_ns` is exact."""
        nanos = self._info.duration_ns
        return None if nanos is None else dt.timedelta(microseconds=nanos // 1000)

    def utc(self, t_ns: int | None) -> dt.datetime | None:
        """A time of the log's clock in UTC, floored to microseconds; None where the log does not tell."""
        offset = self._info.utc_offset_ns
        return None if t_ns is None or offset is None else _times.to_datetime(t_ns + offset)

    @cached_property
    def topics(self) -> Topics:
        """Name -> topic, in the order in which the log declares them. On the command line: `rovelog topics FILE`."""
        reader = self._reader
        listed = [Topic(self, reader, index, facts) for index, facts in enumerate(reader.topics())]
        if self._wanted is not None:
            every = Topics(listed)
            kept = {every[name].name for name in self._wanted}
            listed = [topic for topic in listed if topic.name in kept]
        return Topics(listed)

    def __getitem__(self, name: str | tuple[str, int]) -> Topic:
        return self.topics[name if isinstance(name, str) else f"{name[0]}/{name[1]}"]

    def __contains__(self, name: object) -> bool:
        return name in self.topics

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def messages(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        latched: bool = False,
    ) -> _core.Messages:
        """Records in the order of (time, place in the file), in memory that does not grow with the log.

        Each has `topic`, `t_ns` (int ns of the log's clock; None where it carries no time), `seq`, `offset` (its first byte
        in the file), its fields by `m["q"]`, `m["q[0]"]`, `m["pos.x"]`, and `fields()` as a dict. `start` is inclusive, `end`
        is not; see `Topic.between`. `latched` also gives each topic's last record before `start`.
        On the command line: `rovelog cat FILE`.
        """
        if isinstance(topics, str):
            topics = [topics]
        names = None if topics is None and self._wanted is None else [
            self.topics[name].name for name in (self.topics if topics is None else topics)
        ]
        window = (_times.resolve(start, self._info), _times.resolve(end, self._info))
        return self._reader.messages(names, *window, latched)

    @cached_property
    def problems(self) -> list[Problem]:
        """What was noticed in the bytes, in file order. On the command line: `rovelog check FILE`."""
        return [Problem(*row) for row in self._reader.problems()]

    @cached_property
    def text(self) -> list[Text]:
        """The console, in file order; empty where the format has none. On the command line: `rovelog messages FILE`."""
        return [Text(*row) for row in self._reader.texts() or []]

    @property
    def params(self) -> dict[str, int | float]:
        """Parameters in force when the data began; see `ulog.parameters`. On the command line: `rovelog params FILE`."""
        return self.ulog.parameters.initial

    @cached_property
    def ulog(self) -> UlogExtras:
        """What only a ULog has: parameters, information, dropouts, events, modes. UnsupportedError for other formats."""
        from rovelog._ulog import UlogExtras

        return UlogExtras(self._of("ulog", "ULog"))

    @cached_property
    def rld(self) -> RldExtras:
        """What only a power log has: currents, charge and energy. UnsupportedError for other formats."""
        from rovelog._rld import RldExtras

        return RldExtras(self._of("rld", "RLD log"), self._info)

    @cached_property
    def vel(self) -> VelExtras:
        """What only a VEL log has: images, revolutions of its Velodyne. UnsupportedError for other formats."""
        from rovelog._vel import VelExtras

        return VelExtras(self._of("vel", "VEL log"), self._info)

    @cached_property
    def bag(self) -> BagExtras:
        """What only a ROS bag has: its connections. UnsupportedError for other formats."""
        from rovelog._bag import BagExtras

        return BagExtras(self._of("rosbag", "ROS bag"))

    def _of(self, format: str, name: str) -> _core.Reader:
        if self.format != format:
            raise UnsupportedError(f"this log is no {name}, it is {self._info.format_name}", format=self.format, path=self.path)
        return self._reader

    def recover(self, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False) -> Recovered:
        """Writes the best sound log that this one still holds; what became of each byte.

        `drop_stale` leaves out stretches of another time. `force` replaces a file that is there.
        On the command line: `rovelog recover FILE -o OUT`.
        """
        return Recovered(**whole(out, self.path, force, lambda path: self._reader.recover(path, drop_stale)))

    def slice(
        self,
        out: str | os.PathLike[str],
        *,
        topics: Iterable[str] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        force: bool = False,
    ) -> Sliced:
        """Writes a part of the log as a log of its own, its bytes as they are.

        On the command line: `rovelog slice FILE -o OUT`.
        """
        names = None if topics is None else [self.topics[name].name for name in topics]
        window = (_times.resolve(start, self._info), _times.resolve(end, self._info))
        return Sliced(**whole(out, self.path, force, lambda path: self._reader.slice(path, names, *window)))

    def close(self) -> None:
        """Lets go of the file; topics taken before keep it."""
        self._open_reader = None
        for made in ("topics", "ulog", "rld", "vel", "bag"):
            self.__dict__.pop(made, None)

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._open_reader is None:
            return "<rovelog.Log, closed>"
        info = self._info
        return f"<rovelog.Log {self.name}: {info.format_name}, {info.records} records, {len(self.topics)} topics, {info.state}>"

    def _repr_html_(self) -> str:
        return _html.log(self)


class Topics(Mapping[str, "Topic"]):
    """Topics by name; the instance `/0` may be left out."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._topics = {topic.name: topic for topic in topics}

    def __getitem__(self, name: str) -> Topic:
        found = self._topics.get(name) or self._topics.get(f"{name}/0")
        if found is None:
            names = near(name, self._topics)
            raise TopicNotFound(
                f"there is no topic {name} in this log",
                suggestions=names,
                next=hint(names, "log.topics has all of them"),
            )
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._topics or f"{name}/0" in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def __repr__(self) -> str:
        return "\n".join(f"{topic.name}  {topic.count}" for topic in self._topics.values())


class Topic(Columns):
    """One named stream of a log: its fields, and its records as columns.

    Nothing is decoded before one of `table`, `batches`, `numpy`, `to_*` is called or a library takes it as Arrow data.
    `select` and `between` give narrower topics.
    """

    def __init__(
        self,
        log: Log,
        reader: _core.Reader,
        index: int,
        facts: TopicFacts,
        fields: tuple[str, ...] | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self._log = log
        self._reader = reader
        self._index = index
        self._facts = facts
        self._fields = fields
        self._start = start
        self._end = end

    @property
    def name(self) -> str:
        """The name, unique in the log: `vehicle_attitude/0`."""
        return self._facts["name"]

    @property
    def type(self) -> str:
        """The name of the type of its records: `vehicle_attitude`."""
        return self._facts["type"]

    @property
    def count(self) -> int:
        """Records of the whole topic."""
        return self._facts["count"]

    @property
    def nbytes(self) -> int:
        """Bytes of the records of the whole topic in the file."""
        return self._facts["bytes"]

    @property
    def rate_hz(self) -> float | None:
        """Mean rate in Hz of the whole topic; None below two records."""
        return self._facts["rate_hz"]

    @property
    def first_ns(self) -> int | None:
        """Time of the first record, ns of the log's clock."""
        return self._facts["first_ns"]

    @property
    def last_ns(self) -> int | None:
        """Time of the last record, ns of the log's clock."""
        return self._facts["last_ns"]

    @cached_property
    def fields(self) -> list[Field]:
        """The fields with types and units; empty where the log's definitions do not allow decoding."""
        return _fields(self._reader.fields(self._index))

    @property
    def definition(self) -> str | None:
        """The definition of the type as the log holds it. On the command line: `rovelog schema FILE TOPIC`."""
        return self._reader.definition(self._index)

    def select(self, *fields: str) -> Topic:
        """The same topic with these fields only: `q`, `q[0]`, `pos.x`. Others are not decoded."""
        for field in fields:
            _demand(self, field)
        return self._with(fields, self._start, self._end)

    def between(self, start: Moment | None = None, end: Moment | None = None) -> Topic:
        """The same topic from `start` until before `end`.

        Times are ints (ns of the log's clock), `"+10s"` from the start of the log, `"-30s"` from its end, `"112.5s"` of its
        clock, RFC 3339 texts or datetimes with a zone, timedeltas from the start.
        """
        info = self._log.info
        return self._with(self._fields, _times.resolve(start, info), _times.resolve(end, info))

    def _with(self, fields: tuple[str, ...] | None, start: int | None, end: int | None) -> Topic:
        return Topic(self._log, self._reader, self._index, self._facts, fields, start, end)

    @property
    def _part(self) -> Part:
        return (None if self._fields is None else builtins.list(self._fields), self._start, self._end)

    def _table(self) -> _core.Table:
        return self._reader.table(self._index, self._part)

    def table(self) -> Table:
        """The columns in memory, decoded once: polars, pyarrow, numpy then share them."""
        return Table(self._table())

    def batches(self) -> Iterator[Table]:
        """The columns a piece at a time, at most 65536 rows or about 16 MB each."""
        return map(Table, self._reader.batches(self._index, self._part))

    def messages(self) -> _core.Messages:
        """The records in the order of time; see `Log.messages`."""
        return self._reader.messages([self.name], self._start, self._end, False)

    def __arrow_c_schema__(self) -> object:
        """The schema as a capsule, for libraries that take Arrow data."""
        return self._reader.schema(self._index, self._part)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The columns as a stream that decodes as it is read; a fresh one per call."""
        return self._reader.stream(self._index, self._part, requested_schema)

    def numpy(self, fields: Iterable[str] | None = None) -> dict[str, object]:
        """Name -> array; see `Columns.numpy`. With `fields`, only these are decoded."""
        return super().numpy() if fields is None else self.select(*fields).numpy()

    def __repr__(self) -> str:
        rate = "" if self.rate_hz is None else f", {self.rate_hz:.1f} Hz"
        return f"<rovelog.Topic {self.name}: {self.count} records{rate}>"

    def _repr_html_(self) -> str:
        return _html.topic(self)


def _fields(rows: list[FieldFacts]) -> list[Field]:
    return [
        Field(name, type, source, unit, None if inner is None else _fields(inner))
        for name, type, source, unit, inner in rows
    ]


def _demand(topic: Topic, path: str) -> None:
    """Raises where the topic has no such field."""
    fields: list[Field] | None = topic.fields
    names = []
    for piece in path.split("."):
        name = piece.split("[")[0]
        names = [field.name for field in fields or []]
        if name not in names:
            found = near(name, names)
            raise FieldNotFound(
                f"topic {topic.name} has no field {path}", suggestions=found, next=hint(found, "see topic.fields")
            )
        fields = next(field.fields for field in fields or [] if field.name == name)

