"""Conversion of logs to other formats."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Literal, NamedTuple

from rovelog import _core, _times
from rovelog._errors import RovelogError, UnsupportedError, WriteError, warn
from rovelog._files import demand_free, folder_for_outputs, partials, place
from rovelog._log import Log, opened
from rovelog._source import Source
from rovelog._times import Moment
from rovelog._types import ExportOptions, Window

OPEN = 200
"""Tables that are open at the same time."""


Kind = Literal["parquet", "arrow", "csv", "ndjson", "mcap", "bag2"]
"""The kinds of file that `convert` writes."""
KINDS = "parquet, arrow, csv, ndjson, mcap or bag2"


class Loss(NamedTuple):
    """Data that the output cannot contain.

    topic           name of the topic
    field           name of the field; None if the whole topic is affected
    why             the reason, with the number of values: `raw bytes, which CSV cannot represent`
    """

    topic: str
    field: str | None
    why: str


class Converted(NamedTuple):
    """Result of `convert`.

    kind            `parquet`, `arrow`, `csv`, `ndjson`, `mcap` or `bag2`
    records         number of rows or messages; in mcap, including the messages of Foxglove types
    topics          topics with written records
    files           written files; of tables in the order of the topics
    lost            data that the output cannot contain; empty if nothing was lost
    """

    kind: str
    records: int
    topics: list[str]
    files: list[str]
    lost: list[Loss]


def convert(
    src: Source | Log,
    dst: str | os.PathLike[str] | IO[bytes],
    *,
    kind: Kind | None = None,
    topics: str | Iterable[str] | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    force: bool = False,
    typed: bool = True,
    keep_ned: bool = False,
    raw: bool = False,
    full: bool = False,
    ros2: bool = False,
    modernize: bool = False,
    compression: Literal["none", "lz4", "bz2"] = "none",
    calibration: str | os.PathLike[str] | None = None,
    model: str | None = None,
    flatten: bool = False,
    names: Literal["bracket", "dot"] = "bracket",
    dialect: Literal["plain", "pyulog", "rocketlogger", "rocketlogger-v2"] = "plain",
    delimiter: str = ",",
    time_unit: Literal["us", "ns"] = "us",
    profile: Literal["spark"] | None = None,
    blobs: bool = False,
) -> Converted:
    """Converts a log to Parquet, Arrow, CSV, NDJSON or MCAP, or an old ROS bag to V2.0.

    `src` is a log, or an argument of `open`. `kind` is `parquet`, `arrow`, `csv`, `ndjson`, `mcap`
    or `bag2` (extension `.bag`); by default it follows from the extension of `dst`. Tables contain
    one topic per file: for several topics, `dst` is a folder, which is created if it does not
    exist. MCAP also contains positions, poses and console messages as Foxglove types. `topics` are
    names; by default all topics with records. `dst` may be a binary file object, with `kind` and,
    for tables, one topic. `start` is inclusive, `end` is exclusive; see
    `Topic.between`. `force` replaces existing files; a device or a pipe is written in place.

    MCAP: `typed=False` leaves out Foxglove types; `keep_ned` keeps poses in north-east-down axes.
    VEL: `raw` writes the original packets, ranges and images; `calibration` is the calibration file
    of an HDL-64E; `model` is the Velodyne model if the packets do not contain it. RLD: `full`
    writes every sample. ROS bags: `ros2` writes ROS 2 messages. `modernize` (mcap, bag2) uses the
    new names of renamed types. `compression` compresses the chunks of bag2.

    Tables: `flatten` makes columns of nested fields and arrays (parquet, arrow); `names` selects
    element names `q[0]` or `q.0`; `time_unit`, `profile` and `blobs` (raw bytes) are for parquet;
    `delimiter` and `dialect` for csv. The dialect `pyulog` writes like ulog2csv, `rocketlogger`
    like the logger (always a whole RLD log; `rocketlogger-v2` like loggers up to version 2, with
    dates as block times).

    Data that the output cannot contain is in `lost`, and one `DataLossWarning` reports it. Files
    are written completely or not at all. Raises UnsupportedError for an unknown kind and for
    options that do not apply to it, TopicNotFound, and WriteError if a file cannot be written. On
    the command line: `rovelog export FILE -o OUT`.
    """
    if not isinstance(dst, (str, os.PathLike)) and kind is None:
        raise UnsupportedError("a file object has no name that says what to write", next=f"say it: kind= one of {KINDS}")
    options: ExportOptions = {
        "typed": typed,
        "keep_ned": keep_ned,
        "raw": raw,
        "full": full,
        "ros2": ros2,
        "modernize": modernize,
        "compression": compression,
        "calibration": None if calibration is None else os.fspath(calibration),
        "model": model,
        "flatten": flatten,
        "names": names,
        "dialect": dialect,
        "delimiter": delimiter,
        "time_unit": time_unit,
        "profile": profile,
        "blobs": blobs,
    }
    with _place_for(dst, kind) as path:
        name, table = _kind(kind, path)
        _fitting(name, options, topics is None and start is None and end is None)
        with opened(src) as log:
            if dialect.startswith("rocketlogger"):
                done = _logger_csv(log, path, force, dialect != "rocketlogger")
            else:
                chosen, window = _chosen(log, topics), _times.window(start, end, log.info)
                write = _tables if table else _one_file
                done = write(log, path, name, chosen, window, force, options)
        if not isinstance(dst, (str, os.PathLike)):
            with open(path, "rb") as file:
                _copy(file, dst)
            done = done._replace(files=[])
    if done.lost:
        first = done.lost[0]
        what = first.topic if first.field is None else f"{first.topic}, field {first.field}"
        more = f" (and {len(done.lost) - 1} more, see lost)" if len(done.lost) > 1 else ""
        warn(f"{name} cannot contain all data: {what}: {first.why}{more}")
    return done


def _copy(source: IO[bytes], dst: IO[bytes]) -> None:
    """Writes all of a file to a file object, whose `write` may accept only a part of the bytes at a time."""
    while piece := source.read(1 << 20):
        while piece:
            written = dst.write(piece)
            if written is None and not isinstance(dst, io.RawIOBase):
                # Writers that are not built on `io` commonly return nothing.
                break
            if not written or not 0 < written <= len(piece):
                what = f"the file object accepted {written} of {len(piece)} bytes"
                raise WriteError(what, next="give a file object that blocks until it can write, or convert to a file")
            piece = piece[written:]


@contextlib.contextmanager
def _place_for(dst: str | os.PathLike[str] | IO[bytes], kind: str | None) -> Iterator[str]:
    """The path to write to: a temporary one for a file object, because outputs are written from several places."""
    if isinstance(dst, (str, os.PathLike)):
        yield place(dst)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, f"log.{kind}")


def _extension(path: str) -> str:
    return os.path.splitext(path)[1][1:]


def _kind(kind: str | None, path: str) -> tuple[str, bool]:
    """Returns the name of a kind of file, and whether such a file contains a single topic."""
    found = _core.export_kind(_extension(path) if kind is None else kind)
    if found is None:
        what = f"there is no kind {kind}" if kind is not None else "the name does not say what to write"
        raise UnsupportedError(what, path=path, next=f"say it: kind= one of {KINDS}")
    return found


class Option(NamedTuple):
    """An option of `convert`."""

    kinds: tuple[str, ...]
    """The kinds of file that it has a meaning for."""
    usual: object = False
    """What it is where nothing was said."""
    choices: tuple[object, ...] | None = None
    """What it may be, where that is one of a few words."""


OPTIONS = {
    "typed": Option(("mcap",), True),
    "keep_ned": Option(("mcap",)),
    "raw": Option(("mcap",)),
    "full": Option(("mcap",)),
    "ros2": Option(("mcap",)),
    "modernize": Option(("mcap", "bag2")),
    "compression": Option(("bag2",), "none", ("none", "lz4", "bz2")),
    "calibration": Option(("mcap",), None),
    "model": Option(("mcap",), None),
    "flatten": Option(("parquet", "arrow")),
    "names": Option(("csv", "parquet", "arrow"), "bracket", ("bracket", "dot")),
    "dialect": Option(("csv",), "plain", ("plain", "pyulog", "rocketlogger", "rocketlogger-v2")),
    "delimiter": Option(("csv",), ","),
    "time_unit": Option(("parquet",), "us", ("us", "ns")),
    "profile": Option(("parquet",), None, (None, "spark")),
    "blobs": Option(("parquet",)),
}


def _fitting(kind: str, options: ExportOptions, whole: bool) -> None:
    """Raises if an option does not apply to the kind."""
    for name, value in options.items():
        known = OPTIONS[name]
        if known.choices is not None and value not in known.choices:
            words = ", ".join(map(repr, known.choices))
            raise UnsupportedError(f"{name} is not {value!r}", next=f"it is one of {words}")
        if value != known.usual and kind not in known.kinds:
            raise UnsupportedError(f"{name} does not apply to {kind}", next="leave it out")
    delimiter = options["delimiter"]
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise UnsupportedError(f"{delimiter!r} is not a delimiter", next="use one character other than a quote or a line break")
    if options["dialect"].startswith("rocketlogger") and (not whole or delimiter != "," or options["names"] != "bracket"):
        what = "the RocketLogger dialect writes the whole log, with commas"
        raise UnsupportedError(what, next="leave out topics, start, end, delimiter and names; for a part of the log use slice() first")


def _chosen(log: Log, topics: str | Iterable[str] | None) -> dict[str, int]:
    """Returns the topics to write, those with records: name -> number."""
    names = [topics] if isinstance(topics, str) else log.topics if topics is None else topics
    chosen = {log.topics[name].name: log.topics[name]._index for name in names if log.topics[name].count}
    if not chosen:
        raise RovelogError("the selected topics have no records", path=log.path, next="list the topics: log.topics")
    return chosen


def _logger_csv(log: Log, path: str, force: bool, dates: bool) -> Converted:
    if log.format != "rld":
        what = f"the RocketLogger dialect is for RLD logs, not for {log.format}"
        raise UnsupportedError(what, path=log.path, next="leave out dialect")
    with partials([path], log._sources, force) as parts:
        records, lost = _core.export_logger_csv(log._reader, parts[0], dates)
    return Converted("csv", records, [next(iter(log.topics))], [path], [Loss(*row) for row in lost])


def _one_file(
    log: Log, path: str, kind: str, chosen: dict[str, int], window: Window, force: bool, options: ExportOptions
) -> Converted:
    read = [*log._sources, *filter(None, [options["calibration"]])]
    with partials([path], read, force) as parts:
        records, lost = _core.export_records(log._reader, kind, parts[0], [*chosen.values()], window, options)
    return Converted(kind, records, [*chosen], [path], [Loss(*row) for row in lost])


def _tables(
    log: Log, path: str, kind: str, chosen: dict[str, int], window: Window, force: bool, options: ExportOptions
) -> Converted:
    named, lost = _core.export_names(log._reader, [*chosen.values()])
    in_folder = path.endswith(("/", os.sep)) or os.path.isdir(path) or not _extension(path)
    if not in_folder and len(named) != 1:
        raise RovelogError(
            f"a {kind} file contains one topic, but {len(named)} are selected",
            path=path,
            next=f"name a folder and kind={kind!r}, or one topic: topics={next(iter(chosen))!r}",
        )
    paths = _paths_in_folder(log, path, kind, [name for _, name in named], force) if in_folder else [path]
    records = 0
    numbers = [number for number, _ in named]
    with folder_for_outputs(path) if in_folder else contextlib.nullcontext():
        for at in range(0, len(paths), OPEN):
            with partials(paths[at : at + OPEN], log._sources, force) as parts:
                outputs = list(zip(numbers[at : at + OPEN], parts, strict=True))
                rows, found = _core.export_tables(log._reader, kind, outputs, window, options)
            records += sum(rows)
            lost += found
    by_number = {number: name for name, number in chosen.items()}
    return Converted(kind, records, [by_number[number] for number in numbers], paths, [Loss(*row) for row in lost])


def _paths_in_folder(log: Log, folder: str, kind: str, names: list[str], force: bool) -> list[str]:
    """Returns the paths of the files in a folder, which can be written."""
    if os.path.isfile(folder.rstrip("/" + os.sep)):
        raise RovelogError("the output is a file, not a folder", path=folder, next="name a folder; it is created if it does not exist")
    stem = "log" if log.path is None else os.path.splitext(os.path.basename(log.path))[0]
    paths = [os.path.join(folder, f"{stem}_{name.lstrip('_')}.{kind}") for name in names]
    # Check all paths before the folder is created.
    for path in paths:
        demand_free(path, log._sources, force)
    return paths
