"""Columns of one topic in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rovelog import _again, _core, _numpy
from rovelog._errors import FieldNotFound, UnsupportedError
from rovelog._near import hint, near
from rovelog._need import need

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from numpy.typing import NDArray

    from rovelog._topic import Topic


class Columns:
    """Common functions of topics and tables. Every library that reads Arrow data accepts these
    objects.

    They implement the Arrow PyCapsule protocol, so `polars.DataFrame(x)`, `pyarrow.table(x)` and a
    DuckDB query over a variable work.
    """

    def _table(self) -> _core.Table:
        raise NotImplementedError

    def _path(self) -> str | None:
        """Path of the file of the columns, if known."""
        return None

    def to_polars(self) -> polars.DataFrame:
        """Returns a `polars.DataFrame` with one row per record, which shares memory with the
        decoded columns.

        The columns are `t_ns` (int64, ns on the log clock) and, if the log has UTC, `time`
        (datetime[ns, UTC]), then the fields: arrays as Array, nested types as Struct.
        """
        frame: polars.DataFrame = need("polars").DataFrame(self._table())
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """Returns a `pyarrow.Table` of one chunk, which shares memory with the decoded columns;
        columns as in `to_polars`.
        """
        table: pyarrow.Table = need("pyarrow").table(self._table())
        return table

    def to_pandas(self, index: str | None = None, *, copy: bool = True) -> pandas.DataFrame:
        """Returns a `pandas.DataFrame` with flat columns: `q[0]` to `q[3]`, `pos.x`.

        `index` names the index column: "time" (UTC), "t_ns" (ns on the log clock) or any other. The
        frame is a writable copy; with `copy=False` it shares the decoded memory and is read-only.
        Integers and booleans with nulls are the nullable types of pandas (`Int64`). Raises FieldNotFound
        for an unknown index column.
        """
        library = need("pandas")
        columns = {name: _nullable(library, values) for name, values in _numpy.flat(self._table().leaves()).items()}
        frame: pandas.DataFrame = library.DataFrame(columns, copy=copy)
        if index is not None and index not in frame.columns:
            found = near(index, frame.columns)
            utc = "the log does not tell its UTC: index by t_ns" if index == "time" else None
            next = utc or hint(found, "see the columns of the frame")
            raise FieldNotFound(f"there is no column {index} to index by", suggestions=found, path=self._path(), next=next)
        if "time" in frame.columns and frame["time"].dtype.kind == "M":
            frame["time"] = frame["time"].dt.tz_localize("UTC")
        return frame if index is None else frame.set_index(index)

    def numpy(self, fields: str | Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
        """Returns name -> array, with one entry per record along the first axis.

        `t_ns` is int64, ns on the log clock; `time`, if the log has UTC, datetime64[ns]. Fields
        keep their type and unit. A field with 4 elements has shape (n, 4), fields of nested types
        have flat names (`pos.x`), text is an array of str. Arrays share the decoded memory and are
        read-only; only booleans, text and columns with nulls are copied. A null is NaN in floats
        and masked in all other types. With `fields`, only these columns and the times are returned.
        Raises FieldNotFound for an unknown column.
        """
        table = self._table()
        if fields is None:
            return _numpy.arrays(table.leaves())
        wanted = [fields] if isinstance(fields, str) else list(fields)
        for name in wanted:
            if name not in table.names:
                found = near(name, table.names)
                next = hint(found, "see column_names")
                raise FieldNotFound(f"there is no column {name}", suggestions=found, path=self._path(), next=next)
        return _numpy.arrays(table.leaves(["t_ns", "time", *wanted]))


class Table(Columns):
    """Columns of one topic in memory, returned by `Topic.table` and `Topic.batches`."""

    def __init__(self, core: _core.Table, topic: Topic | None = None) -> None:
        self._core = core
        self._topic = topic
        """What it was decoded of, if that is a topic."""

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
        """Memory of the columns in bytes."""
        return self._core.nbytes

    def __arrow_c_schema__(self) -> object:
        """Returns the schema as a capsule."""
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the columns as a new stream."""
        return self._core.__arrow_c_stream__(requested_schema)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Returns a column as an array; see `numpy`. Raises FieldNotFound."""
        return self.numpy(column)[column]

    def _ipython_key_completions_(self) -> list[str]:
        return self.column_names

    def __reduce__(self) -> tuple[Any, ...]:
        if self._topic is None:
            raise UnsupportedError("columns that are not those of a topic cannot be pickled", next="pickle to_arrow() of them")
        return _again.table, (self._topic,)

    def __repr__(self) -> str:
        return f"<rovelog.Table: {len(self)} rows of {', '.join(self.column_names)}>"


def _nullable(library: Any, values: Any) -> Any:
    """A column for pandas, which makes floats of masked integers: times in ns would not be exact."""
    kind = values.dtype.kind
    if kind not in "iub" or not hasattr(values, "mask"):
        return values
    nullable = library.arrays.BooleanArray if kind == "b" else library.arrays.IntegerArray
    return nullable(values.data.copy(), values.mask.copy())
