"""Columns as numpy arrays: no copy where the memory can be shared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rovelog import _core


def arrays(leaves: Iterable[_core.Leaf]) -> dict[str, Any]:
    """Flat name -> array, read-only where it shares memory."""
    return {leaf.name: array(leaf) for leaf in leaves}


def array(leaf: _core.Leaf) -> Any:
    """One column: numbers share memory; where values are missing, floats are NaN and all others a masked array."""
    import numpy as np

    if leaf.data is not None:
        values = np.asarray(leaf.data)
        return values if leaf.valid is None else _with_nulls(values, np.asarray(leaf.valid))
    out: Any
    if leaf.offsets is not None:
        offsets = np.asarray(leaf.offsets)
        inner = arrays(leaf.inner)
        out = np.empty(len(offsets) - 1, dtype=object)
        for row in range(len(out)):
            part = {name: values[offsets[row] : offsets[row + 1]] for name, values in inner.items()}
            # A list of structs is a dict of arrays.
            out[row] = part[leaf.name] if list(part) == [leaf.name] else part
        return out.reshape(leaf.shape)
    objects = leaf.objects or []
    out = np.empty(len(objects), dtype=object)
    out[:] = objects
    return out.reshape(leaf.shape)


def _with_nulls(values: Any, valid: Any) -> Any:
    import numpy as np

    if values.dtype.kind == "f":
        values = values.copy()
        values[~valid] = np.nan
        return values
    if values.dtype.kind in "mM":
        values = values.copy()
        values[~valid] = np.array("NaT", dtype=values.dtype)
        return values
    # Whether numpy calls it typed depends on its version.
    masked: Any = np.ma.masked_array
    return masked(values, mask=~valid)


def flat(leaves: Iterable[_core.Leaf]) -> dict[str, Any]:
    """Arrays of one dimension only: `q` of shape (n, 4) becomes `q[0]` to `q[3]`, views of it."""
    found: dict[str, Any] = {}
    for leaf in leaves:
        _flatten(leaf.pattern, array(leaf), found)
    return found


def _flatten(pattern: str, values: Any, found: dict[str, Any]) -> None:
    if values.ndim == 1:
        found[pattern] = values
        return
    for index in range(values.shape[1]):
        _flatten(pattern.replace("[]", f"[{index}]", 1), values[:, index], found)
