"""What only a power log of the RocketLogger has."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._errors import NameNotFound
from rovelog._facts import Info
from rovelog._near import hint, near
from rovelog._table import Table
from rovelog._times import Moment


CHANNEL = re.compile(r"[^\s()*+-]+")
"""A name in what `power` says."""


class Current(NamedTuple):
    """A current that was measured in up to two ranges.

    name            its name without the range: `I1`
    low             the channel of the low range: `I1L`
    high            the channel of the high range: `I1H`
    voltage         the voltage of the same number: `V1`
    """

    name: str
    low: str | None
    high: str | None
    voltage: str | None


class Energy(NamedTuple):
    """Charge and energy of some rows of a log. All sums are exact before they are rounded once.

    window          the number of the window, from 0; None without windows
    state           the binary channels and their values, 0 or 1; None without `by`
    start_ns        the first row, or that of its window, ns of the log's clock; None where rows of a state are in many places
    rows            how many rows
    duration_ns     how long the rows last, ns
    charge          current -> coulombs; None where no row counts
    energy          power -> joules; None where no row counts
    missing         current or power -> rows that do not count, because neither range holds
    """

    window: int | None
    state: dict[str, int] | None
    start_ns: int | None
    rows: int
    duration_ns: int
    charge: dict[str, float | None]
    energy: dict[str, float | None]
    missing: dict[str, int]


class RldExtras:
    """What only a power log has; `log.rld`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    @cached_property
    def currents(self) -> list[Current]:
        """The currents, two ranges as one, in the order of their channels."""
        return [Current(*row) for row in _core.rld_currents(self._reader)]

    def energy(
        self,
        window: str | int | dt.timedelta | None = None,
        by: str | Iterable[str] | None = None,
        *,
        power: str | Iterable[str] | None = None,
        clock: bool = False,
        settle: int = 5,
        ranges: str = "bits",
    ) -> list[Energy]:
        """Charge (coulombs) and energy (joules): one entry for the whole log; one for each window of this length (`"1s"`, ns,
        a timedelta); one for each state of the binary channels `by` (`"DI1"`, `["DI1", "DI2"]`); with both, one for each state
        in each window.

        `power` says what energy is: a voltage, or the difference of two, times a current: `"V1*I1"`, `"(V1-V2)*I1"`; without
        it, it must go without saying: one voltage, one current. Windows begin with the first row, with `clock` at whole spans
        of the Unix clock. `settle` is the number of rows beside a switch of ranges whose low samples do not count. `ranges`
        is what decides whether a low value counts: `"bits"` of the row, or `"values"` where `log.problems` says that bits are
        not to be trusted.

        Raises RovelogError where it has to be said which voltage belongs to which current, and for channels that are not
        binary; NameNotFound for those that are not there; ValueError for windows without length. On the command line: `rovelog stats FILE --energy`.
        """
        if isinstance(window, str):
            window = _times.duration_ns(window)
        elif isinstance(window, dt.timedelta):
            window = _times.of_timedelta(window)
        if window is not None and window <= 0:
            raise ValueError("a window cannot be without length")
        bits = [by] if isinstance(by, str) else list(by or [])
        powers = [power] if isinstance(power, str) else None if power is None else list(power)
        self._demand(bits, [name for power in powers or [] for name in CHANNEL.findall(power)])
        rows = _core.rld_energy(self._reader, window, clock, bits, powers, _settle(settle), _derives(ranges))
        return [Energy(*row) for row in rows]

    def _demand(self, bits: list[str], powers: list[str]) -> None:
        """Raises where there is no such channel."""
        path = self._reader.path
        channels = [name for name, *_ in self._reader.fields(0)]
        merged = [current.name for current in self.currents]
        for names, there in ((bits, channels), (powers, [*channels, *merged])):
            for name in names:
                if name not in there:
                    found = near(name, there)
                    next = hint(found, 'see log["samples"].fields')
                    raise NameNotFound(f"the log has no channel {name}", suggestions=found, path=path, next=next)

    def merged(
        self, start: Moment | None = None, end: Moment | None = None, *, settle: int = 5, ranges: str = "bits"
    ) -> Table:
        """The currents, two ranges as one, row by row: `t_ns`, and for each current its amperes (`I1`, float64, null where
        neither range holds) and where the value comes from (`I1_source`: `low`, `high`, or `transition` for a high value
        because the low one has not settled). `settle` and `ranges` as for `energy`; `start` and `end` as `Topic.between`.
        """
        window = _times.window(start, end, self._info)
        return Table(_core.rld_merged(self._reader, _settle(settle), _derives(ranges), window))


def _settle(rows: int) -> int:
    if rows < 0:
        raise ValueError(f"settle is a number of rows, not {rows}")
    return rows


def _derives(ranges: str) -> bool:
    if ranges not in ("bits", "values"):
        raise ValueError(f"ranges is 'bits' or 'values', not {ranges!r}")
    return ranges == "values"
