"""Columns of logs of different firmware as one: the types that hold all of them, and what is refused because none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rovelog._errors import UnsupportedError

if TYPE_CHECKING:
    import polars

Schema = dict[str, Any]
"""Name of a column -> its polars type."""


class Named(NamedTuple):
    """The columns of a topic, and the log that has them."""

    log: str
    schema: Schema


def union(topic: str, found: list[Named]) -> Schema:
    """All columns of these logs, each in the narrowest type that holds the values of all, by the rule of lakes.

    Integers and floats become wider, arrays of different lengths lists, structs have the fields of all, and truth values are 0
    and 1 among numbers. Integers of 64 bits and floats become floats, which round integers above 2^53. Raises UnsupportedError,
    which names log, topic and column, where no type does that, as for a text and a number.
    """
    wide: Schema = {}
    first: dict[str, Named] = {}
    for log in found:
        for name, have in log.schema.items():
            type = have if name not in wide else _wider(name, wide[name], have)
            if type is None or not (_keeps(have, type) and _keeps(wide.get(name, type), type)):
                other = first[name]
                raise UnsupportedError(
                    f"column {name} of topic {topic} is {have} in this log and {other.schema[name]} in"
                    f" {other.log}, and no type holds the values of both as they are",
                    path=log.log,
                    next="scan logs of one type at a time",
                )
            wide[name] = type
            first.setdefault(name, log)
    # The times come first, also where the first log has no UTC.
    times = [name for name in ("t_ns", "time") if name in wide]
    return {name: wide[name] for name in [*times, *wide]}


def widened(frame: polars.DataFrame, schema: Schema) -> polars.DataFrame:
    """The frame with these columns in these types; null in those that it does not have."""
    import polars as pl

    if dict(frame.schema) == schema:
        return frame
    return pl.concat([pl.DataFrame(schema=schema), frame], how="diagonal_relaxed").select(list(schema))


def _wider(name: str, a: Any, b: Any) -> Any:
    """The type that polars finds for both; None where it finds none."""
    import polars as pl

    try:
        both = pl.concat([pl.DataFrame(schema={name: a}), pl.DataFrame(schema={name: b})], how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return None
    wide = both.schema[name]
    # No integer holds all values of `UInt64` and of a signed type, and polars then takes a float.
    return None if a.is_integer() and b.is_integer() and not wide.is_integer() else wide


def _keeps(have: Any, wide: Any) -> bool:
    """Whether every value of a type is the same value in the wider one that polars has found."""
    import polars as pl

    if have == wide:
        return True
    if isinstance(have, (pl.Array, pl.List)):
        return isinstance(wide, (pl.Array, pl.List)) and _keeps(have.inner, wide.inner)
    if isinstance(have, pl.Struct):
        fields = {field.name: field.dtype for field in wide.fields} if isinstance(wide, pl.Struct) else {}
        return all(field.name in fields and _keeps(field.dtype, fields[field.name]) for field in have.fields)
    if wide == pl.Float64:
        return have in (pl.Float32, pl.Boolean) or (have.is_integer() and have != pl.Int128)
    if wide == pl.Float32:
        return have in (pl.Boolean, pl.Int8, pl.UInt8, pl.Int16, pl.UInt16)
    # Among integers, polars takes the one that holds both.
    return bool(wide.is_integer() and (have.is_integer() or have == pl.Boolean))

