"""Validation and conversion of the arguments of `Bag`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from rovelog.compat.rosbag import _write
from rovelog.compat.rosbag._index import ConnectionInfo


def checked_compression(compression: str) -> str:
    """Returns the compression. Raises ValueError if it is not available."""
    allowed = _write.compressions()
    if compression not in allowed:
        raise ValueError(f"compression must be one of: {', '.join(allowed)}")
    return compression


def checked_threshold(chunk_threshold: int) -> int:
    """Returns the size of chunks. Raises ValueError if it is negative."""
    if chunk_threshold < 0:
        raise ValueError("chunk_threshold must be greater than or equal to zero")
    return chunk_threshold


def identity(info: ConnectionInfo) -> tuple[str, str, str]:
    """Returns the values that identify a connection in any bag."""
    return info.topic, info.datatype, info.md5sum


def canonical(topic: str) -> str:
    """Returns a topic without repeated and trailing slashes."""
    return re.sub("/+", "/", topic).rstrip("/")


def canonical_names(topics: str | Iterable[str] | None) -> set[str] | None:
    """Returns the canonical names of topics; None selects all topics."""
    if not topics:
        return None
    return {canonical(topic) for topic in ([topics] if isinstance(topics, str) else topics)}


def time_classes() -> tuple[type, type] | None:
    """Returns the classes `Time` and `Duration` of ROS if the process has imported them, otherwise
    None.

    Scripts compare the times of messages with objects of these classes.
    """
    for name in ("rospy", "genpy"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "Time") and hasattr(module, "Duration"):
            return module.Time, module.Duration
    return None


def nanos(time: Any) -> int | None:
    """Converts a Time or seconds to nanoseconds. As in rosbag, zero is no limit."""
    if not time:
        return None
    if hasattr(time, "to_nsec"):
        return int(time.to_nsec())
    return round(float(time) * 1e9)
