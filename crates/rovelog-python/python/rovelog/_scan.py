"""Topics of many logs as a polars LazyFrame. Everything that polars marks unstable is in this file."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rovelog import _core, _source
from rovelog._errors import RovelogError
from rovelog._log import Log, warn_of_loss
from rovelog._need import need
from rovelog._source import SCHEME, Source, paths
from rovelog._times import in_both
from rovelog._topic import Topic, missing
from rovelog._types import Window
from rovelog._widen import Named, Schema, union, widened

if TYPE_CHECKING:
    import polars


def scan(
    logs: Source | Iterable[Source], topic: str | tuple[str, int], *, path_column: str | None = None
) -> polars.LazyFrame:
    """Returns a topic of one or many logs as a `polars.LazyFrame`: only the columns and times that
    a query needs are decoded.

    `logs` is an argument of `open`, a pattern (`flights/**/*.ulg`), a folder (all logs in it and below, by their
    extensions), or several of these; `topic` a name, or a name and an instance.
    All logs are opened once for their columns, and again by each query. The columns are those of
    `to_polars` of all logs, null for logs without the column, in types that contain the values of
    all logs; arrays of different lengths become lists. `path_column` adds a column with the path of
    the log. Logs without the topic give no rows.

    Raises TopicNotFound if no log has the topic; UnsupportedError, which names log, topic and
    column, if no type contains the values of all logs; ValueError without logs, or if the topic has
    a column `path_column`; and the errors of `open`. A query raises RovelogError if a log has
    changed since.
    """
    pl = need("polars")
    found, nearest = [], dict[str, None]()
    sources = _sources(logs)
    for source in sources:
        with Log(_source.reader(source)) as log:
            warn_of_loss(log)
            if topic in log:
                found.append(_Scanned(source, topic, _schema(log[topic])))
            else:
                nearest.update(dict.fromkeys(log.topics))
    if not found:
        path = sources[0] if len(sources) == 1 and isinstance(sources[0], (str, os.PathLike)) else None
        where = "in this log" if len(sources) == 1 else f"in any of the {len(sources)} logs"
        raise missing(topic, nearest, where, None if path is None else os.fspath(path))
    name = topic if isinstance(topic, str) else f"{topic[0]}/{topic[1]}"
    columns = union(name, [Named(one.label, one.schema) for one in found])
    if path_column in columns:
        raise ValueError(f"the topic has a column {path_column} itself: name another path_column")
    schema = columns if path_column is None else {path_column: pl.String(), **columns}
    return _lazy(found, schema, path_column)


def lazy(topic: Topic) -> polars.LazyFrame:
    """Returns a topic of an open log as a LazyFrame."""
    schema = _schema(topic)
    return _lazy([_Open(topic)], schema, None)


def _lazy(found: Sequence[_Scanned | _Open], schema: Schema, path_column: str | None) -> polars.LazyFrame:
    pl, plugins = need("polars"), need("polars.io.plugins")

    def source_of(
        with_columns: list[str] | None,
        predicate: polars.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[polars.DataFrame]:
        # A limit counts the rows before the filter, so both together leave no window.
        limits = window(predicate) if n_rows is None else (None, None)
        wanted = list(schema) if with_columns is None else with_columns
        asked = [] if predicate is None else predicate.meta.root_names()
        # A frame without columns would have no rows to count.
        needed = list(dict.fromkeys([*wanted, *asked])) or ["t_ns"]
        left = n_rows
        logs = [one for one in found if n_rows is not None or may_hold(predicate, path_column, one.path)]
        for one in logs:
            if left == 0:
                return
            for frame in one.frames(limits, {column: schema[column] for column in needed}, path_column):
                # What comes before the filter counts, so the limit is applied first.
                if left is not None:
                    frame = frame.head(left)
                    left -= len(frame)
                if predicate is not None:
                    frame = frame.filter(predicate)
                frame = frame.select(wanted or needed)
                yield from frame.iter_slices(batch_size) if batch_size else [frame]
                if left == 0:
                    break

    made: polars.LazyFrame = plugins.register_io_source(source_of, schema=pl.Schema(schema))
    return made


def _sources(logs: Source | Iterable[Source]) -> list[Source]:
    if isinstance(logs, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(logs, "read"):
        logs = [logs]  # type: ignore[list-item]
    # A file object can be read once, and the log is opened for each query.
    sources: list[Source] = []
    for log in logs:
        if isinstance(log, (str, os.PathLike)):
            try:
                sources += paths(log)
            except RovelogError as error:
                if SCHEME.match(os.fspath(log)):
                    raise
                raise ValueError(str(error)) from error
        else:
            sources.append(log if isinstance(log, (bytes, bytearray, memoryview)) else log.read())
    if not sources:
        raise ValueError("there is no log to scan")
    return sources


def _schema(topic: Topic) -> Schema:
    import polars as pl

    return dict(pl.DataFrame(topic.between(0, 0)).schema)


class _Scanned(NamedTuple):
    """A log that has the topic, and the columns that it had when it was scanned."""

    source: Source
    topic: str | tuple[str, int]
    schema: Schema

    @property
    def label(self) -> str:
        return self.path or "a log in memory"

    @property
    def path(self) -> str | None:
        return str(self.source) if isinstance(self.source, (str, os.PathLike)) else None

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        """Batches with the wanted columns in the wanted types."""
        import polars as pl

        with Log(_source.reader(self.source)) as log:
            topic = log[self.topic]
            if _schema(topic) != self.schema:
                changed = f"the columns of topic {topic.name} have changed since the log was scanned"
                raise RovelogError(changed, path=self.path, next="scan it again")
            for frame in _batches(topic, limits, wanted, path_column):
                if path_column in wanted:
                    frame = frame.with_columns(pl.lit(self.path, pl.String).alias(path_column))
                yield frame.select(list(wanted))


class _Open(NamedTuple):
    """A topic of a log that is open."""

    topic: Topic

    @property
    def path(self) -> None:
        """None: a topic has no column for it."""

    def frames(self, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
        """Batches with the wanted columns."""
        for frame in _batches(self.topic, in_both(self.topic._window, limits), wanted, path_column):
            yield frame.select(list(wanted))


def _batches(topic: Topic, limits: Window, wanted: Schema, path_column: str | None) -> Iterator[polars.DataFrame]:
    """Batches with the wanted columns of a topic, and with `t_ns`, in the wanted types."""
    import polars as pl

    # A column that every log has keeps the number of rows.
    columns: Schema = {"t_ns": pl.Int64(), **wanted}
    columns.pop(path_column, None)  # type: ignore[arg-type]
    own = {field.name for field in topic.fields}
    # What is selected already stays: its columns may be parts of fields.
    chosen = topic if topic._fields is not None else topic.select(*(name for name in columns if name in own))
    for batch in chosen.between(*limits).batches():
        frame = pl.DataFrame(batch)
        yield widened(frame.select(name for name in columns if name in frame.columns), columns)


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
        return in_both(_window(left), _window(right))
    flipped = {"Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq", "Eq": "Eq"}
    if _column(right) == "t_ns":
        operator, left, right = flipped.get(operator, ""), right, left
    if _column(left) != "t_ns":
        return None, None
    value = _integer(right)
    if value is None:
        return None, None
    return _within(
        {
            "Gt": (value + 1, None),
            "GtEq": (value, None),
            "Lt": (None, value),
            "LtEq": (None, value + 1),
            "Eq": (value, value + 1),
        }.get(operator, (None, None))
    )


def _within(window: Window) -> Window:
    """A window whose sides are times of 64 bits; a side beyond them is open: the predicate is applied to the rows anyway."""
    start, end = (side if side is not None and -(2**63) <= side < 2**63 else None for side in window)
    return start, end


def may_hold(predicate: Any, path_column: str | None, path: str | None) -> bool:
    """Whether a predicate can hold for a row of the log at `path`: False if a part of it that is about the path alone does not.

    Such a log is not opened. A form of predicate that is not understood costs time only.
    """
    if predicate is None or path_column is None:
        return True
    import polars as pl

    try:
        parts = _parts(json.loads(predicate.meta.serialize(format="json")))
        conditions = [pl.Expr.deserialize(io.StringIO(json.dumps(part)), format="json") for part in parts]
        of_path = [one for one in conditions if set(one.meta.root_names()) == {path_column}]
        row = pl.DataFrame({path_column: [path]}, schema={path_column: pl.String})
        return all(len(row.filter(one)) > 0 for one in of_path)
    except Exception:  # As above.
        return True


def _parts(node: Any) -> list[Any]:
    """The conditions that an expression joins by `and`."""
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    if binary is None or binary["op"] not in ("And", "LogicalAnd"):
        return [node]
    return _parts(binary["left"]) + _parts(binary["right"])


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
