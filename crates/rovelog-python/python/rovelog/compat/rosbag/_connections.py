"""Connections of the reader, and their connection headers.

Several nodes may publish the same topic. A bag has a connection for each of them, but the reader
combines the connections with the same topic, type and MD5 sum. The connection header of a message
is found by its publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rovelog import _bag
from rovelog._types import BagConnection, BagPublisher
from rovelog.compat.rosbag import _messages
from rovelog.compat.rosbag._arguments import identity
from rovelog.compat.rosbag._index import ConnectionInfo, text_value
from rovelog.compat.rosbag._messages import Message

Headers = dict[BagPublisher, dict[str, Any]]
"""Publisher -> connection header."""


class Connection(NamedTuple):
    """A connection of the reader.

    name            name of the topic in the reader
    info            connection in the form of rosbag, with the header of the first publisher
    messages        number of messages
    headers         connection headers
    made            class for decoded messages
    undecoded       class for messages that the definition cannot decode
    """

    name: str
    info: ConnectionInfo
    messages: int
    headers: Headers
    made: type[Message]
    undecoded: type[Message]


def stored_headers(connections: Iterable[ConnectionInfo]) -> dict[tuple[str, str, str], Headers]:
    """Returns the connection headers of a V2.0 bag, by topic, type and MD5 sum.

    A node that was restarted has several connections. Its first header is used.
    """
    found: dict[tuple[str, str, str], Headers] = {}
    for info in connections:
        name = info.header.get("callerid")
        publisher = (text_value(info.header.get("latching", "")) == "1", None if name is None else text_value(name))
        found.setdefault(identity(info), {}).setdefault(publisher, info.header)
    return found


def made_headers(connection: _bag.Connection, messages: int, version: int) -> Headers:
    """Returns connection headers with the values that the reader knows.

    They are used for bags before V2.0, which have no connection headers, and for bags without an
    index.
    """
    header = {
        "topic": connection.topic,
        "type": connection.type,
        "md5sum": connection.md5sum,
        "message_definition": connection.definition or "",
    }
    nodes = connection.callerids
    publishers: list[BagPublisher] = [(True, node) for node in nodes] if connection.latched else []
    if connection.latched < messages or not publishers:
        # Before V2.0, only messages of latching publishers have the name of their node.
        publishers += [(False, node) for node in nodes] if version >= 200 and nodes else [(False, None)]
    return {
        (latching, node): header if node is None else {**header, "callerid": node, "latching": str(int(latching))}
        for latching, node in publishers
    }


def selected(connection: Connection, accepts: Callable[..., bool] | None) -> BagConnection | None:
    """Returns a connection in the form that the compiled part expects. Returns None if `accepts`,
    the filter of the caller, rejects all publishers.
    """
    info = connection.info
    headers = {
        publisher: header
        if accepts is None or accepts(info.topic, info.datatype, info.md5sum, info.msg_def, header)
        else None
        for publisher, header in connection.headers.items()
    }
    if all(header is None for header in headers.values()):
        return None
    return {
        "topic": info.topic,
        "kind": info.datatype,
        "md5": info.md5sum,
        "maker": _messages.maker_of(connection.made),
        "undecoded": connection.undecoded,
        "headers": headers,
        # If a bag is damaged, the publisher of a message may be unknown.
        "header": next(iter(headers.values())),
    }
