"""Functions on files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._facts import Recovered
from rovelog._log import Log, opened
from rovelog._source import Source
from rovelog._topic import missing


class FormatFacts(NamedTuple):
    """A format that is built in.

    id              `ulog`
    name            `ULog`
    about           short description
    """

    id: str
    name: str
    about: str


def formats() -> list[FormatFacts]:
    """Returns the formats that are built in. On the command line: `rovelog --version`."""
    return [FormatFacts(*row) for row in _core.formats()]


def recover(
    f: Source | Log, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False
) -> Recovered:
    """Writes every intact record of a damaged log to the new log `out` and returns what was kept
    and lost.

    `f` is a log, or an argument of `open`; `drop_stale` leaves out stale rows of another time,
    `force` replaces an existing file. Raises WriteError if the file cannot be written, and the
    errors of `open`. On the command line: `rovelog recover FILE -o OUT`.
    """
    if isinstance(f, Log):
        return f.recover(out, drop_stale=drop_stale, force=force)
    # No warning: the caller knows of the damage, and the result reports it.
    with Log(_source.reader(f)) as log:
        return log.recover(out, drop_stale=drop_stale, force=force)


def diff(
    a: Source | Log,
    b: Source | Log,
    *,
    ignore_counts: bool = False,
    ignore_calibration: bool = False,
    stats: bool = False,
    fields: str | Iterable[str] = (),
    topics: str | Iterable[str] = (),
) -> dict[str, Any]:
    """Compares two logs: returns the document of `rovelog diff A B -f json`, with the keys
    `different` (bool), `topics`, `formats`, `params`.

    Each of the last three is a list of dicts with `name` (fields: `format` and `field`), `change`
    (`removed`, `added`, `changed`), and the values of `a` and `b`, None if missing. Topics are
    compared by type, count and rate (more than 1 %, Hz), formats by the types of fields, parameters
    by their values at the start of the logs. `ignore_counts` compares rates only,
    `ignore_calibration` skips parameters that differ between any two vehicles; `topics` are the only
    ones to compare.

    With `stats`, `statistics` is a list with `topic`, `field`, `unit`, and `count`, `min`, `max`, `mean`
    and `std` of `a` and `b`, of every signal that both logs have. `fields` are the signals to compare:
    fields, derived fields and expressions, as in `Topic.select`.

    Raises TopicNotFound, FieldNotFound, and the errors of `open`. On the command line: `rovelog diff A
    B`, with `--stats`, `--fields` and `--topics`.
    """
    names, signals = _list(topics), _list(fields)
    with opened(a) as first, opened(b) as second:
        for name in names:
            if name not in first and name not in second:
                raise missing(name, [*first.topics, *second.topics], "in these logs")
        readers = (first._reader, second._reader)
        document = _core.diff(*readers, ignore_counts, ignore_calibration, stats, signals, names)
    found: dict[str, Any] = json.loads(document)
    return found


def _list(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
