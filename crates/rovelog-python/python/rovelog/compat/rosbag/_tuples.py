"""Named tuples that the methods of `Bag` return."""

from __future__ import annotations

from typing import Any, NamedTuple

from rovelog._core import Time


class BagMessage(NamedTuple):
    """A message of `read_messages`."""

    topic: str
    message: Any
    timestamp: Time


class BagMessageWithConnectionHeader(NamedTuple):
    """A message of `read_messages(return_connection_header=True)`."""

    topic: str
    message: Any
    timestamp: Time
    connection_header: dict[str, str]


class TopicTuple(NamedTuple):
    """Information about a topic. `frequency` is in Hz, computed from the median period."""

    msg_type: str
    message_count: int
    connections: int
    frequency: float | None


class TypesAndTopicsTuple(NamedTuple):
    """Types with their MD5 sums, and topics with their information."""

    msg_types: dict[str, str]
    topics: dict[str, TopicTuple]
