"""Functions on files."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._facts import Recovered
from rovelog._log import Log, opened
from rovelog._source import Source


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
    `force` replaces an existing file. Raises ReadError if the file cannot be written, and the
    errors of `open`. On the command line: `rovelog recover FILE -o OUT`.
    """
    if isinstance(f, Log):
        return f.recover(out, drop_stale=drop_stale, force=force)
    # No warning: the caller knows of the damage, and the result reports it.
    with Log(_source.reader(f)) as log:
        return log.recover(out, drop_stale=drop_stale, force=force)


def diff(
    a: Source | Log, b: Source | Log, *, ignore_counts: bool = False, ignore_calibration: bool = False
) -> dict[str, Any]:
    """Compares two logs: returns the document of `rovelog diff A B -f json`, with the keys
    `different` (bool), `topics`, `formats`, `params`.

    Each of the last three is a list of dicts with `name` (fields: `format` and `field`), `change`
    (`removed`, `added`, `changed`), and the values of `a` and `b`, None if missing. Topics are
    compared by type, count and rate (more than 1 %, Hz), formats by the types of fields, parameters
    by their values at the start of the logs. `ignore_counts` compares rates only,
    `ignore_calibration` skips parameters that differ between any two vehicles. Raises the errors of
    `open`. On the command line: `rovelog diff A B`.
    """
    with opened(a) as first, opened(b) as second:
        document = _core.diff(first._reader, second._reader, ignore_counts, ignore_calibration)
    found: dict[str, Any] = json.loads(document)
    return found
