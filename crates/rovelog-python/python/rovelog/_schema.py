"""Finds common columns for logs of different firmware versions, which may store a field in
different types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rovelog._errors import UnsupportedError

if TYPE_CHECKING:
    import polars

Schema = dict[str, Any]
"""Column name -> polars type."""


class LogSchema(NamedTuple):
    """The columns that a topic has in one log."""

    log: str
    schema: Schema


def union_schema(topic: str, found: list[LogSchema]) -> Schema:
    """Returns the columns of all logs, each in the narrowest type that holds the values of every
    log.

    The rules are those of lakes:

    - Integers and floats become wider.
    - Arrays of different lengths become lists.
    - Structs get the fields of all logs.
    - Booleans become 0 and 1 if another log has numbers.
    - 64-bit integers and floats become floats, which round integers above 2^53.

    For example, `int16` in one log and `int32` in another give `int32`; `float32[2]` and
    `float32[3]` give a list of `float32`.

    Raises UnsupportedError if no type holds the values of all logs, such as a text and a number.
    The error names log, topic and column.
    """
    wide: Schema = {}
    first: dict[str, LogSchema] = {}
    for log in found:
        for name, have in log.schema.items():
            type = have if name not in wide else _common_type(name, wide[name], have)
            if type is None or not (_is_lossless(have, type) and _is_lossless(wide.get(name, type), type)):
                other = first[name]
                raise UnsupportedError(
                    f"column {name} of topic {topic} is {have} in this log and {other.schema[name]} in"
                    f" {other.log}, and no type holds the values of both as they are",
                    path=log.log,
                    next="scan logs of one type at a time",
                )
            wide[name] = type
            first.setdefault(name, log)
    # If the first log has no UTC, `time` is found later than the fields. The time columns come
    # first in every table, so they are moved to the front.
    times = [name for name in ("t_ns", "time") if name in wide]
    return {name: wide[name] for name in [*times, *wide]}


def cast_frame(frame: polars.DataFrame, schema: Schema) -> polars.DataFrame:
    """Returns the frame with exactly the columns of `schema`. Columns that the frame lacks are
    null.
    """
    import polars as pl

    if dict(frame.schema) == schema:
        return frame
    return pl.concat([pl.DataFrame(schema=schema), frame], how="diagonal_relaxed").select(list(schema))


def _common_type(name: str, a: Any, b: Any) -> Any:
    """Returns the common supertype of two types according to polars. Returns None if there is no
    such type.
    """
    import polars as pl

    try:
        both = pl.concat([pl.DataFrame(schema={name: a}), pl.DataFrame(schema={name: b})], how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return None
    wide = both.schema[name]
    # No 64-bit integer type holds all values of `UInt64` and of a signed type. Some versions of
    # polars then choose a float, which would round large numbers without notice.
    return None if a.is_integer() and b.is_integer() and not wide.is_integer() else wide


def _is_lossless(have: Any, wide: Any) -> bool:
    """Returns True if the conversion from the type `have` to the type `wide` keeps every value.

    The common supertype of polars is not always lossless: it converts numbers to text, for example.
    """
    import polars as pl

    if have == wide:
        return True
    if isinstance(have, (pl.Array, pl.List)):
        return isinstance(wide, (pl.Array, pl.List)) and _is_lossless(have.inner, wide.inner)
    if isinstance(have, pl.Struct):
        fields = {field.name: field.dtype for field in wide.fields} if isinstance(wide, pl.Struct) else {}
        return all(field.name in fields and _is_lossless(field.dtype, fields[field.name]) for field in have.fields)
    if wide == pl.Float64:
        return have in (pl.Float32, pl.Boolean) or (have.is_integer() and have != pl.Int128)
    if wide == pl.Float32:
        return have in (pl.Boolean, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16)
    # The integer type that polars chooses for two integer types is at least as wide as both.
    return bool(wide.is_integer() and (have.is_integer() or have == pl.Boolean))
