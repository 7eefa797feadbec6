"""What the methods of a bag take, checked and in one form."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from rovelog.compat.rosbag import _write
from rovelog.compat.rosbag._index import ConnectionInfo


def checked_compression(compression: str) -> str:
    allowed = _write.compressions()
    if compression not in allowed:
        raise ValueError(f"compression must be one of: {', '.join(allowed)}")
    return compression


def checked_threshold(chunk_threshold: int) -> int:
    if chunk_threshold < 0:
        raise ValueError("chunk_threshold must be greater than or equal to zero")
    return chunk_threshold


def identity(info: ConnectionInfo) -> tuple[str, str, str]:
    return info.topic, info.datatype, info.md5sum


def canonical(topic: str) -> str:
    return re.sub("/+", "/", topic).rstrip("/")


def canonical_names(topics: str | Iterable[str] | None) -> set[str] | None:
    """The names of topics; None for all of them."""
    if not topics:
        return None
    return {canonical(topic) for topic in ([topics] if isinstance(topics, str) else topics)}


def time_classes() -> tuple[type, type] | None:
    """The classes of times and durations in a process that uses ROS: scripts compare them with their own."""
    for name in ("rospy", "genpy"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "Time") and hasattr(module, "Duration"):
            return module.Time, module.Duration
    return None


def nanos(time: Any) -> int | None:
    if time is None:
        return None
    if hasattr(time, "to_nsec"):
        return int(time.to_nsec())
    return round(float(time) * 1e9)
