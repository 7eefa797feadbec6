"""Topics as polars LazyFrames.

For each query, polars calls a function of this module with the required columns, the filter and the
row limit. The function decodes only these columns, and only a time window outside of which the
filter rejects every row. It applies the filter to the decoded rows, so a window that is too wide
costs time but does not change the result.

For example, `filter((pl.col("t_ns") >= 5) & (pl.col("x") > 0))` gives the window (5, None), because
only the first condition limits the time.

In polars, the interface for such sources and the format of serialized expressions are unstable. All
code that depends on them is in this file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rovelog._optional import require
from rovelog._schema import Schema, cast_frame
from rovelog._times import intersect
from rovelog._types import TopicColumns, Window

if TYPE_CHECKING:
    import polars


class FrameSource(Protocol):
    """A log from which a LazyFrame reads the rows of a topic."""

    @property
    def path(self) -> str | None:
        """Path of the log, which filters on the path column use. None for a log in memory."""

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        """Returns the rows in the time window `limits`, in batches with exactly the columns
        `wanted`.
        """


class _OpenTopic(NamedTuple):
    """A topic of an open log."""

    topic: TopicColumns

    @property
    def path(self) -> None:
        """Always None, because the frame of a single topic has no path column."""

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        for frame in batches(self.topic, limits, wanted, path_column):
            yield frame.select(list(wanted))


def topic_frame(topic: TopicColumns) -> polars.LazyFrame:
    """Returns a topic of an open log as a LazyFrame."""
    return lazy_frame([_OpenTopic(topic)], topic_schema(topic), None)


def topic_schema(topic: TopicColumns) -> Schema:
    """Returns the columns of a topic without decoding a record."""
    import polars as pl

    # An empty time window selects no records.
    return dict(pl.DataFrame(topic.between(0, 0)).schema)


def lazy_frame(sources: Sequence[FrameSource], schema: Schema, path_column: str | None) -> polars.LazyFrame:
    """Returns a LazyFrame with the columns of `schema`. It contains the rows of all sources, one
    source after the other.
    """
    pl, plugins = require("polars"), require("polars.io.plugins")

    def read(
        with_columns: list[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[polars.DataFrame]:
        # Polars counts the limit `n_rows` before it applies the filter. If rows were skipped by the
        # filter first, the limit would count other rows.
        limits = time_window(predicate) if n_rows is None else (None, None)
        wanted = list(schema) if with_columns is None else with_columns
        in_filter = [] if predicate is None else predicate.meta.root_names()
        # A frame without columns has no rows, so `select(pl.len())` needs at least one column.
        needed = list(dict.fromkeys([*wanted, *in_filter])) or ["t_ns"]
        rows_left = n_rows
        chosen = [source for source in sources if n_rows is not None or may_match_path(predicate, path_column, source.path)]
        for source in chosen:
            if rows_left == 0:
                return
            for frame in source.frames(limits, {column: schema[column] for column in needed}, path_column):
                if rows_left is not None:
                    frame = frame.head(rows_left)
                    rows_left -= len(frame)
                if predicate is not None:
                    frame = frame.filter(predicate)
                frame = frame.select(wanted or needed)
                yield from frame.iter_slices(batch_size) if batch_size else [frame]
                if rows_left == 0:
                    break

    frame: polars.LazyFrame = plugins.register_io_source(read, schema=pl.Schema(schema))
    return frame


def batches(topic: TopicColumns, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
    """Returns the batches of a topic within `limits`, with `t_ns` and the columns `wanted` in their
    types.

    The path column is not included, because a topic does not have it.
    """
    import polars as pl

    # A log may have none of the wanted columns. `t_ns` exists in every log and preserves the number
    # of rows.
    columns: Schema = {"t_ns": pl.Int64(), **wanted}
    columns.pop(path_column, None)  # type: ignore[arg-type]
    own = {field.name for field in topic.fields}
    # If the topic has selected fields, it is used unchanged. Its columns may be elements or derived
    # fields such as `q[0]`, which `own` does not contain.
    chosen = topic if topic._fields is not None else topic.select(*(name for name in columns if name in own))
    for batch in chosen._within(limits).batches():
        frame = pl.DataFrame(batch)
        yield cast_frame(frame.select(name for name in columns if name in frame.columns), columns)


def time_window(predicate: Any) -> Window:
    """Returns a window of `t_ns` in nanoseconds that contains every row for which the predicate may
    be true.

    Only comparisons of `t_ns` with integers that are joined by `and` limit the window.
    """
    if predicate is None:
        return None, None
    try:
        return _window_of(json.loads(predicate.meta.serialize(format="json")))
    except Exception:
        # Polars does not guarantee the format of serialized expressions. If the format is unknown,
        # all rows are decoded and then filtered.
        return None, None


def _window_of(node: Any) -> Window:
    """Returns the window of a serialized expression."""
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary is None:
        return None, None
    operator, left, right = binary["op"], binary["left"], binary["right"]
    if operator in ("And", "LogicalAnd"):
        return intersect(_window_of(left), _window_of(right))
    # `5 < t_ns` is the same as `t_ns > 5`.
    flipped = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
    if _column(right) == "t_ns":
        operator, left, right = flipped.get(operator, ""), right, left
    if _column(left) != "t_ns":
        return None, None
    value = _integer(right)
    if value is None:
        return None, None
    return _int64_window(
        {
            "Gt": (value + 1, None),
            "GtEq": (value, None),
            "Lt": (None, value),
            "LtEq": (None, value + 1),
            "Eq": (value, value + 1),
        }.get(operator, (None, None))
    )


def _int64_window(window: Window) -> Window:
    """Returns the window. A limit that does not fit into 64 bits is replaced by None."""
    start, end = (side if side is not None and -(2**63) <= side < 2**63 else None for side in window)
    return start, end


def may_match_path(predicate: Any, path_column: str | None, path: str | None) -> bool:
    """Returns False if the predicate rejects every row of the log at `path` because of the path.

    Such a log is not opened. The predicate is divided at each `and`. The conditions that use only
    the path column are evaluated for a single row with this path.
    """
    if predicate is None or path_column is None:
        return True
    import polars as pl

    try:
        parts = _conditions(json.loads(predicate.meta.serialize(format="json")))
        conditions = [pl.Expr.deserialize(io.StringIO(json.dumps(part)), format="json") for part in parts]
        of_path = [condition for condition in conditions if set(condition.meta.root_names()) == {path_column}]
        row = pl.DataFrame({path_column: [path]}, schema={path_column: pl.String})
        return all(len(row.filter(condition)) > 0 for condition in of_path)
    except Exception:
        # As in `time_window`, the query must not fail if the format is unknown.
        return True


def _conditions(node: Any) -> list[Any]:
    """Returns the conditions that a serialized expression joins by `and`."""
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary is None or binary["op"] not in ("And", "LogicalAnd"):
        return [node]
    return _conditions(binary["left"]) + _conditions(binary["right"])


def _column(node: Any) -> str | None:
    """Returns the name of the column that a node selects. Returns None if the node is not a column.
    """
    name = node.get("Column") if isinstance(node, dict) else None
    return name if isinstance(name, str) else None


def _integer(node: Any) -> int | None:
    """Returns the value of a node that is an integer literal. Returns None for any other node.

    Versions of polars nest literals differently, for example as `{"Literal": {"Dyn": {"Int": 5}}}`.
    """
    while isinstance(node, dict):
        if "value" in node:
            node = node["value"]
            continue
        key, node = next(iter(node.items()))
        if key not in ("Literal", "Dyn", "Scalar", "Int", "Int64", "Int32", "UInt64", "UInt32"):
            return None
    return node if isinstance(node, int) and not isinstance(node, bool) else None
