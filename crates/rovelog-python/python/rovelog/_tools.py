"""Functions that correspond to commands of the command line: `recover` and `diff`, and the list of
formats.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from rovelog import _core, _source
from rovelog._metadata import Recovered
from rovelog._log import Log, opened
from rovelog._source import Source
from rovelog._topic import topic_not_found


class FormatFacts(NamedTuple):
    """A built-in format.

    id              short id for the argument `format` of `open`: `ulog`
    name            name: `ULog`
    about           short description
    """

    id: str
    name: str
    about: str


def formats() -> list[FormatFacts]:
    """Returns the built-in formats. On the command line: `rovelog --version`."""
    return [FormatFacts(*row) for row in _core.formats()]


def recover(
    f: Source | Log, out: str | os.PathLike[str], *, drop_stale: bool = False, force: bool = False
) -> Recovered:
    """Writes every intact record of a damaged log to the new log `out`. Returns statistics about
    kept and lost data.

    `f` is a log, or an argument of `open`. `drop_stale` skips stale rows, which are old data that a
    damaged memory card returned. `force` replaces an existing file. Raises WriteError if the file
    cannot be written, and the errors of `open`. On the command line: `rovelog recover FILE -o OUT`.
    """
    if isinstance(f, Log):
        return f.recover(out, drop_stale=drop_stale, force=force)
    # Unlike `open`, this function does not warn about damage, because the result describes it.
    with Log(_source.open_reader(f)) as log:
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
    """Compares two logs. Returns the document that `rovelog diff A B -f json` prints.

    The document is a dict with these keys:

    - `different`: True if the logs differ
    - `topics`: topics with a different type, a different count, or rates in Hz that differ by more
      than 1 %
    - `formats`: fields with different types
    - `params`: parameters with different values at the start of the logs
    - `statistics`: with `stats`, the statistics of every signal that both logs have

    `topics`, `formats` and `params` are lists of dicts. Each dict has `name` (in `formats`:
    `format` and `field`), `change` (`removed`, `added` or `changed`), and the values in `a` and
    `b`, which are None if missing. `statistics` is a list of dicts with `topic`, `field` and
    `unit`, and `count`, `min`, `max`, `mean` and `std` of `a` and `b`.

    - `ignore_counts`: compares rates, but not counts
    - `ignore_calibration`: ignores parameters that differ between any two vehicles
    - `topics`: compares only these topics
    - `fields`: signals for `statistics`: fields, derived fields and expressions, as in
      `Topic.select`

    Raises TopicNotFound, FieldNotFound, and the errors of `open`. On the command line: `rovelog
    diff A B`, with `--stats`, `--fields` and `--topics`.
    """
    names, signals = _list(topics), _list(fields)
    with opened(a) as first, opened(b) as second:
        for name in names:
            if name not in first and name not in second:
                raise topic_not_found(name, [*first.topics, *second.topics], "in these logs")
        readers = (first._reader, second._reader)
        document = _core.diff(*readers, ignore_counts, ignore_calibration, stats, signals, names)
        for reader in readers:
            reader.compare()
    found: dict[str, Any] = json.loads(document)
    return found


def _list(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
