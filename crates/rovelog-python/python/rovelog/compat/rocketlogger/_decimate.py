"""Averages of groups of samples, as rocketlogger makes them."""

from __future__ import annotations

from typing import Any


def _groups(values: Any, decimation_factor: int) -> Any:
    count = len(values) // decimation_factor
    return values[: count * decimation_factor].reshape(count, decimation_factor)


def _decimate_binary(values: Any, decimation_factor: int, threshold_value: float = 0.5) -> Any:
    """True where at least this share of the values is true."""
    return _groups(values, decimation_factor).sum(axis=1) >= threshold_value * decimation_factor


def _decimate_min(values: Any, decimation_factor: int) -> Any:
    """True where all values are true."""
    return _groups(values, decimation_factor).sum(axis=1) >= decimation_factor


def _decimate_max(values: Any, decimation_factor: int) -> Any:
    """True where a value is true."""
    return _groups(values, decimation_factor).sum(axis=1) > 0


def _decimate_mean(values: Any, decimation_factor: int) -> Any:
    """The mean of the values."""
    return _groups(values, decimation_factor).mean(axis=1)
