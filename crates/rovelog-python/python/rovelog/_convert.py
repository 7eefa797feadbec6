"""Logs handed on to other tools."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Literal, NamedTuple

from rovelog import _core, _times
from rovelog._errors import DataLossWarning, ReadError, RovelogError, UnsupportedError
from rovelog._log import Log, Source, open
from rovelog._rewrite import demand_free, partials
from rovelog._times import Moment
from rovelog._types import ExportOptions

OPEN = 200
"""Tables that are open at the same time."""


class Loss(NamedTuple):
    """Something that a kind of file could not carry."""

    topic: str
    field: str | None
    """None where it is about all of the topic."""
    why: str
    """What happened to how many values: `holds bytes, which csv cannot carry`."""


class Converted(NamedTuple):
    """What was written."""

    kind: str
    """`parquet`, `arrow`, `csv`, `ndjson`, `mcap` or `bag2`."""
    records: int
    """Rows or messages. In mcap, those of the types that viewers draw count too."""
    topics: list[str]
    """The topics whose records were written."""
    files: list[str]
    """The files, for tables in the order of the topics."""
    lost: list[Loss]
    """What could not be carried; empty where nothing was lost."""


def convert(
    src: Source | Log,
    dst: str | os.PathLike[str],
    *,
    kind: str | None = None,
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
    compression: Literal["none", "bz2"] = "none",
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
    """Writes a log as Parquet, Arrow, CSV, NDJSON or MCAP, an old ROS bag also as one of V2.0.

    `kind` is one of `parquet`, `arrow`, `csv`, `ndjson`, `mcap`, `bag2` (extension `.bag`); without it, the extension of `dst`
    says it. Tables hold one
    topic per file: for several, `dst` is a folder, which need not exist. In mcap, positions, poses and console lines also
    stand as the types that viewers draw. `topics` are names, without them all topics with records. `start` is inclusive,
    `end` is not; see `Topic.between`. `force` replaces files that are there.

    Of mcap: `typed=False` leaves out the types that viewers draw, `keep_ned` keeps poses in the vehicle's axes; of VEL logs
    `raw` writes packets, ranges and images as they lie there, `calibration` is the file of an HDL-64E and `model` the
    Velodyne's where the packets do not tell; of RLD logs `full` writes every sample; of ROS bags `ros2` writes messages of
    ROS 2. `modernize` (mcap, bag2) gives types that were renamed their names of today, `compression` packs the chunks of bag2.
    Of tables: `flatten` makes columns of nested fields and arrays (parquet, arrow), `names` says how elements are called,
    `q[0]` or `q.0`; `time_unit`, `profile` and `blobs` (fields of bytes) are for parquet; `delimiter` and `dialect` for csv:
    `pyulog` is what ulog2csv writes, `rocketlogger` the logger's own CSV of a whole RLD log (`rocketlogger-v2` as up to
    version 2, with dates for stamps).

    What could not be carried is in `lost`, and one `DataLossWarning` says so. Files are whole or not there.
    Raises UnsupportedError for a kind that is not known and for options that it does not have, TopicNotFound, ReadError where a file cannot be written.
    On the command line: `rovelog export FILE -o OUT`.
    """
    path = os.fspath(dst)
    extension = os.path.splitext(path)[1][1:]
    name, table = _kind(kind, extension, path)
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
    _fitting(name, options, topics is None and start is None and end is None)
    if isinstance(src, Log):
        done = _convert(src, path, extension, name, table, topics, start, end, force, options)
    else:
        with open(src) as log:
            done = _convert(log, path, extension, name, table, topics, start, end, force, options)
    if done.lost:
        first = done.lost[0]
        what = first.topic if first.field is None else f"{first.topic}, field {first.field}"
        more = f" (and {len(done.lost) - 1} more, see lost)" if len(done.lost) > 1 else ""
        warnings.warn(f"{name} could not carry all: {what}: {first.why}{more}", DataLossWarning, stacklevel=2)
    return done


def _kind(kind: str | None, extension: str, path: str) -> tuple[str, bool]:
    found = _core.export_kind(extension if kind is None else kind)
    if found is None:
        kinds = "parquet, arrow, csv, ndjson, mcap or bag2"
        what = f"there is no kind {kind}" if kind is not None else "the name does not say what to write"
        raise UnsupportedError(what, path=path, next=f"say it: kind= one of {kinds}")
    return found


CHOICES: dict[str, tuple[str | None, ...]] = {
    "compression": ("none", "bz2"),
    "names": ("bracket", "dot"),
    "dialect": ("plain", "pyulog", "rocketlogger", "rocketlogger-v2"),
    "time_unit": ("us", "ns"),
    "profile": (None, "spark"),
}
"""Options that are one of a few words; the first is what they are where nothing was said."""

USUAL: dict[str, object] = {"typed": True, "delimiter": ",", "calibration": None, "model": None}
"""What other options are where nothing was said, if not False."""

KINDS: dict[str, tuple[str, ...]] = {
    "typed": ("mcap",),
    "keep_ned": ("mcap",),
    "raw": ("mcap",),
    "full": ("mcap",),
    "ros2": ("mcap",),
    "modernize": ("mcap", "bag2"),
    "compression": ("bag2",),
    "calibration": ("mcap",),
    "model": ("mcap",),
    "flatten": ("parquet", "arrow"),
    "names": ("csv", "parquet", "arrow"),
    "dialect": ("csv",),
    "delimiter": ("csv",),
    "time_unit": ("parquet",),
    "profile": ("parquet",),
    "blobs": ("parquet",),
}
"""The kinds that an option has a meaning for."""


def _fitting(kind: str, options: ExportOptions, whole: bool) -> None:
    """Options that would have no meaning are refused, so that nobody believes they had."""
    for name, value in options.items():
        words = CHOICES.get(name)
        if words is not None and value not in words:
            raise UnsupportedError(f"{name} is not {value!r}", next=f"it is one of {', '.join(map(repr, words))}")
        usual = words[0] if words is not None else USUAL.get(name, False)
        if value != usual and kind not in KINDS[name]:
            raise UnsupportedError(f"{name} has no meaning for {kind}", next="leave it out")
    delimiter = options["delimiter"]
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise UnsupportedError(f"{delimiter!r} is no delimiter", next="use one character, which is no quote and no end of a line")
    if options["dialect"].startswith("rocketlogger") and (not whole or delimiter != "," or options["names"] != "bracket"):
        what = "the logger's CSV is the whole log, with commas"
        raise UnsupportedError(what, next="leave topics, start, end, delimiter and names out; slice() makes a part of a log")


def _convert(
    log: Log,
    path: str,
    extension: str,
    kind: str,
    table: bool,
    topics: str | Iterable[str] | None,
    start: Moment | None,
    end: Moment | None,
    force: bool,
    options: ExportOptions,
) -> Converted:
    if options["dialect"].startswith("rocketlogger"):
        if log.format != "rld":
            what = f"the logger's CSV is for RLD logs, and this is one of {log.format}"
            raise UnsupportedError(what, path=log.path, next="leave the dialect out")
        with partials([path], log.path, force) as parts:
            records, rows = _core.export_logger_csv(log._reader, parts[0], options["dialect"] != "rocketlogger")
        return Converted(kind, records, [next(iter(log.topics))], [path], [Loss(*row) for row in rows])
    names = [topics] if isinstance(topics, str) else log.topics if topics is None else topics
    chosen = {log.topics[name].name: log.topics[name]._index for name in names if log.topics[name].count}
    if not chosen:
        raise RovelogError("the selected topics have no records", path=log.path, next="see them: log.topics")
    window = (_times.resolve(start, log.info), _times.resolve(end, log.info))
    if not table:
        with partials([path], log.path, force) as parts:
            records, rows = _core.export_records(log._reader, kind, parts[0], [*chosen.values()], window, options)
        return Converted(kind, records, [*chosen], [path], [Loss(*row) for row in rows])
    named, undecodable = _core.export_names(log._reader, [*chosen.values()])
    lost = [Loss(*row) for row in undecodable]
    in_folder = path.endswith(("/", os.sep)) or os.path.isdir(path) or not extension
    if not in_folder and len(named) != 1:
        raise RovelogError(
            f"{kind} holds one topic per file, and {len(named)} are selected",
            path=path,
            next=f"name a folder and kind={kind!r}, or one topic: topics={next(iter(chosen))!r}",
        )
    paths = [path]
    if in_folder:
        if os.path.isfile(path.rstrip("/" + os.sep)):
            raise RovelogError("the output is a file, not a folder", path=path, next="name a folder, which need not exist")
        stem = "log" if log.path is None else os.path.splitext(os.path.basename(log.path))[0]
        paths = [os.path.join(path, f"{stem}_{name.lstrip('_')}.{kind}") for _, name in named]
        # Whoever has to name another folder finds this one as it was.
        for file in paths:
            demand_free(file, log.path, force)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise ReadError(f"cannot make the folder: {error.strerror}", path=path, next="name another folder") from error
    records = 0
    numbers = [number for number, _ in named]
    for at in range(0, len(paths), OPEN):
        with partials(paths[at : at + OPEN], log.path, force) as parts:
            outputs = list(zip(numbers[at : at + OPEN], parts, strict=True))
            rows_of, found = _core.export_tables(log._reader, kind, outputs, window, options)
        records += sum(rows_of)
        lost += [Loss(*row) for row in found]
    by_number = {number: name for name, number in chosen.items()}
    return Converted(kind, records, [by_number[number] for number in numbers], paths, lost)
