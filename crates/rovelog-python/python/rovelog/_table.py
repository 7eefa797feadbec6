"""Decoded columns of a topic in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from rovelog import _core, _numpy
from rovelog._errors import FieldNotFound, UnsupportedError
from rovelog._optional import require
from rovelog._suggest import did_you_mean, similar_names

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray


class Columns:
    """Methods that topics and tables have in common.

    Both implement the Arrow PyCapsule protocol, so every library that reads Arrow data accepts
    them: `polars.DataFrame(x)`, `pyarrow.table(x)`, or a DuckDB query over a variable.
    """

    def _table(self) -> _core.Table:
        raise NotImplementedError

    def _path(self) -> str | None:
        """Returns the path of the log for error messages. Returns None if the path is unknown."""
        return None

    def to_polars(self) -> polars.DataFrame:
        """Returns a `polars.DataFrame` with one row per record. It shares memory with the decoded
        columns.

        The columns are `t_ns` (int64, ns on the log clock) and, if the log has UTC, `time`
        (datetime[ns, UTC]), then the fields. Arrays have the type Array, nested fields the type
        Struct.
        """
        frame: polars.DataFrame = require("polars").DataFrame(self._table())
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Returns a `pyarrow.Table` with one chunk and the same columns as `to_polars`.

        It shares memory with the decoded columns.
        """
        table: pyarrow.Table = require("pyarrow").table(self._table())
        return table

    def to_pandas(self, index: str | None = None, *, copy: bool = True) -> pandas.DataFrame:
        """Returns a `pandas.DataFrame` with flat columns: `q[0]` to `q[3]`, `pos.x`.

        `index` names the index column, such as "time" (UTC) or "t_ns" (ns on the log clock). The
        frame is a writable copy. With `copy=False`, it shares the decoded memory and is read-only.
        Integers and booleans with nulls have the nullable types of pandas, such as `Int64`.

        Raises FieldNotFound for an unknown index column.
        """
        library = require("pandas")
        columns = {name: _nullable(library, values) for name, values in _numpy.flat(self._table().leaves()).items()}
        frame: pandas.DataFrame = library.DataFrame(columns, copy=copy)
        if index is not None and index not in frame.columns:
            found = similar_names(index, frame.columns)
            utc = "the log has no UTC: index by t_ns" if index == "time" else None
            next = utc or did_you_mean(found, "see the columns of the frame")
            raise FieldNotFound(f"there is no column {index} to index by", suggestions=found, path=self._path(), next=next)
        if "time" in frame.columns and frame["time"].dtype.kind == "M":
            frame["time"] = frame["time"].dt.tz_localize("UTC")
        return frame if index is None else frame.set_index(index)

    def numpy(self, fields: str | Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Returns name -> array, with one entry per record along the first axis.

        - `t_ns` is int64, ns on the log clock. `time` is datetime64[ns], if the log has UTC.
        - Fields have the type and unit of the log. A field with 4 elements has the shape (n, 4).
        - Fields of nested types have flat names (`pos.x`). Text is an array of str.
        - Nulls are NaN in floats, NaT in times, and masked in all other types.

        Arrays share the decoded memory and are read-only. Only booleans, text and columns with
        nulls are copied. With `fields`, only these columns and the times are returned.

        Raises FieldNotFound for an unknown column.
        """
        table = self._table()
        if fields is None:
            return _numpy.arrays(table.leaves())
        wanted = [fields] if isinstance(fields, str) else list(fields)
        for name in wanted:
            if name not in table.names:
                found = similar_names(name, table.names)
                next = did_you_mean(found, "see column_names")
                raise FieldNotFound(f"there is no column {name}", suggestions=found, path=self._path(), next=next)
        return _numpy.arrays(table.leaves(["t_ns", "time", *wanted]))


class _TableSource(Protocol):
    """The part of `Topic` that decodes a table. An import of `_topic` would be circular."""

    def table(self) -> Table: ...


class Table(Columns):
    """Columns of one topic in memory, returned by `Topic.table` and `Topic.batches`."""

    def __init__(self, core: _core.Table, topic: _TableSource | None = None) -> None:
        self._core = core
        self._topic = topic
        """The topic that the table contains completely; None for batches and computed columns."""

    def _table(self) -> _core.Table:
        return self._core

    def __len__(self) -> int:
        return len(self._core)

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return self._core.names

    @property
    def nbytes(self) -> int:
        """Size of the columns in memory, in bytes."""
        return self._core.nbytes

    def __arrow_c_schema__(self) -> object:
        """Returns the schema as a capsule."""
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a new stream of the columns as a capsule."""
        return self._core.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Returns a column as an array; see `numpy`. Raises FieldNotFound."""
        return self.numpy(column)[column]

    def _ipython_key_completions_(self) -> list[str]:
        return self.column_names

    def __reduce__(self) -> tuple[Any, ...]:
        if self._topic is None:
            raise UnsupportedError("only the unchanged columns of a topic can be pickled", next="pickle the result of to_arrow()")
        return _decode, (self._topic,)

    def __repr__(self) -> str:
        return f"<rovelog.Table: {len(self)} rows of {', '.join(self.column_names)}>"


def _decode(topic: _TableSource) -> Table:
    """Creates the table from its pickle. The pickle contains the topic, which is decoded again, and
    no data.
    """
    return topic.table()


def _nullable(library: Any, values: Any) -> Any:
    """Returns a column for pandas. Masked integers and booleans get a nullable type.

    Pandas would convert masked integers to floats, which cannot represent times in ns exactly.
    """
    kind = values.dtype.kind
    if kind not in "iub" or not hasattr(values, "mask"):
        return values
    nullable = library.arrays.BooleanArray if kind == "b" else library.arrays.IntegerArray
    return nullable(values.data.copy(), values.mask.copy())
