"""What a bag gives."""

from __future__ import annotations

from typing import Any, NamedTuple

from rovelog._core import Time
from rovelog.compat.rosbag._index import ConnectionInfo
from rovelog.compat.rosbag._messages import Message


class BagMessage(NamedTuple):
    """What `read_messages` gives."""

    topic: str
    message: Any
    timestamp: Time


class BagMessageWithConnectionHeader(NamedTuple):
    """What `read_messages(return_connection_header=True)` gives."""

    topic: str
    message: Any
    timestamp: Time
    connection_header: dict[str, str]


class TopicTuple(NamedTuple):
    """What a bag has of a topic; `frequency` in Hz, by the median of the periods."""

    msg_type: str
    message_count: int
    connections: int
    frequency: float | None


class TypesAndTopicsTuple(NamedTuple):
    """Types with their md5 sums, and topics."""

    msg_types: dict[str, str]
    topics: dict[str, TopicTuple]


class Connection(NamedTuple):
    """A connection as the reader has it."""

    name: str
    info: ConnectionInfo
    messages: int
    made: type[Message]
    undecoded: type[Message]
