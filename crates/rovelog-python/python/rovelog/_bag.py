"""Data of ROS bags."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from rovelog import _core


class Connection(NamedTuple):
    """The messages of one topic that have the same type and MD5 sum.

    name            name of the topic in `log.topics`; a second type on the same topic has its own
                    name
    topic           name of the topic in the bag
    type            name of the message type: `sensor_msgs/LaserScan`
    md5sum          MD5 sum of the type: 32 characters, or `*`
    latched         number of messages from latching publishers
    callerids       node -> number of latched messages from it; a bag does not name other nodes
    definition      text of the message definition, if the bag contains it
    """

    name: str
    topic: str
    type: str
    md5sum: str
    latched: int
    callerids: dict[str, int]
    definition: str | None

    @property
    def latching(self) -> bool:
        """True if the connection has latched messages."""
        return self.latched > 0


class BagExtras:
    """Data that only ROS bags have; the type of `log.bag`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def connections(self) -> list[Connection]:
        """Connections, in the order of `log.topics`. On the command line: `rovelog info FILE`."""
        rows = zip(self._reader.topics(), _core.bag_connections(self._reader), strict=True)
        return [Connection(topic["name"], *row) for topic, row in rows]
