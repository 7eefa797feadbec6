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
from rovelog._output import check_writable, expand_user, output_folder, partial_files
from rovelog._log import Log, opened
from rovelog._source import Source
from rovelog._times import TimeLike
from rovelog._types import ExportOptions, Window

MAX_OPEN_FILES = 200
"""Maximum number of tables that are written at the same time. macOS limits a process to 256 open
files by default.
"""

Kind = Literal["parquet", "arrow", "csv", "ndjson", "mcap", "bag2"]
"""The kinds of files that `convert` writes."""
KINDS = "parquet, arrow, csv, ndjson, mcap or bag2"


class Loss(NamedTuple):
    """Data that the output cannot contain.

    topic           name of the topic
    field           name of the field; None if the whole topic is affected
    why             reason: `raw bytes, which CSV cannot represent`
    """

    topic: str
    field: str | None
    why: str


class Converted(NamedTuple):
    """Result of `convert`.

    kind            kind of the output: `parquet`, `arrow`, `csv`, `ndjson`, `mcap` or `bag2`
    records         number of written rows or messages, including messages of Foxglove types in MCAP
    topics          names of the topics with written records
    files           paths of the written files; tables are in the order of `topics`
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
    start: TimeLike | None = None,
    end: TimeLike | None = None,
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
    """Converts a log to Parquet, Arrow, CSV, NDJSON or MCAP, or to a ROS bag V2.0.

    - `src`: a log, or an argument of `open`
    - `dst`: a path, or a binary file object. A table contains one topic, so `dst` is a folder for
      several topics. It is created if it does not exist. A device or a pipe is written in place.
    - `kind`: `parquet`, `arrow`, `csv`, `ndjson`, `mcap` or `bag2`. By default, the extension of
      `dst` determines the kind (`.bag` is `bag2`). A file object needs `kind`, and one topic for
      tables.
    - `topics`: names of topics; by default all topics with records
    - `start` (inclusive), `end` (exclusive): times; see `Topic.between`
    - `force`: replaces existing files

    Options for MCAP:

    - `typed=False`: leaves out the messages of Foxglove types (positions, poses, console messages)
    - `keep_ned`: writes poses with north-east-down axes
    - `raw` (VEL): writes the original packets, ranges and images
    - `calibration` (VEL, also bag2): calibration file of an HDL-64E
    - `model` (VEL, also bag2): Velodyne model, if the packets do not contain it
    - `full` (RLD): writes every sample
    - `ros2` (ROS bags, ULog, VEL): writes ROS 2 messages
    - `modernize` (ROS bags, also bag2): uses the new names of renamed types

    Options for other kinds:

    - `compression` (bag2): compression of the chunks
    - `flatten` (parquet, arrow): makes one column per nested field and array element
    - `names` (csv, parquet, arrow): names of elements, `q[0]` or `q.0`
    - `time_unit`, `profile`, `blobs` (parquet): unit of the times, target engine, fields of raw
      bytes
    - `delimiter` (csv): delimiter of the columns
    - `dialect` (csv): `pyulog` writes like ulog2csv, `rocketlogger` like the logger, and
      `rocketlogger-v2` like loggers up to version 2, with dates as block times. Both RocketLogger
      dialects write whole RLD logs.

    Data that the output cannot contain is listed in `lost`, and one `DataLossWarning` reports it.
    Files are written atomically. Raises UnsupportedError for an unknown kind and for options that
    do not apply to the kind, TopicNotFound, and WriteError if a file cannot be written. On the
    command line: `rovelog export FILE -o OUT`.
    """
    if not isinstance(dst, (str, os.PathLike)) and kind is None:
        raise UnsupportedError("the output format must be given for a file object", next=f"pass kind=, one of {KINDS}")
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
    with _output_path(dst, kind) as path:
        name, is_table = _kind(kind, path)
        _check_options(name, options, topics is None and start is None and end is None)
        with opened(src) as log:
            if dialect.startswith("rocketlogger"):
                done = _logger_csv(log, path, force, dialect != "rocketlogger")
            else:
                chosen, window = _chosen(log, topics), _times.window(start, end, log.info)
                write = _tables if is_table else _one_file
                done = write(log, path, name, chosen, window, force, options)
        if not isinstance(dst, (str, os.PathLike)):
            with open(path, "rb") as file:
                _copy(file, dst)
            done = done._replace(files=[])
    if done.lost:
        first = done.lost[0]
        what = first.topic if first.field is None else f"{first.topic}, field {first.field}"
        more = f" (and {len(done.lost) - 1} more, see lost)" if len(done.lost) > 1 else ""
        warn(f"{name} does not contain all data: {what}: {first.why}{more}")
    return done


def _copy(source: IO[bytes], dst: IO[bytes]) -> None:
    """Copies a file to a file object. An unbuffered file object may write only some of the bytes in
    each call.
    """
    while piece := source.read(1 << 20):
        while piece:
            written = dst.write(piece)
            if written is None and not isinstance(dst, io.RawIOBase):
                # File objects that are not derived from `io` classes often return None after
                # writing all bytes. A raw file object returns None if it would block.
                break
            if not written or not 0 < written <= len(piece):
                what = f"the file object accepted {written} of {len(piece)} bytes"
                raise WriteError(what, next="give a file object that blocks until it can write, or convert to a file")
            piece = piece[written:]


@contextlib.contextmanager
def _output_path(dst: str | os.PathLike[str] | IO[bytes], kind: str | None) -> Iterator[str]:
    """Returns the path of the file to write. For a file object, this is a temporary file, because
    some writers need to seek in the file.
    """
    if isinstance(dst, (str, os.PathLike)):
        yield expand_user(dst)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, f"log.{kind}")


def _extension(path: str) -> str:
    return os.path.splitext(path)[1][1:]


def _kind(kind: str | None, path: str) -> tuple[str, bool]:
    """Returns the canonical name of an output kind, and True if a file of this kind contains a
    single topic.
    """
    found = _core.export_kind(_extension(path) if kind is None else kind)
    if found is None:
        what = f"the output format {kind} is unknown" if kind is not None else "no output format has the extension of the output"
        raise UnsupportedError(what, path=path, next=f"pass kind=, one of {KINDS}")
    return found


class Option(NamedTuple):
    """An option of `convert`."""

    kinds: tuple[str, ...]
    """Kinds of files that the option applies to."""
    default: object = False
    """Default value of the option."""
    choices: tuple[object, ...] | None = None
    """Allowed values; None if the values are not limited to a list."""


OPTIONS = {
    "typed": Option(("mcap",), True),
    "keep_ned": Option(("mcap",)),
    "raw": Option(("mcap",)),
    "full": Option(("mcap",)),
    "ros2": Option(("mcap",)),
    "modernize": Option(("mcap", "bag2")),
    "compression": Option(("bag2",), "none", ("none", "lz4", "bz2")),
    "calibration": Option(("mcap", "bag2"), None),
    "model": Option(("mcap", "bag2"), None),
    "flatten": Option(("parquet", "arrow")),
    "names": Option(("csv", "parquet", "arrow"), "bracket", ("bracket", "dot")),
    "dialect": Option(("csv",), "plain", ("plain", "pyulog", "rocketlogger", "rocketlogger-v2")),
    "delimiter": Option(("csv",), ","),
    "time_unit": Option(("parquet",), "us", ("us", "ns")),
    "profile": Option(("parquet",), None, (None, "spark")),
    "blobs": Option(("parquet",)),
}


def _check_options(kind: str, options: ExportOptions, whole: bool) -> None:
    """Raises UnsupportedError if an option has an invalid value or does not apply to the output
    kind.
    """
    for name, value in options.items():
        known = OPTIONS[name]
        if known.choices is not None and value not in known.choices:
            words = ", ".join(map(repr, known.choices))
            raise UnsupportedError(f"{name} cannot be {value!r}", next=f"use one of {words}")
        if value != known.default and kind not in known.kinds:
            raise UnsupportedError(f"{name} does not apply to {kind}", next=f"leave out {name}")
    if options["profile"] == "spark" and options["time_unit"] == "ns":
        raise UnsupportedError("Spark cannot read times in nanoseconds", next="leave out time_unit or profile")
    delimiter = options["delimiter"]
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise UnsupportedError(f"{delimiter!r} is not a delimiter", next="use one character other than a quote or a line break")
    if options["dialect"].startswith("rocketlogger") and (not whole or delimiter != "," or options["names"] != "bracket"):
        what = "the RocketLogger dialect always writes the whole log, with commas"
        raise UnsupportedError(what, next="leave out topics, start, end, delimiter and names; to convert a part of the log, use slice() first")


def _chosen(log: Log, topics: str | Iterable[str] | None) -> dict[str, int]:
    """Returns a dict from the name to the index of each selected topic that has records."""
    names = [topics] if isinstance(topics, str) else log.topics if topics is None else topics
    chosen = {log.topics[name].name: log.topics[name]._index for name in names if log.topics[name].count}
    if not chosen:
        raise RovelogError("the selected topics have no records", path=log.path, next="list the topics: log.topics")
    return chosen


def _logger_csv(log: Log, path: str, force: bool, dates: bool) -> Converted:
    if log.format != "rld":
        what = f"the RocketLogger dialect can only be written from RLD logs, but this is a {log.format} log"
        raise UnsupportedError(what, path=log.path, next="leave out dialect")
    with partial_files([path], log._sources, force) as parts:
        records, lost = _core.export_logger_csv(log._reader, parts[0], dates)
    return Converted("csv", records, [next(iter(log.topics))], [path], [Loss(*row) for row in lost])


def _one_file(
    log: Log, path: str, kind: str, chosen: dict[str, int], window: Window, force: bool, options: ExportOptions
) -> Converted:
    read = [*log._sources, *filter(None, [options["calibration"]])]
    with partial_files([path], read, force) as parts:
        records, lost = _core.export_records(log._reader, kind, parts[0], [*chosen.values()], window, options)
    return Converted(kind, records, [*chosen], [path], [Loss(*row) for row in lost])


def _tables(
    log: Log, path: str, kind: str, chosen: dict[str, int], window: Window, force: bool, options: ExportOptions
) -> Converted:
    topic_files, lost = _core.export_names(log._reader, [*chosen.values()])
    in_folder = path.endswith(("/", os.sep)) or os.path.isdir(path) or not _extension(path)
    if not in_folder and len(topic_files) != 1:
        raise RovelogError(
            f"a {kind} file can contain only one topic, but {len(topic_files)} are selected",
            path=path,
            next=f"name a folder and kind={kind!r}, or select one topic with topics={next(iter(chosen))!r}",
        )
    paths = _paths_in_folder(log, path, kind, [name for _, name in topic_files], force) if in_folder else [path]
    records = 0
    numbers = [number for number, _ in topic_files]
    with output_folder(path) if in_folder else contextlib.nullcontext():
        for at in range(0, len(paths), MAX_OPEN_FILES):
            with partial_files(paths[at : at + MAX_OPEN_FILES], log._sources, force) as parts:
                outputs = list(zip(numbers[at : at + MAX_OPEN_FILES], parts, strict=True))
                rows, found = _core.export_tables(log._reader, kind, outputs, window, options)
            records += sum(rows)
            lost += found
    by_number = {number: name for name, number in chosen.items()}
    return Converted(kind, records, [by_number[number] for number in numbers], paths, [Loss(*row) for row in lost])


def _paths_in_folder(log: Log, folder: str, kind: str, names: list[str], force: bool) -> list[str]:
    """Returns the paths of the files to write in a folder. Raises WriteError if one of these files
    must not be written.
    """
    if os.path.isfile(folder.rstrip("/" + os.sep)):
        raise RovelogError("the output must be a folder, but is a file", path=folder, next="name a folder; it is created if it does not exist")
    stem = "log" if log.path is None else os.path.splitext(os.path.basename(log.path))[0]
    paths = [os.path.join(folder, f"{stem}_{name.lstrip('_')}.{kind}") for name in names]
    # All paths are checked before the folder is created, so that an error leaves no empty folder.
    for path in paths:
        check_writable(path, log._sources, force)
    return paths
