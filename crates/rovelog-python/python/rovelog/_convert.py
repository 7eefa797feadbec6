"""Logs handed on to other tools."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._errors import DataLossWarning, ReadError, RovelogError, UnsupportedError
from rovelog._log import Log, Source, open
from rovelog._rewrite import demand_free, partials
from rovelog._times import Moment

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
) -> Converted:
    """Writes a log as Parquet, Arrow, CSV, NDJSON or MCAP, an old ROS bag also as one of V2.0.

    `kind` is one of `parquet`, `arrow`, `csv`, `ndjson`, `mcap`, `bag2` (extension `.bag`); without it, the extension of `dst`
    says it. Tables hold one
    topic per file: for several, `dst` is a folder, which need not exist. In mcap, positions, poses and console lines also
    stand as the types that viewers draw. `topics` are names, without them all topics with records. `start` is inclusive,
    `end` is not; see `Topic.between`. `force` replaces files that are there.

    What could not be carried is in `lost`, and one `DataLossWarning` says so. Files are whole or not there.
    Raises UnsupportedError for a kind that is not known, TopicNotFound, ReadError where a file cannot be written.
    On the command line: `rovelog export FILE -o OUT`.
    """
    path = os.fspath(dst)
    extension = os.path.splitext(path)[1][1:]
    name, table = _kind(kind, extension, path)
    if isinstance(src, Log):
        done = _convert(src, path, extension, name, table, topics, start, end, force)
    else:
        with open(src) as log:
            done = _convert(log, path, extension, name, table, topics, start, end, force)
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
) -> Converted:
    names = [topics] if isinstance(topics, str) else log.topics if topics is None else topics
    chosen = {log.topics[name].name: log.topics[name]._index for name in names if log.topics[name].count}
    if not chosen:
        raise RovelogError("the selected topics have no records", path=log.path, next="see them: log.topics")
    window = (_times.resolve(start, log.info), _times.resolve(end, log.info))
    if not table:
        with partials([path], log.path, force) as parts:
            records, rows = _core.export_records(log._reader, kind, parts[0], [*chosen.values()], *window)
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
            rows_of, found = _core.export_tables(log._reader, kind, outputs, *window)
        records += sum(rows_of)
        lost += [Loss(*row) for row in found]
    by_number = {number: name for name, number in chosen.items()}
    return Converted(kind, records, [by_number[number] for number in numbers], paths, lost)
