"""Decimation: each group of samples becomes one value, as in rocketlogger."""

from __future__ import annotations

from typing import Any


def _groups(values: Any, decimation_factor: int) -> Any:
    """Returns the values as one row per group. An incomplete group at the end is dropped."""
    count = len(values) // decimation_factor
    return values[: count * decimation_factor].reshape(count, decimation_factor)


def _decimate_binary(values: Any, decimation_factor: int, threshold_value: float = 0.5) -> Any:
    """Returns True for each group in which at least this share of the values is true."""
    return _groups(values, decimation_factor).sum(axis=1) >= threshold_value * decimation_factor


def _decimate_min(values: Any, decimation_factor: int) -> Any:
    """Returns True for each group in which all values are true."""
    return _groups(values, decimation_factor).sum(axis=1) >= decimation_factor


def _decimate_max(values: Any, decimation_factor: int) -> Any:
    """Returns True for each group in which any value is true."""
    return _groups(values, decimation_factor).sum(axis=1) > 0


def _decimate_mean(values: Any, decimation_factor: int) -> Any:
    """Returns the mean of each group."""
    return _groups(values, decimation_factor).mean(axis=1)
