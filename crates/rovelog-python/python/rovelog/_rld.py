"""Data of RocketLogger logs."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._errors import NameNotFound
from rovelog._metadata import Info
from rovelog._suggest import did_you_mean, similar_names
from rovelog._table import Table
from rovelog._times import TimeLike

CHANNEL = re.compile(r"[^\s()*+-]+")
"""The name of a channel in an expression for `power`, such as `V1` in `(V1-V2)*I1`."""


class Current(NamedTuple):
    """A current, measured by one or two channels with different ranges.

    name            name without the range: `I1`
    low             channel of the low range: `I1L`; None if missing
    high            channel of the high range: `I1H`; None if missing
    voltage         voltage channel with the same number: `V1`; None if missing
    """

    name: str
    low: str | None
    high: str | None
    voltage: str | None


class Energy(NamedTuple):
    """Charge and energy in a part of a log. The sums are exact, and rounded once at the end.

    window          number of the window, from 0; None without windows
    state           binary channel -> value, 0 or 1; None without `by`
    start_ns        time of the first row, or start of the window, ns on the log clock; None for a
                    state
                    without windows, because its rows are spread over the log
    rows            number of rows
    duration_ns     duration of the rows, ns
    charge          current -> charge in coulombs; None without valid rows
    energy          power -> energy in joules; None without valid rows
    missing         current or power -> number of ignored rows in which neither range is valid
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
    """Data that only RocketLogger logs have; the type of `log.rld`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    @cached_property
    def currents(self) -> list[Current]:
        """Currents, in the order of their channels. The channels for the low and the high range
        become one current.
        """
        return [Current(*row) for row in _core.rld_currents(self._reader)]

    def energy(
        self,
        window: str | int | dt.timedelta | None = None,
        by: str | Iterable[str] | None = None,
        *,
        power: str | Iterable[str] | None = None,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        clock: bool = False,
        settle: int = 5,
        ranges: str = "bits",
    ) -> list[Energy]:
        """Computes charge (coulombs) and energy (joules).

        Returns one entry for the whole log by default. With `window`, returns one entry per time
        window; with `by`, one per state of the binary channels; with both, one per state in each
        window.

        - `window`: length of the windows (`"1s"`, ns, a timedelta)
        - `by`: binary channels (`"DI1"`, `["DI1", "DI2"]`)
        - `power`: a voltage, or the difference of two voltages, times a current: `"V1*I1"`,
          `"(V1-V2)*I1"`. By default, each current is multiplied by the voltage with the same number.
        - `start`, `end`: only rows from `start` (inclusive) to `end` (exclusive) count; see
          `Topic.between`. They do not move the windows.
        - `clock`: windows start at multiples of their length on the Unix clock instead of at the
          first row
        - `settle`: number of rows next to a range switch whose low-range samples are ignored
        - `ranges`: how the valid range is detected. `"bits"` uses the bits of the row. `"values"`
          is for logs in which `log.problems` reports unreliable bits.

        Raises RovelogError if the voltage of a current is unknown and for channels that are not
        binary, NameNotFound for unknown channels, and ValueError for windows of zero length. On the
        command line: `rovelog stats FILE --energy`.
        """
        length = None if window is None else _times.span_ns(window)
        if length is not None and length <= 0:
            raise ValueError("the length of a window must be positive")
        bits = [by] if isinstance(by, str) else list(by or [])
        powers = [power] if isinstance(power, str) else None if power is None else list(power)
        self._check_channels(bits, [name for power in powers or [] for name in CHANNEL.findall(power)])
        range = _times.window(start, end, self._info)
        rows = _core.rld_energy(self._reader, length, clock, bits, powers, _checked_settle(settle), _uses_values(ranges), range)
        return [Energy(*row) for row in rows]

    def _check_channels(self, bits: list[str], powers: list[str]) -> None:
        """Raises NameNotFound for unknown channels in `by` and `power`."""
        path = self._reader.path
        channels = [name for name, *_ in self._reader.fields(0)]
        merged = [current.name for current in self.currents]
        for names, existing in ((bits, channels), (powers, [*channels, *merged])):
            for name in names:
                if name not in existing:
                    found = similar_names(name, existing)
                    next = did_you_mean(found, 'see log["samples"].fields')
                    raise NameNotFound(f"the log has no channel {name}", suggestions=found, path=path, next=next)

    def merged(
        self, start: TimeLike | None = None, end: TimeLike | None = None, *, settle: int = 5, ranges: str = "bits"
    ) -> Table:
        """Returns the currents with both ranges merged, one row per sample.

        The columns are `t_ns`, and two for each current, for example:

        - `I1`: current in amperes (float64), null if neither range is valid
        - `I1_source`: range of the value: `low`, `high`, or `transition` for a high-range value
          while the low range has not settled after a switch

        For `settle` and `ranges`, see `energy`. For `start` and `end`, see `Topic.between`.
        """
        window = _times.window(start, end, self._info)
        return Table(_core.rld_merged(self._reader, _checked_settle(settle), _uses_values(ranges), window))


def _checked_settle(rows: int) -> int:
    if rows < 0:
        raise ValueError(f"settle must be a number of rows, not {rows}")
    return rows


def _uses_values(ranges: str) -> bool:
    """Returns True if the valid range is derived from the values instead of the bits."""
    if ranges not in ("bits", "values"):
        raise ValueError(f"ranges must be 'bits' or 'values', not {ranges!r}")
    return ranges == "values"
