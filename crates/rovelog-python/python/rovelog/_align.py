"""Topics with different times in one table; signals and conditions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rovelog import _core
from rovelog._errors import UnsupportedError
from rovelog._need import need

if TYPE_CHECKING:
    import polars

    from rovelog._topic import Topic

How = Literal["previous", "nearest", "linear"]
HOWS = ("previous", "nearest", "linear")


class Occurrence(NamedTuple):
    """A time for which a condition holds.

    start_ns        first row for which it holds, ns on the log clock
    end_ns          first row for which it holds no more; the last row, if there is none
    open            True if it holds until the last row
    rows            number of rows for which it holds
    min, max        minimum and maximum of what is compared
    before, after   the values before and after a change, for `SIGNAL changes`
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
    reader: _core.Reader, topics: Iterable[Topic], times: Any, how: How, tolerance: int | None
) -> polars.DataFrame:
    """Returns `t_ns`, and for each topic its columns at these times, with the name of the topic before theirs."""
    pl, np = need("polars"), need("numpy")
    if how not in HOWS:
        raise UnsupportedError(f"how is not {how!r}", next=f"it is one of {', '.join(map(repr, HOWS))}")
    if tolerance is not None and tolerance < 0:
        raise ValueError("a tolerance is not negative")
    order = np.argsort(times, kind="stable")
    ascending = times[order].astype(np.int64, copy=False)
    names = [topic.name for topic in topics]
    frame: polars.DataFrame = pl.DataFrame(_core.signal_join(reader, names, ascending.tobytes(), how, tolerance))
    if np.array_equal(ascending, times):
        return frame
    # The caller's own order.
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    reordered: polars.DataFrame = frame[back]
    return reordered
