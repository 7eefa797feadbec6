"""Open logs: the class `Log` and the function `open`."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from rovelog import _align, _core, _findings, _html, _source, _sql, _times
from rovelog._align import How, Occurrence
from rovelog._bag import BagExtras
from rovelog._errors import CorruptError, RovelogError, UnsupportedError, warn
from rovelog._findings import Finding
from rovelog._metadata import Info, Problem, Recovered, Sliced, Text, TopicHealth, info_from
from rovelog._optional import require
from rovelog._output import write_file
from rovelog._pickling import OpenArguments, open_arguments, require_arguments
from rovelog._plot import Plot
from rovelog._rld import RldExtras
from rovelog._source import Source
from rovelog._suggest import short_name
from rovelog._table import Table
from rovelog._times import TimeLike
from rovelog._topic import Topic, Topics, complete_reader, topic_not_found
from rovelog._types import Window
from rovelog._ulog import Event, UlogExtras
from rovelog._vel import VelExtras

if TYPE_CHECKING:
    import duckdb
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
    """Opens a log. This scans the headers of its records; records are decoded when they are read.

    `f` is one of these:

    - a path, also `~/x`
    - the bytes of a log
    - a binary file object
    - an address: `s3://`, `gs://`, `az://` or `https://`

    From an address and from a seekable file object, only the required byte ranges are read.
    `log.info` is then based on the index, the start and the end of the log, and its `state` is
    `not_checked`.

    - `topics`: one topic or several. The log then contains only these topics.
    - `format`: id of the format, such as `ulog`. By default, the format is detected by the first
      bytes.
    - `strict`: raises CorruptError if the log is damaged. A log with an index is read completely.
    - `types`: file with declarations of custom message types for VEL logs, which contain only type
      ids
    - `msgs`: `.msg` file or folder of ROS packages with message definitions that a bag lacks
    - `max_unpacked`: maximum size of a decompressed log in bytes, by default 1 GiB
    - `storage_options`: credentials and settings for the object store
    - `max_bytes`: maximum number of bytes to fetch
    - `utc_start`: UTC at the start of a log whose clock is not UTC: an RFC 3339 string, a datetime
      with a time zone, or Unix ns
    - `time_base`: `"boot"` selects the monotonic clock of an RLD log. Its times do not jump if UTC
      was set during the recording.
    - `text_encoding`: encoding of texts in ULogs and bags that are not UTF-8, such as `cp1251` or
      `gbk`. By default, their bytes are written as `\\xcf`, and a `UnicodeWarning` counts the
      texts.

    Damage is not an error. It is listed in `log.problems`, and one `DataLossWarning` reports it. If
    a chunk contradicts its index, the warning comes when its records are read.

    Raises MissingFileError, ReadError, NotALogError (which names the detected file type),
    UnreadableError, TopicNotFound, and UnsupportedError for `utc_start` if the clock of the log is
    UTC. If another program truncates the file later, reading from the log raises ReadError. On the
    command line: `rovelog info FILE`, with `--types`, `--msgs`, `--max-unpacked`, `--utc-start`,
    `--time-base` and `--text-encoding`.
    """
    names = None if topics is None else [topics] if isinstance(topics, str) else list(topics)
    utc_start_ns = None if utc_start is None else _times.unix_ns(utc_start)
    options = storage_options, max_bytes, utc_start_ns, time_base, text_encoding
    arguments = open_arguments(f, names, format, types, max_unpacked, msgs, *options)
    reader = _source.open_reader(f, format, types, max_unpacked, msgs, *options)
    log = Log(reader, names, arguments)
    if time_base is not None and log.info.clock == "unix":
        raise UnsupportedError("the log has only UTC times, so time_base cannot be used", format=log.format, path=log.path, next="leave out time_base")
    if utc_start_ns is not None and log.info.clock == "unix":
        raise UnsupportedError("the clock of the log is UTC, so utc_start cannot be used", format=log.format, path=log.path, next="leave out utc_start")
    log._companions = [os.path.abspath(extra) for extra in (types, msgs) if extra is not None]
    loss = reader.verify() if strict else None
    if loss is not None:
        raise CorruptError(
            loss,
            lost=log.info.lost,
            offset=log.info.lost[0][0] if log.info.lost else None,
            format=log.format,
            path=log.path,
            next="leave out strict to skip the damage; log.problems lists all of it",
        )
    warn_of_loss(log)
    return log


def warn_of_loss(log: Log) -> None:
    """Issues a DataLossWarning if some data of the log is lost, missing or excluded."""
    if log.info.loss is not None:
        warn(f"{log.info.loss}: {log.name} (see log.problems)")


def opened(f: Source | Log) -> contextlib.AbstractContextManager[Log]:
    """Returns a context manager for the log. If this function opened the log, the context manager
    closes it at the end.
    """
    return contextlib.nullcontext(f) if isinstance(f, Log) else open(f)


def _reopen(arguments: OpenArguments) -> Log:
    """Opens the log again from the values in its pickle."""
    return Log(arguments.reader(), arguments.topics, arguments)


class Log:
    """An open log: topics by name, records in time order, and the metadata of the log.

    - `log["vehicle_attitude"]` is a topic, `log["vehicle_attitude", 1]` is its second instance.
    - `log.topics` contains all topics.
    - `log.messages()` returns the records of all topics.
    - `log.ulog`, `log.rld`, `log.vel` and `log.bag` have the data that only one format has.

    Several threads may read a log at the same time. `with` or `close` releases the file.
    """

    def __init__(
        self, reader: _core.Reader, topics: str | Iterable[str] | None = None, open_arguments: OpenArguments | None = None
    ) -> None:
        self._open_reader: _core.Reader | None = reader
        self._info = info_from(reader.info())
        self._companions: list[str] = []
        """Files that `types` and `msgs` of `open` name."""
        self._open_arguments = open_arguments
        """The arguments that open the log again; None if it was read from a file object."""
        self._wanted = None if topics is None else [topics] if isinstance(topics, str) else list(topics)
        if self._wanted is not None:
            # A topic that does not exist raises TopicNotFound here, and not at the first access.
            _ = self.topics

    @property
    def _reader(self) -> _core.Reader:
        if self._open_reader is None:
            raise RovelogError("the log is closed", next="open it again: rovelog.open(path)")
        return self._open_reader

    @property
    def path(self) -> str | None:
        """Path of the file. None for a log in memory."""
        return self._reader.path

    @property
    def _sources(self) -> list[str]:
        """Paths of all files that were read for the log. An output must not replace them."""
        return [*self._reader.files, *self._companions]

    @property
    def name(self) -> str:
        """Name of the file without its folder. If there is no file, the name is `a log in memory`.
        """
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
        """`complete`, `truncated` (the end is missing) or `damaged` (some bytes could not be
        read).
        """
        return self._info.state

    @property
    def records(self) -> int:
        """Number of records in the selected topics. `info.records` is the number of records in the
        whole file.
        """
        return self._info.records if self._wanted is None else sum(topic.count for topic in self.topics.values())

    @property
    def start_ns(self) -> int | None:
        """Start of the log, ns on the log clock."""
        return self._info.start_ns

    @property
    def end_ns(self) -> int | None:
        """End of the log, ns on the log clock."""
        return self._info.end_ns

    @property
    def start(self) -> dt.datetime | None:
        """Start of the log in UTC, floored to microseconds; None if the log has no UTC."""
        return self.utc(self._info.start_ns)

    @property
    def end(self) -> dt.datetime | None:
        """End of the log in UTC, floored to microseconds; None if the log has no UTC."""
        return self.utc(self._info.end_ns)

    @property
    def duration(self) -> dt.timedelta | None:
        """Duration of the data, floored to microseconds.

        Records with times far outside the time range of all other records (`info.outside`) are
        ignored. `info.data_duration_ns` is the exact duration, and `info.duration_ns` includes all
        records.
        """
        nanos = self._info.data_duration_ns
        return None if nanos is None else dt.timedelta(microseconds=nanos // 1000)

    def utc(self, t_ns: int | None) -> dt.datetime | None:
        """Converts a time on the log clock to UTC, floored to microseconds. Returns None if the log
        has no UTC.
        """
        unix = None if t_ns is None else _times.unix_of(t_ns, self._info)
        return None if unix is None else _times.to_datetime(unix)

    @cached_property
    def topics(self) -> Topics:
        """Topics by name, in the order of their declaration.

        On the command line: `rovelog topics FILE`.
        """
        if self._info.at_least:
            self._open_reader, self._info = complete_reader(self._reader, self._info)
        reader = self._reader
        facts = enumerate(reader.topics())
        listed = [Topic(reader, self._info, index, row, open_arguments=self._open_arguments) for index, row in facts]
        if self._wanted is not None:
            every = Topics(listed, reader.path)
            selected = {every[name].name for name in self._wanted}
            listed = [topic for topic in listed if topic.name in selected]
        return Topics(listed, reader.path)

    def __getitem__(self, name: str | tuple[str, int]) -> Topic:
        """Returns the topic with this name, or with this name and instance.

        Raises TopicNotFound. Its `suggestions` has the most similar names.
        """
        return self.topics[name]

    def __contains__(self, name: object) -> bool:
        return name in self.topics

    def __len__(self) -> int:
        """Number of topics."""
        return len(self.topics)

    def __bool__(self) -> bool:
        """Always True. Without this method, a log without topics would be false."""
        return True

    def _ipython_key_completions_(self) -> list[str]:
        return [short_name(name) for name in self.topics]

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (require_arguments(self._open_arguments, "a log"),)

    def __iter__(self) -> Iterator[str]:
        return iter(self.topics)

    def _names(self, topics: str | Iterable[str] | None) -> list[str] | None:
        """Returns the full names of topics; None selects all topics of the file."""
        if topics is None and self._wanted is None:
            return None
        if isinstance(topics, str):
            topics = [topics]
        return [self.topics[name].name for name in (self.topics if topics is None else topics)]

    def messages(
        self,
        topics: str | Iterable[str] | None = None,
        *,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        latched: bool = False,
    ) -> _core.Messages:
        """Returns the records ordered by time. Records with equal times are ordered by offset.

        A record has:

        - `topic`: name of its topic
        - `t_ns`: time in ns on the log clock; None if the record has no time
        - `seq`: number of the record within its topic
        - `offset`: offset of its first byte in the file
        - its fields: `m["q"]`, `m["q[0]"]`, `m["pos.x"]`, or all as a dict by `fields()`

        `start` is inclusive, `end` is exclusive; see `Topic.between`. `latched` also returns the
        last record of each topic before `start`. The required memory does not grow with the log.

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
        """Returns topic name -> frame, for the given topics, or for all topics with records.

        `kind` is `polars`, `pandas` or `arrow`; see `Topic.to_polars`, `to_pandas` and `to_arrow`.
        Raises TopicNotFound.
        """
        names = [topics] if isinstance(topics, str) else topics
        chosen = [topic for topic in self.topics.values() if topic.count] if names is None else [self[name] for name in names]
        return {short_name(topic.name): getattr(topic, f"to_{kind}")() for topic in chosen}

    def align(
        self,
        topics: str | Iterable[str],
        *,
        on: str | dt.timedelta | Iterable[int],
        how: How = "previous",
        tolerance: str | int | dt.timedelta | None = None,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        force: bool = False,
    ) -> polars.DataFrame:
        """Returns the columns of several topics at the same times, as a `polars.DataFrame`.

        `on` determines the times of the rows:

        - the name of a topic (`"vehicle_attitude"`): the times of its records
        - a duration (`"10ms"`, a timedelta): a grid from `start`, or from the start of the data
        - integers: times in ns on the log clock

        `how` determines the values at such a time:

        - `"previous"`: the previous record
        - `"nearest"`: the nearest record
        - `"linear"`: interpolation between the previous and the next record. Numbers, also in
          arrays, become float64; other fields have the value of the previous record.

        `tolerance` is the largest distance in time (`"20ms"`, ns, a timedelta). Values of records
        that are farther away are null. Times are compared as integers. Columns are `t_ns`, and for
        each topic those of its fields: `vehicle_attitude.q`.

        Raises TopicNotFound, UnsupportedError for an unknown `how`, and the errors of
        `Topic.between`. A grid with more than 10 000 rows and more than ten rows per record of the
        log also raises UnsupportedError unless `force` is set.
        """
        window = _times.window(start, end, self._info)
        chosen = [self[name] for name in ([topics] if isinstance(topics, str) else topics)]
        distance = _times.span_ns(tolerance) if tolerance is not None else None
        return _align.aligned(self._reader, [topic.name for topic in chosen], self._grid(on, window, force), how, distance)

    def sql(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """Runs a SQL query with DuckDB. The tables are the topics that have records:
        `battery_status`, and names with slashes in quotes, such as `"battery_status/1"` and
        `"/imu/data"`.

        DuckDB decodes only the columns and times that the query uses. `params` are the values of
        `?` or `$name` in the query. The result is a relation of DuckDB, with methods such as
        `fetchall`, `df`, `pl` and `arrow`.

        Raises MissingLibrary if duckdb or pyarrow is not installed, and the errors of DuckDB.
        """
        return _sql.query(self, query, params)

    def signals(self, *names: str, start: TimeLike | None = None, end: TimeLike | None = None) -> Table:
        """Returns signals as columns, at the times of the first topic that they use.

        A signal is one of these:

        - a field: `vehicle_attitude.q[0]`, or `voltage_v` if only one topic has such a field
        - a pattern with `*`, `?`, `{a,b}` or `[0..3]`
        - a derived field: `vehicle_attitude.q.roll`, or `I1` of a power log
        - an expression: `V1*I1`, `deg(vehicle_attitude.q.yaw)`, `norm(sensor_combined.gyro_rad)`,
          `integral(V1*I1)`, `in(speed, km/h)`
        - any of these with a new name: `P=V1*I1`

        Columns are `t_ns`, `time` if the log has UTC, and the signals as float64 with NaN for
        missing values. A signal of another topic has the value of the last record before the time
        of the row. The units are in the Arrow metadata.

        Raises FieldNotFound, which suggests similar signals, also if the units of an expression do
        not match. On the command line: `rovelog plot FILE SIGNAL...` and `--fields`.
        """
        if not names:
            raise ValueError("name at least one signal")
        return Table(_core.signal_values(self._reader, list(names), _times.window(start, end, self._info)))

    def plot(
        self,
        *signals: str,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        width: int = 1000,
        dark: bool = False,
    ) -> Plot:
        """Draws signals over time. A notebook shows the result; `.save("plot.svg")` writes it.

        Signals have the same forms as in `signals`. Each argument has a panel. Signals that are
        joined by a comma share a panel: `"vehicle_attitude.q.roll,vehicle_attitude_setpoint.roll_body"`.
        Without signals, the panels of `rovelog report` are drawn. `"psd(gyro_rad)"` and
        `"spectrogram(gyro_rad[0])"` draw spectra. `start` is inclusive, `end` is exclusive; see
        `Topic.between`. `width` is in pixels, and `dark` selects dark colors.

        Raises FieldNotFound, and UnsupportedError if there are no values. On the command line:
        `rovelog plot FILE SIGNAL... -o OUT.svg`.
        """
        window = _times.window(start, end, self._info)
        return Plot(_core.plot_svg(self._reader, list(signals), window, width, dark), self._sources)

    @overload
    def events(self) -> list[Event]: ...

    @overload
    def events(
        self, condition: str, *, start: TimeLike | None = None, end: TimeLike | None = None
    ) -> list[Occurrence]: ...

    def events(
        self, condition: str | None = None, *, start: TimeLike | None = None, end: TimeLike | None = None
    ) -> list[Occurrence] | list[Event]:
        """Returns the time ranges in which a condition holds. Without a condition, returns the
        events that the autopilot reported, as `log.ulog.events`.

        Examples are `battery_status.voltage_v < 14.8 for 2s` and `vehicle_status.nav_state
        changes`. Signals have the same forms as in `signals`. `and`, `or` and `not` combine
        comparisons.

        Raises FieldNotFound, and UnsupportedError without a condition for formats other than ULog.
        On the command line: `rovelog events FILE CONDITION`.
        """
        if condition is None:
            return self.ulog.events
        rows = _core.signal_events(self._reader, condition, _times.window(start, end, self._info))
        return [Occurrence(*row) for row in rows]

    def _grid(self, on: str | dt.timedelta | Iterable[int], window: Window, force: bool) -> Any:
        """Returns the times of the rows of `align`, in ns."""
        numpy = require("numpy")
        if isinstance(on, str) and on in self:
            times = self[on].select().between(*window).numpy()["t_ns"]
            # A record without a time does not become a row.
            return numpy.sort(numpy.ma.compressed(times))
        if not isinstance(on, (str, dt.timedelta)):
            return numpy.asarray(on if hasattr(on, "__len__") else list(on), dtype=numpy.int64)
        if isinstance(on, str) and _core.duration_ns(on) is None:
            raise topic_not_found(on, self.topics, path=self._reader.path)
        step = _times.span_ns(on)
        first = self._info.data_start_ns if window[0] is None else window[0]
        last = self._info.data_end_ns if window[1] is None else window[1] - 1
        if step <= 0:
            raise ValueError("the step of a grid must be positive")
        if first is None or last is None:
            return numpy.empty(0, dtype=numpy.int64)
        if not force:
            _core.check_regular_rows(self._reader, first, last, step)
        return numpy.arange(first, last + 1, step, dtype=numpy.int64)

    @cached_property
    def findings(self) -> list[Finding]:
        """What went wrong, in time order: causes such as `battery-brownout`, with their severity and
        the values that show them. On the command line: `rovelog findings FILE`.
        """
        return _findings.findings(self._reader)

    @cached_property
    def problems(self) -> list[Problem]:
        """Diagnostics, in file order. On the command line: `rovelog check FILE`."""
        return [Problem(*row) for row in self._reader.problems()]

    def health(self, *, start: TimeLike | None = None, end: TimeLike | None = None) -> dict[str, TopicHealth]:
        """Returns statistics about the record times of each topic: gaps, jitter, falling and
        repeated times.

        `start` is inclusive, `end` is exclusive; see `Topic.between`. On the command line: `rovelog
        stats FILE --timing`.
        """
        window = _times.window(start, end, self._info)
        found = [TopicHealth(**facts) for facts in self._reader.health(window)]
        return {health.topic: health for health in found if health.topic in self.topics}

    @cached_property
    def text(self) -> list[Text]:
        """Console messages, in file order. Empty if the format has no console messages.

        On the command line: `rovelog messages FILE`.
        """
        return [Text(*row) for row in self._reader.texts() or []]

    @property
    def params(self) -> dict[str, int | float]:
        """Parameters at the start of the data; see `ulog.parameters`.

        Raises UnsupportedError for formats other than ULog.

        On the command line: `rovelog params FILE`.
        """
        return self.ulog.parameters.initial

    @cached_property
    def ulog(self) -> UlogExtras:
        """ULog only: parameters, info messages, dropouts, events, flight modes.

        Raises UnsupportedError for other formats.
        """
        return UlogExtras(self._reader_of("ulog", "ULog"))

    @cached_property
    def rld(self) -> RldExtras:
        """RLD only: currents, charge and energy. Raises UnsupportedError for other formats."""
        return RldExtras(self._reader_of("rld", "RLD log"), self._info)

    @cached_property
    def vel(self) -> VelExtras:
        """VEL only: images, Velodyne revolutions. Raises UnsupportedError for other formats."""
        return VelExtras(self._reader_of("vel", "VEL log"), self._info)

    @cached_property
    def bag(self) -> BagExtras:
        """ROS bags only: connections. Raises UnsupportedError for other formats."""
        return BagExtras(self._reader_of("rosbag", "ROS bag"))

    def _reader_of(self, format: str, name: str) -> _core.Reader:
        """Returns the reader. Raises UnsupportedError if the log has another format."""
        if self.format != format:
            raise UnsupportedError(f"the format of this log is {self._info.format_name}, not {name}", format=self.format, path=self.path)
        return self._reader

    def recover(self, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False) -> Recovered:
        """Writes every intact record to the new log `out`. Returns statistics about kept and lost
        data.

        `drop_stale` skips stale rows, which are old data that a damaged memory card returned.
        `force` replaces an existing file. Raises WriteError if the file cannot be written. On the
        command line: `rovelog recover FILE -o OUT`.
        """
        return Recovered(**write_file(out, self._sources, force, lambda path: self._reader.recover(path, drop_stale)))

    def slice(
        self,
        out: str | os.PathLike[str],
        *,
        topics: str | Iterable[str] | None = None,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        force: bool = False,
    ) -> Sliced:
        """Copies a part of the log to the new log `out`. Records are copied byte by byte.

        `topics` selects topics by name. By default, all topics are copied. `start` is inclusive,
        `end` is exclusive; see `Topic.between`. A slice of a ROS bag also contains the last message
        before `start` from each latching publisher. `force` replaces an existing file.

        Raises TopicNotFound, WriteError if the file cannot be written, and ValueError if `out` is a
        time. On the command line: `rovelog slice FILE -o OUT`.
        """
        if isinstance(out, str) and _core.duration_ns(out.lstrip("+-")) is not None:
            raise ValueError(f"{out!r} is a time, but the first argument is the output file: log.slice(\"out\", start={out!r})")
        names, window = self._names(topics), _times.window(start, end, self._info)
        return Sliced(**write_file(out, self._sources, force, lambda path: self._reader.slice(path, names, window)))

    def close(self) -> None:
        """Releases the file. Topics that were returned before can still be read, and they keep the
        file open.
        """
        self._open_reader = None
        # Cached properties have references to the reader, which would keep the file open.
        for cached in ("topics", "ulog", "rld", "vel", "bag"):
            self.__dict__.pop(cached, None)

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
