"""What works on files rather than on an open log."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._log import Log, Source, open
from rovelog._rewrite import Recovered


class FormatFacts(NamedTuple):
    """A format that is built in."""

    id: str
    name: str
    about: str


def formats() -> list[FormatFacts]:
    """The formats that are built in. On the command line: `rovelog --version`."""
    return [FormatFacts(*row) for row in _core.formats()]


def recover(
    f: Source | Log, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False
) -> Recovered:
    """Writes the best sound log that a damaged one still holds; see `Log.recover`.

    On the command line: `rovelog recover FILE -o OUT`.
    """
    if isinstance(f, Log):
        return f.recover(out, drop_stale=drop_stale, force=force)
    import warnings

    with warnings.catch_warnings():
        # Whoever recovers knows of the damage, and gets the account of it.
        warnings.simplefilter("ignore")
        log = open(f)
    with log:
        return log.recover(out, drop_stale=drop_stale, force=force)


def diff(
    a: Source | Log, b: Source | Log, *, ignore_counts: bool = False, ignore_calibration: bool = False
) -> dict[str, Any]:
    """How two logs differ: the document of `rovelog diff A B -f json`, of the keys `different` (bool), `topics`, `formats`,
    `params`.

    Each of these three is a list of dicts with `name` (fields: `format` and `field`), `change` (`removed`, `added`,
    `changed`), and what `a` and `b` have, None where there is no such thing. Topics differ by type, count and rate (more than
    1 %, Hz), formats by the types of fields, parameters by the values with which the logs began. `ignore_counts` looks at
    rates alone, `ignore_calibration` leaves out what differs between any two vehicles.
    """
    with _opened(a) as first, _opened(b) as second:
        document = _core.diff(first._reader, second._reader, ignore_counts, ignore_calibration)
    found: dict[str, Any] = json.loads(document)
    return found


def _opened(f: Source | Log) -> contextlib.AbstractContextManager[Log]:
    """A log to be closed again, where it is not one that somebody else has opened."""
    return contextlib.nullcontext(f) if isinstance(f, Log) else open(f)
