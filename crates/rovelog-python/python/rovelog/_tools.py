"""What works on files rather than on an open log."""

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
    about           what it is, in a few words
    """

    id: str
    name: str
    about: str


def formats() -> list[FormatFacts]:
    """The formats that are built in. On the command line: `rovelog --version`."""
    return [FormatFacts(*row) for row in _core.formats()]


def recover(
    f: Source | Log, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False
) -> Recovered:
    """Writes the best sound log that a damaged one still holds to the file `out`; what became of each byte.

    `f` is a log, or what `open` takes; `drop_stale` leaves out stretches of another time, `force` replaces a file that is
    there. Raises ReadError where the file cannot be written, and what `open` raises.
    On the command line: `rovelog recover FILE -o OUT`.
    """
    if isinstance(f, Log):
        return f.recover(out, drop_stale=drop_stale, force=force)
    # Without a warning: whoever recovers knows of the damage, and gets the account of it.
    with Log(_source.reader(f)) as log:
        return log.recover(out, drop_stale=drop_stale, force=force)


def diff(
    a: Source | Log, b: Source | Log, *, ignore_counts: bool = False, ignore_calibration: bool = False
) -> dict[str, Any]:
    """How two logs differ: the document of `rovelog diff A B -f json`, of the keys `different` (bool), `topics`, `formats`,
    `params`.

    Each of these three is a list of dicts with `name` (fields: `format` and `field`), `change` (`removed`, `added`,
    `changed`), and what `a` and `b` have, None where there is no such thing. Topics differ by type, count and rate (more than
    1 %, Hz), formats by the types of fields, parameters by the values with which the logs began. `ignore_counts` looks at
    rates alone, `ignore_calibration` leaves out what differs between any two vehicles. Raises what `open` raises.
    On the command line: `rovelog diff A B`.
    """
    with opened(a) as first, opened(b) as second:
        document = _core.diff(first._reader, second._reader, ignore_counts, ignore_calibration)
    found: dict[str, Any] = json.loads(document)
    return found
