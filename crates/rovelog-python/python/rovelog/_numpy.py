"""Converts decoded columns to numpy arrays. The arrays share the memory of the columns where
possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rovelog import _core


def arrays(leaves: Iterable[_core.Leaf]) -> dict[str, Any]:
    """Returns a dict from flat names to arrays. Arrays that share memory are read-only."""
    return {leaf.name: array(leaf) for leaf in leaves}


def array(leaf: _core.Leaf) -> Any:
    """Returns a column as an array.

    Columns of numbers share memory unless values are missing. Missing floats are NaN, missing times
    are NaT, and other columns with missing values are masked arrays.
    """
    import numpy as np

    if leaf.data is not None:
        values = np.asarray(leaf.data)
        return values if leaf.valid is None else _with_nulls(values, np.asarray(leaf.valid))
    out: Any
    if leaf.offsets is not None:
        # The column contains lists of different lengths. The elements of row `i` are at the indices
        # from `offsets[i]` to `offsets[i + 1]` in the inner columns.
        offsets = np.asarray(leaf.offsets)
        inner = arrays(leaf.inner)
        out = np.empty(len(offsets) - 1, dtype=object)
        for row in range(len(out)):
            part = {name: values[offsets[row] : offsets[row + 1]] for name, values in inner.items()}
            # A list of structs has several inner columns. Each row of such a column is a dict of
            # arrays.
            out[row] = part[leaf.name] if list(part) == [leaf.name] else part
        return out.reshape(leaf.shape)
    objects = leaf.objects or []
    # `np.array(objects)` would guess a type and might create more dimensions.
    out = np.empty(len(objects), dtype=object)
    out[:] = objects
    return out.reshape(leaf.shape)


def _with_nulls(values: Any, valid: Any) -> Any:
    """Returns the values. Invalid values are replaced by NaN or NaT, or masked."""
    import numpy as np

    if values.dtype.kind == "f":
        values = values.copy()
        values[~valid] = np.nan
        return values
    if values.dtype.kind in "mM":
        values = values.copy()
        values[~valid] = np.array("NaT", dtype=values.dtype)
        return values
    # Some versions of numpy declare `masked_array` without types. `Any` satisfies mypy with all
    # versions.
    masked: Any = np.ma.masked_array
    return masked(values, mask=~valid)


def flat(leaves: Iterable[_core.Leaf]) -> dict[str, Any]:
    """Returns one-dimensional arrays: `q` with shape (n, 4) becomes the views `q[0]` to `q[3]`."""
    found: dict[str, Any] = {}
    for leaf in leaves:
        _flatten(leaf.pattern, array(leaf), found)
    return found


def _flatten(pattern: str, values: Any, found: dict[str, Any]) -> None:
    """Adds the one-dimensional slices of `values` to `found`. In the name of a slice, each `[]` of
    `pattern` is replaced by an index.

    For example, the pattern `pos[].x[]` and a shape of (n, 2, 3) give `pos[0].x[0]` to
    `pos[1].x[2]`.
    """
    if values.ndim == 1:
        found[pattern] = values
        return
    for index in range(values.shape[1]):
        _flatten(pattern.replace("[]", f"[{index}]", 1), values[:, index], found)
