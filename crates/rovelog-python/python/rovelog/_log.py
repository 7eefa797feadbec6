"""Logs."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from rovelog import _again, _align, _core, _html, _source, _times
from rovelog._again import Opening
from rovelog._align import How, Occurrence
from rovelog._bag import BagExtras
from rovelog._errors import CorruptError, RovelogError, UnsupportedError, warn
from rovelog._facts import Info, Outside, Problem, Recovered, Sliced, Text, TopicHealth
from rovelog._files import whole
from rovelog._near import short
from rovelog._need import need
from rovelog._rld import RldExtras
from rovelog._source import Source
from rovelog._table import Table
from rovelog._times import Moment
from rovelog._topic import Topic, Topics, missing
from rovelog._types import Window
from rovelog._ulog import UlogExtras
from rovelog._vel import VelExtras

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

FrameKind = Literal["polars", "pandas", "arrow"]


def open(
    f: Source,
    *,
    topics: str | Iterable[str] | None = None,
    format: str | None = None,
    strict: bool = False,
    types: str | os.PathLike[str] | None = None,
    max_unpacked: int | None = None,
    msgs: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, object] | None = None,
    max_bytes: int | None = None,
    utc_start: int | str | dt.datetime | None = None,
    time_base: Literal["boot"] | None = None,
    text_encoding: str | None = None,
) -> Log:
    """Opens a log. Its headers are scanned once; nothing is decoded until it is needed.

    `f` is a path (`~/x` too), the bytes of a log, a binary file object, or an address: `s3://`,
    `gs://`, `az://`, `https://`. Of an address and of a file object that can seek, only what is needed
    is read: `log.info` is of what an index, the start and the end tell, and its `state` is
    `not_checked` then. `storage_options` are credentials and settings of the store, `max_bytes` limits
    what is fetched. `topics`
    restricts the log to one topic or several. `format` is a format id (`ulog`) and skips detection
    by the first bytes. `types` is a file with declarations of custom message types for VEL logs,
    which contain only their ids. `max_unpacked` limits the size of a decompressed log in bytes; the
    default is 1 GiB. `msgs` is a `.msg` file or a folder of ROS packages with message definitions
    that a bag lacks. `utc_start` is the UTC of the start of a log whose clock is not UTC: an RFC 3339
    string, a datetime with a zone, or Unix ns. `time_base="boot"` selects the monotonic clock of an RLD
    log, which is also used if UTC was set during the recording. `text_encoding` decodes texts of ULogs and
    bags that are not UTF-8, such as `cp1251` or `gbk`; without it, their bytes are written as `\\xcf`, and
    a `UnicodeWarning` says how many there are.

    Damage is not an error: it is in `log.problems`, and one `DataLossWarning` reports it. With
    `strict=True` it is a `CorruptError`, and all of a log is read that has an index. Without it, a
    chunk that contradicts its index is found while records are read, and warned of then.

    Raises MissingFileError, ReadError, NotALogError (which names the detected file type),
    UnreadableError or TopicNotFound, and UnsupportedError for `utc_start` if the clock of the log is
    UTC. If another program shortens the file later, reading from the
    log raises ReadError. On the command line: `rovelog info FILE`, with `--types`,
    `--msgs`, `--max-unpacked`, `--utc-start`, `--time-base` and `--text-encoding`.
    """
    names = None if topics is None else [topics] if isinstance(topics, str) else list(topics)
    given = None if utc_start is None else _times.unix_ns(utc_start)
    options = storage_options, max_bytes, given, time_base, text_encoding
    opening = _again.opening(f, names, format, types, max_unpacked, msgs, *options)
    reader = _source.reader(f, format, types, max_unpacked, msgs, *options)
    log = Log(reader, names, opening)
    if time_base is not None and log.info.clock == "unix":
        raise UnsupportedError("the log has only UTC", format=log.format, path=log.path, next="leave out time_base")
    if given is not None and log.info.clock == "unix":
        raise UnsupportedError("the clock of the log is UTC", format=log.format, path=log.path, next="leave out utc_start")
    log._types = [os.path.abspath(extra) for extra in (types, msgs) if extra is not None]
    loss = reader.verify() if strict else None
    if loss is not None:
        raise CorruptError(
            loss,
            lost=log.info.lost,
            offset=log.info.lost[0][0] if log.info.lost else None,
            format=log.format,
            path=log.path,
            next="leave strict out to skip damage; log.problems has all of it",
        )
    warn_of_loss(log)
    return log


def warn_of_loss(log: Log) -> None:
    """Warns if data of a log is lost, missing or left out."""
    if log.info.loss is not None:
        warn(f"{log.info.loss}: {log.name} (see log.problems)")


def opened(f: Source | Log) -> contextlib.AbstractContextManager[Log]:
    """Returns a log as a context manager that closes it, unless the caller opened it."""
    return contextlib.nullcontext(f) if isinstance(f, Log) else open(f)


def _info(reader: _core.Reader) -> Info:
    facts = reader.info()
    facts["outside"] = [Outside(*outside) for outside in facts["outside"]]
    return Info(**facts)


class Log:
    """An open log: topics by name, records in time order, and the metadata of the log.

    `log["vehicle_attitude"]` is a topic, `log["vehicle_attitude", 1]` its second instance;
    `log.topics` has all topics, `log.messages()` their records. `log.ulog`, `log.rld`, `log.vel`
    and `log.bag` have the format-specific data. Several threads may read a log at once. `with` or
    `close` releases the file.
    """

    def __init__(
        self, reader: _core.Reader, topics: str | Iterable[str] | None = None, opening: Opening | None = None
    ) -> None:
        self._open_reader: _core.Reader | None = reader
        self._info = _info(reader)
        self._types: list[str] = []
        self._opening = opening
        self._wanted = None if topics is None else [topics] if isinstance(topics, str) else list(topics)
        if self._wanted is not None:
            # What is not there is an error here, and not later.
            _ = self.topics

    @property
    def _reader(self) -> _core.Reader:
        if self._open_reader is None:
            raise RovelogError("the log is closed", next="open it again: rovelog.open(path)")
        return self._open_reader

    @property
    def path(self) -> str | None:
        """Path of the file; None for a log in memory."""
        return self._reader.path

    @property
    def _sources(self) -> list[str]:
        """Input files of the log, which no output may replace."""
        return [*self._reader.files, *self._types]

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        path = self._reader.path
        return "a log in memory" if path is None else os.path.basename(path)

    @property
    def info(self) -> Info:
        """Summary. On the command line: `rovelog info FILE`."""
        return self._info

    @property
    def format(self) -> str:
        """Id of the format: `ulog`."""
        return self._info.format

    @property
    def state(self) -> str:
        """`complete`, `truncated` (the end is missing) or `damaged` (some bytes could not be read)."""
        return self._info.state

    @property
    def records(self) -> int:
        """Number of records on all selected topics; `info.records` counts the whole file."""
        return self._info.records if self._wanted is None else sum(topic.count for topic in self.topics.values())

    @property
    def start_ns(self) -> int | None:
        """Start, integer ns on the log clock."""
        return self._info.start_ns

    @property
    def end_ns(self) -> int | None:
        """End, integer ns on the log clock."""
        return self._info.end_ns

    @property
    def start(self) -> dt.datetime | None:
        """Start in UTC, floored to microseconds; None if the log has no UTC."""
        return self.utc(self._info.start_ns)

    @property
    def end(self) -> dt.datetime | None:
        """End in UTC, floored to microseconds; None if the log has no UTC."""
        return self.utc(self._info.end_ns)

    @property
    def duration(self) -> dt.timedelta | None:
        """Duration of the data, without records far outside of its time range (`info.outside`).

        Floored to microseconds; `info.data_duration_ns` is exact, `info.duration_ns` includes all
        records.
        """
        nanos = self._info.data_duration_ns
        return None if nanos is None else dt.timedelta(microseconds=nanos // 1000)

    def utc(self, t_ns: int | None) -> dt.datetime | None:
        """Converts a time on the log clock to UTC, floored to microseconds; None if the log has no
        UTC.
        """
        unix = None if t_ns is None else _times.unix_of(t_ns, self._info)
        return None if unix is None else _times.to_datetime(unix)

    @cached_property
    def topics(self) -> Topics:
        """Topics by name, in the order of their declaration. On the command line: `rovelog topics
        FILE`.
        """
        if self._info.at_least:
            # The parts that were read may lack topics.
            self._open_reader = self._reader.whole()
            self._info = _info(self._open_reader)
        reader = self._reader
        facts = enumerate(reader.topics())
        listed = [Topic(reader, self._info, index, row, opening=self._opening) for index, row in facts]
        if self._wanted is not None:
            every = Topics(listed, reader.path)
            kept = {every[name].name for name in self._wanted}
            listed = [topic for topic in listed if topic.name in kept]
        return Topics(listed, reader.path)

    def __getitem__(self, name: str | tuple[str, int]) -> Topic:
        """Returns the topic with this name, or name and instance. Raises TopicNotFound, with
        `suggestions`.
        """
        return self.topics[name]

    def __contains__(self, name: object) -> bool:
        return name in self.topics

    def __len__(self) -> int:
        """Number of topics."""
        return len(self.topics)

    def __bool__(self) -> bool:
        """A log is there, with or without topics."""
        return True

    def _ipython_key_completions_(self) -> list[str]:
        return [short(name) for name in self.topics]

    def __reduce__(self) -> tuple[Any, ...]:
        return _again.log, (_again.demand(self._opening, "a log"),)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def _names(self, topics: str | Iterable[str] | None) -> list[str] | None:
        """Returns full topic names; None for all topics of the file."""
        if topics is None and self._wanted is None:
            return None
        if isinstance(topics, str):
            topics = [topics]
        return [self.topics[name].name for name in (self.topics if topics is None else topics)]

    def messages(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        start: Moment | None = None,
        end: Moment | None = None,
        latched: bool = False,
    ) -> _core.Messages:
        """Returns the records in the order of (time, position in the file), in memory that does not
        grow with the log.

        Each record has `topic`, `t_ns` (int ns on the log clock; None without a time), `seq`,
        `offset` (its first byte in the file), its fields by `m["q"]`, `m["q[0]"]`, `m["pos.x"]`,
        and `fields()` as a dict. `start` is inclusive, `end` is exclusive; see `Topic.between`.
        `latched` also returns the last record of each topic before `start`.

        Raises TopicNotFound, and the errors of `Topic.between`. On the command line: `rovelog cat
        FILE`.
        """
        return self._reader.messages(self._names(topics), _times.window(start, end, self._info), latched=latched)

    @overload
    def frames(
        self, topics: str | Iterable[str] | None = None, kind: Literal["polars"] = "polars"
    ) -> dict[str, polars.DataFrame]: ...
    @overload
    def frames(self, topics: str | Iterable[str] | None, kind: Literal["pandas"]) -> dict[str, pandas.DataFrame]: ...
    @overload
    def frames(self, topics: str | Iterable[str] | None, kind: Literal["arrow"]) -> dict[str, pyarrow.Table]: ...
    def frames(self, topics: str | Iterable[str] | None = None, kind: FrameKind = "polars") -> Any:
        """Returns the frames of all topics with records, or of some: name -> frame.

        `kind` is `polars`, `pandas` or `arrow`; see `Topic.to_polars`, `to_pandas` and `to_arrow`. Raises TopicNotFound.
        """
        names = [topics] if isinstance(topics, str) else topics
        chosen = [topic for topic in self.topics.values() if topic.count] if names is None else [self[name] for name in names]
        return {short(topic.name): getattr(topic, f"to_{kind}")() for topic in chosen}

    def align(
        self,
        topics: str | Iterable[str],
        *,
        on: str | dt.timedelta | Iterable[int],
        how: How = "previous",
        tolerance: str | int | dt.timedelta | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        force: bool = False,
    ) -> polars.DataFrame:
        """Returns the columns of several topics at the same times, as a `polars.DataFrame`.

        `on` gives the times: those of a topic (`"vehicle_attitude"`), a grid from `start` or the start of the data
        (`"10ms"`, a timedelta), or times in ns on the log clock. `how`: the `previous` record, the `nearest` one, or
        `linear` between the two (numbers, in arrays too, become float64; other fields are those of the previous record).
        `tolerance` is the largest distance in time (`"20ms"`, ns, a timedelta); what is farther is null. Times are compared as
        integers. Columns are `t_ns` and, per topic, `vehicle_attitude.q`.

        Raises TopicNotFound, UnsupportedError for an unknown `how` and for a grid with more than ten times (and 10 000)
        rows for each record of the log, which `force` allows, and the errors of `Topic.between`.
        """
        window = _times.window(start, end, self._info)
        chosen = [self[name] for name in ([topics] if isinstance(topics, str) else topics)]
        distance = _times.span_ns(tolerance) if tolerance is not None else None
        return _align.aligned(self._reader, chosen, self._grid(on, window, force), how, distance)

    def signals(self, *names: str, start: Moment | None = None, end: Moment | None = None) -> Table:
        """Returns signals as columns, at the times of the first topic that they use.

        A signal is `TOPIC.FIELD`, a field that one topic has, a pattern (`*`, `?`, `{a,b}`, `[0..3]`), a derived field
        (`vehicle_attitude.q.roll`; `I1` of a power log), or an expression (`V1*I1`, `deg(vehicle_attitude.q.yaw)`,
        `norm(sensor_combined.gyro_rad)`, `integral(V1*I1)`, `in(speed, km/h)`), with a name of its own: `P=V1*I1`. Columns
        are `t_ns`, `time` if the log has UTC, and the signals as float64; NaN where there is no value. The units are in the
        Arrow metadata. Values of other topics are those of their last records.

        Raises FieldNotFound, which says what would match, and for units that do not go together. On the command line:
        `rovelog plot FILE SIGNAL...` and `--fields`.
        """
        if not names:
            raise ValueError("name at least one signal")
        return Table(_core.signal_values(self._reader, list(names), _times.window(start, end, self._info)))

    def events(self, condition: str, *, start: Moment | None = None, end: Moment | None = None) -> list[Occurrence]:
        """Returns when a condition holds: `battery_status.voltage_v < 14.8 for 2s`, `vehicle_status.nav_state changes`.

        Signals are named as in `signals`; comparisons are joined by `and`, `or` and `not`. Events of the autopilot are
        `log.ulog.events`. Raises FieldNotFound. On the command line: `rovelog events FILE CONDITION`.
        """
        rows = _core.signal_events(self._reader, condition, _times.window(start, end, self._info))
        return [Occurrence(*row) for row in rows]

    def _grid(self, on: str | dt.timedelta | Iterable[int], window: Window, force: bool) -> Any:
        """The times of `align`."""
        numpy = need("numpy")
        if isinstance(on, str) and on in self:
            times = self[on].select().between(*window).numpy()["t_ns"]
            # Records without a time are at none.
            return numpy.sort(numpy.ma.compressed(times))
        if not isinstance(on, (str, dt.timedelta)):
            return numpy.asarray(on if hasattr(on, "__len__") else list(on), dtype=numpy.int64)
        if isinstance(on, str) and _core.duration_ns(on) is None:
            raise missing(on, self.topics, path=self._reader.path)
        step = _times.span_ns(on)
        first = self._info.data_start_ns if window[0] is None else window[0]
        last = self._info.data_end_ns if window[1] is None else window[1] - 1
        if step <= 0:
            raise ValueError("a grid cannot be without distance")
        if first is None or last is None:
            return numpy.empty(0, dtype=numpy.int64)
        if not force:
            _core.check_regular_rows(self._reader, first, last, step)
        return numpy.arange(first, last + 1, step, dtype=numpy.int64)

    @cached_property
    def problems(self) -> list[Problem]:
        """Diagnostics, in file order. On the command line: `rovelog check FILE`."""
        return [Problem(*row) for row in self._reader.problems()]

    def health(self, *, start: Moment | None = None, end: Moment | None = None) -> dict[str, TopicHealth]:
        """Returns the health of the times of each topic: gaps, jitter, falling and repeated times.

        `start` is inclusive, `end` is exclusive; see `Topic.between`. On the command line: `rovelog
        stats FILE --timing`.
        """
        window = _times.window(start, end, self._info)
        found = [TopicHealth(**facts) for facts in self._reader.health(window)]
        return {health.topic: health for health in found if health.topic in self.topics}

    @cached_property
    def text(self) -> list[Text]:
        """Console messages, in file order; empty if the format has none. On the command line:
        `rovelog messages FILE`.
        """
        return [Text(*row) for row in self._reader.texts() or []]

    @property
    def params(self) -> dict[str, int | float]:
        """Parameters at the start of the data; see `ulog.parameters`. Raises UnsupportedError for
        other formats than ULog.

        On the command line: `rovelog params FILE`.
        """
        return self.ulog.parameters.initial

    @cached_property
    def ulog(self) -> UlogExtras:
        """ULog only: parameters, info messages, dropouts, events, modes. Raises UnsupportedError
        for other formats.
        """
        return UlogExtras(self._of("ulog", "ULog"))

    @cached_property
    def rld(self) -> RldExtras:
        """RLD only: currents, charge and energy. Raises UnsupportedError for other formats."""
        return RldExtras(self._of("rld", "RLD log"), self._info)

    @cached_property
    def vel(self) -> VelExtras:
        """VEL only: images, Velodyne revolutions. Raises UnsupportedError for other formats."""
        return VelExtras(self._of("vel", "VEL log"), self._info)

    @cached_property
    def bag(self) -> BagExtras:
        """ROS bags only: connections. Raises UnsupportedError for other formats."""
        return BagExtras(self._of("rosbag", "ROS bag"))

    def _of(self, format: str, name: str) -> _core.Reader:
        if self.format != format:
            raise UnsupportedError(f"this log is no {name}, it is {self._info.format_name}", format=self.format, path=self.path)
        return self._reader

    def recover(self, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False) -> Recovered:
        """Writes every intact record to the new log `out` and returns what was kept and lost.

        `drop_stale` leaves out stale rows of another time. `force` replaces an existing file.
        Raises WriteError if the file cannot be written. On the command line: `rovelog recover FILE
        -o OUT`.
        """
        return Recovered(**whole(out, self._sources, force, lambda path: self._reader.recover(path, drop_stale)))

    def slice(
        self,
        out: str | os.PathLike[str],
        *,
        topics: str | Iterable[str] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        force: bool = False,
    ) -> Sliced:
        """Writes a part of the log to the new log `out`, byte for byte.

        `topics` are names; by default all topics. `start` is inclusive, `end` is exclusive; see
        `Topic.between`. Of ROS bags, the last message before `start` is kept of each publisher that
        latches. `force` replaces an existing file. Raises TopicNotFound, and WriteError if
        the file cannot be written. On the command line: `rovelog slice FILE -o OUT`.
        """
        names, window = self._names(topics), _times.window(start, end, self._info)
        return Sliced(**whole(out, self._sources, force, lambda path: self._reader.slice(path, names, window)))

    def close(self) -> None:
        """Releases the file; topics that were taken before keep it open."""
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
        return f"<rovelog.Log {self.name}: {info.format_name}, {self.records} records, {len(self.topics)} topics, {info.state}>"

    def _repr_html_(self) -> str:
        topics = [topic._facts for topic in self.topics.values()]
        return _html.log(self.name, self._info, self.start, self.duration, topics)
