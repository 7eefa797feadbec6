"""Topics with different times in one table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from rovelog._errors import UnsupportedError
from rovelog._need import need

if TYPE_CHECKING:
    import polars

    from rovelog._topic import Topic

How = Literal["previous", "nearest", "linear"]
HOWS = ("previous", "nearest", "linear")


def aligned(topics: Iterable[Topic], times: Any, how: How, tolerance: int | None) -> polars.DataFrame:
    """Returns `t_ns`, and for each topic its columns at these times, with the name of the topic before theirs."""
    pl, np = need("polars"), need("numpy")
    if how not in HOWS:
        raise UnsupportedError(f"how is not {how!r}", next=f"it is one of {', '.join(map(repr, HOWS))}")
    if tolerance is not None and tolerance < 0:
        raise ValueError("a tolerance is not negative")
    frames = [pl.DataFrame({"t_ns": times})]
    for topic in topics:
        frame = topic.to_polars().drop_nulls("t_ns").sort("t_ns", maintain_order=True)
        own = frame["t_ns"].to_numpy()
        columns = frame.drop("t_ns", "time", strict=False)
        before = np.searchsorted(own, times, side="right") - 1
        after = np.minimum(np.searchsorted(own, times, side="left"), max(len(own) - 1, 0))
        if how == "linear":
            found = _linear(columns, own, times, before, after, tolerance)
        else:
            found = _at(columns, own, times, before if how == "previous" else _nearer(own, times, before, after), tolerance)
        name = topic.name.removesuffix("/0")
        frames.append(found.rename({column: f"{name}.{column}" for column in found.columns}))
    whole: polars.DataFrame = pl.concat(frames, how="horizontal")
    return whole


def _nearer(own: Any, times: Any, before: Any, after: Any) -> Any:
    """The row nearest in time; of two at the same distance, the earlier one."""
    np = need("numpy")
    if not len(own):
        return before
    first = np.maximum(before, 0)
    later = np.abs(own[after] - times) < np.abs(times - own[first])
    return np.where((before < 0) | later, after, first)


def _at(columns: Any, own: Any, times: Any, rows: Any, tolerance: int | None) -> Any:
    """These rows of all columns; null for the row -1, and for what is too far."""
    pl, np = need("polars"), need("numpy")
    if not len(own):
        return columns.clear(len(times))
    first = np.maximum(rows, 0)
    there = rows >= 0
    if tolerance is not None:
        there &= np.abs(times - own[first]) <= tolerance
    return columns[first].select(pl.when(pl.lit(pl.Series(there))).then(pl.all()))


def _linear(columns: Any, own: Any, times: Any, before: Any, after: Any, tolerance: int | None) -> Any:
    """Numbers between the rows before and after, as float64; other columns are those of the row before."""
    pl, np = need("polars"), need("numpy")
    found = _at(columns, own, times, before, tolerance)
    if not len(own):
        return found
    first = np.maximum(before, 0)
    span = own[after] - own[first]
    # Differences are exact as integers; the share of a span fits a float.
    share = np.where(span > 0, (times - own[first]) / np.where(span > 0, span, 1), 0.0)
    inside = (before >= 0) & (own[after] >= times)
    if tolerance is not None:
        inside &= (times - own[first] <= tolerance) & (own[after] - times <= tolerance)
    made = []
    for column in columns.iter_columns():
        if not column.dtype.is_numeric():
            continue
        values = column.cast(pl.Float64).to_numpy()
        made.append(pl.Series(column.name, values[first] + (values[after] - values[first]) * share).set(pl.Series(~inside), None))
    return found.with_columns(made)
