"""Named tuples that the methods of `Bag` return."""

from __future__ import annotations

from typing import Any, NamedTuple

from rovelog._core import Time
from rovelog._types import BagConnection
from rovelog.compat.rosbag import _messages
from rovelog.compat.rosbag._index import ConnectionInfo
from rovelog.compat.rosbag._messages import Message


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


class Connection(NamedTuple):
    """A connection of the reader.

    name            name of the topic in the reader
    info            connection in the form of rosbag
    messages        number of messages
    made            class for decoded messages
    undecoded       class for messages that the definition cannot decode
    """

    name: str
    info: ConnectionInfo
    messages: int
    made: type[Message]
    undecoded: type[Message]


def connection_facts(connection: Connection, with_header: bool) -> BagConnection:
    """Returns a connection in the form that the compiled part expects."""
    return {
        "topic": connection.info.topic,
        "kind": connection.info.datatype,
        "md5": connection.info.md5sum,
        "maker": _messages.maker_of(connection.made),
        "undecoded": connection.undecoded,
        "header": connection.info.header if with_header else None,
    }
