"""Data of RocketLogger logs."""

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

    name            name without the range: `I1`
    low             channel of the low range: `I1L`
    high            channel of the high range: `I1H`
    voltage         voltage with the same number: `V1`
    """

    name: str
    low: str | None
    high: str | None
    voltage: str | None


class Energy(NamedTuple):
    """Charge and energy of rows of a log. Sums are exact and rounded once.

    window          number of the window, from 0; None without windows
    state           binary channels and their values, 0 or 1; None without `by`
    start_ns        time of the first row, or of its window, ns on the log clock; None for rows of a state at many places
    rows            number of rows
    duration_ns     duration of the rows, ns
    charge          current -> coulombs; None without valid rows
    energy          power -> joules; None without valid rows
    missing         current or power -> rows that are not counted, because neither range is valid
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
    """Data of RocketLogger logs; `log.rld`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    @cached_property
    def currents(self) -> list[Current]:
        """Currents with both ranges merged, in the order of their channels."""
        return [Current(*row) for row in _core.rld_currents(self._reader)]

    def energy(
        self,
        window: str | int | dt.timedelta | None = None,
        by: str | Iterable[str] | None = None,
        *,
        power: str | Iterable[str] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        clock: bool = False,
        settle: int = 5,
        ranges: str = "bits",
    ) -> list[Energy]:
        """Computes charge (coulombs) and energy (joules): one entry for the whole log; or one per
        time window of this length (`"1s"`, ns, a timedelta); or one per state of the binary
        channels `by` (`"DI1"`, `["DI1", "DI2"]`); with both, one per state in each window.

        Only rows from `start` to before `end` count, which are as for `Topic.between`; windows are
        those of the whole log. `power` defines the power: a voltage, or the difference of two, times a current: `"V1*I1"`,
        `"(V1-V2)*I1"`. It may be omitted for a log with one voltage and one current. Windows start
        at the first row, or with `clock` at multiples of their length on the Unix clock. `settle`
        is the number of rows next to a range switch whose low samples are ignored. `ranges` selects
        how the valid range is detected: `"bits"` of the row, or `"values"` if `log.problems`
        reports unreliable bits.

        Raises RovelogError if the voltage of a current is unknown and for channels that are not
        binary; NameNotFound for unknown channels; ValueError for windows of zero length. On the
        command line: `rovelog stats FILE --energy`.
        """
        length = None if window is None else _times.span_ns(window)
        if length is not None and length <= 0:
            raise ValueError("a window cannot be without length")
        bits = [by] if isinstance(by, str) else list(by or [])
        powers = [power] if isinstance(power, str) else None if power is None else list(power)
        self._demand(bits, [name for power in powers or [] for name in CHANNEL.findall(power)])
        range = _times.window(start, end, self._info)
        rows = _core.rld_energy(self._reader, length, clock, bits, powers, _settle(settle), _derives(ranges), range)
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
        """Returns the merged currents row by row: `t_ns`, and for each current its amperes (`I1`,
        float64, null if neither range is valid) and its source (`I1_source`: `low`, `high`, or
        `transition` for a high value while the low one has not settled). `settle` and `ranges`
        as for `energy`; `start` and `end` as for `Topic.between`.
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
