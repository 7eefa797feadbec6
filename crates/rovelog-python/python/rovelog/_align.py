"""Aligns topics with different record times, and defines the results of conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rovelog import _core
from rovelog._errors import UnsupportedError
from rovelog._optional import require

if TYPE_CHECKING:
    import polars

How = Literal["previous", "nearest", "linear"]
HOWS = ("previous", "nearest", "linear")


class Occurrence(NamedTuple):
    """A time range in which a condition is true.

    start_ns        time of the first row for which the condition holds, ns on the log clock
    end_ns          time of the first row for which the condition no longer holds; time of the last
                    row if the condition holds until the end
    open            True if the condition holds until the last row
    rows            number of rows for which the condition holds
    min, max        minimum and maximum of the compared signal
    before, after   values before and after a change, for `SIGNAL changes`
    """

    start_ns: int
    end_ns: int
    open: bool
    rows: int
    min: float | None
    max: float | None
    before: float | None
    after: float | None


def aligned(
    reader: _core.Reader, topics: Iterable[str], times: Any, how: How, tolerance: int | None
) -> polars.DataFrame:
    """Returns a frame with one row per time: `t_ns`, then the columns of each topic as
    `TOPIC.COLUMN`.
    """
    pl, np = require("polars"), require("numpy")
    if how not in HOWS:
        raise UnsupportedError(f"how cannot be {how!r}", next=f"use one of {', '.join(map(repr, HOWS))}")
    if tolerance is not None and tolerance < 0:
        raise ValueError("a tolerance cannot be negative")
    # The join in Rust requires ascending times, so `times` is sorted. The rows of the frame are in
    # the order of `times` again.
    order = np.argsort(times, kind="stable")
    ascending = times[order].astype(np.int64, copy=False)
    names = list(topics)
    frame: polars.DataFrame = pl.DataFrame(_core.signal_join(reader, names, ascending.tobytes(), how, tolerance))
    if np.array_equal(ascending, times):
        return frame
    # `order[i]` is the original position of row `i`. The inverse permutation restores that
    # position. For example, times [30, 10, 20] give order [1, 2, 0] and inverse [2, 0, 1].
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    reordered: polars.DataFrame = frame[inverse]
    return reordered
