"""Topics of many logs as a polars LazyFrame. Everything that polars marks unstable is in this file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from rovelog._log import open
from rovelog._source import Source
from rovelog._topic import Topic
from rovelog._types import Window

if TYPE_CHECKING:
    import polars


def scan(
    logs: Source | Iterable[str | os.PathLike[str]], topic: str, *, path_column: str | None = None
) -> polars.LazyFrame:
    """A topic of one or many logs as a `polars.LazyFrame`: only the columns and the time that a query needs are decoded.

    `logs` is what `open` takes, or paths. The columns are those of `to_polars`, with the schema of the first log that has the
    topic; columns that another log does not have are null there. `path_column` names a column to add with the path of the
    log. Logs without the topic give no rows.

    Raises TopicNotFound where a single log has no such topic, ValueError where there is no log, and what `open` raises.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    if not isinstance(logs, os.PathLike) and hasattr(logs, "read"):
        # It can be read once, and the log is opened for each query.
        logs = logs.read()
    one = isinstance(logs, (str, os.PathLike, bytes, bytearray, memoryview))
    sources: list[Any] = [logs] if one else list(logs)  # type: ignore[arg-type]
    if not sources:
        raise ValueError("there is no log to scan")
    if one:
        # The error says what the log has instead.
        first: Topic | None = open(sources[0])[topic]
    else:
        first = next((found for found in (_topic(source, topic) for source in sources) if found is not None), None)
    if first is None:
        return pl.LazyFrame()
    schema: dict[str, Any] = dict(pl.DataFrame(first.between(0, 0)).schema)
    if path_column is not None:
        schema = {path_column: pl.String(), **schema}

    def source_of(
        with_columns: list[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[polars.DataFrame]:
        # A limit counts the rows before the filter, so both together leave no window.
        limits = window(predicate) if n_rows is None else (None, None)
        wanted = list(schema) if with_columns is None else with_columns
        left = n_rows
        for source in sources:
            found = _topic(source, topic)
            if found is None:
                continue
            for frame in _frames(found.between(*limits), source, schema, wanted, path_column):
                # What comes before the filter counts, so the limit is applied first.
                if left is not None:
                    frame = frame.head(left)
                    left -= len(frame)
                if predicate is not None:
                    frame = frame.filter(predicate)
                yield from frame.iter_slices(batch_size) if batch_size else [frame]
                if left == 0:
                    return

    return register_io_source(source_of, schema=pl.Schema(schema))


def _topic(source: Any, name: str) -> Topic | None:
    log = open(source)
    return log[name] if name in log else None


def _frames(
    topic: Topic,
    source: Any,
    schema: dict[str, Any],
    wanted: list[str],
    path_column: str | None,
) -> Iterator[polars.DataFrame]:
    """Batches of one log with the wanted columns in the schema's types."""
    import polars as pl

    there = {"t_ns", "time", *(field.name for field in topic.fields)}
    fields = [name for name in wanted if name in there and name not in ("t_ns", "time", path_column)]
    for batch in topic.select(*fields).batches():
        frame = pl.DataFrame(batch)
        columns = []
        for name in wanted:
            if name == path_column:
                columns.append(pl.lit(str(source) if isinstance(source, (str, os.PathLike)) else None, pl.String).alias(name))
            elif name in frame.columns:
                columns.append(pl.col(name).cast(schema[name]))
            else:
                columns.append(pl.lit(None, schema[name]).alias(name))
        yield frame.select(columns)


def window(predicate: Any) -> Window:
    """The window of `t_ns` (ns) outside of which a predicate holds for no row; open where that is not evident.

    The predicate is applied to what was read in any case, so a form that is not understood costs time only.
    """
    if predicate is None:
        return None, None
    try:
        return _window(json.loads(predicate.meta.serialize(format="json")))
    except Exception:  # The form of serialized expressions is no promise of polars.
        return None, None


def _window(node: Any) -> Window:
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary is None:
        return None, None
    operator, left, right = binary["op"], binary["left"], binary["right"]
    if operator in ("And", "LogicalAnd"):
        (a, b), (c, d) = _window(left), _window(right)
        starts, ends = [x for x in (a, c) if x is not None], [x for x in (b, d) if x is not None]
        return max(starts, default=None), min(ends, default=None)
    flipped = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
    if _column(right) == "t_ns":
        operator, left, right = flipped.get(operator, ""), right, left
    if _column(left) != "t_ns":
        return None, None
    value = _integer(right)
    if value is None:
        return None, None
    return {
        "Gt": (value + 1, None),
        "GtEq": (value, None),
        "Lt": (None, value),
        "LtEq": (None, value + 1),
        "Eq": (value, value + 1),
    }.get(operator, (None, None))


def _column(node: Any) -> str | None:
    name = node.get("Column") if isinstance(node, dict) else None
    return name if isinstance(name, str) else None


def _integer(node: Any) -> int | None:
    """A literal whole number, however deep polars wraps it."""
    while isinstance(node, dict):
        if "value" in node:
            node = node["value"]
            continue
        key, node = next(iter(node.items()))
        if key not in ("Literal", "Dyn", "Scalar", "Int", "Int64", "Int32", "UInt64", "UInt32"):
            return None
    return node if isinstance(node, int) and not isinstance(node, bool) else None
