"""What works on files rather than on an open log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._errors import RovelogError
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


def diff(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> dict[str, Any]:
    """Topics, fields, rates and parameters that differ, as the document of `rovelog diff A B -f json`."""
    found: dict[str, Any] = json.loads(command("diff", os.fspath(a), os.fspath(b), "-f", "json"))
    return found


def command(*args: str) -> str:
    """What a command prints. Exit code 3, data was lost, is no failure: it is in what was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "rovelog", *args], capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode not in (0, 3):
        said = done.stderr.strip().removeprefix("error: ")
        raise RovelogError(said or f"rovelog {args[0]} ended with {done.returncode}")
    return done.stdout
