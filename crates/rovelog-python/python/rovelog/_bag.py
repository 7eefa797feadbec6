"""Data of ROS bags."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from rovelog import _core


class Connection(NamedTuple):
    """Messages of one topic with one type and md5 sum.

    name            name of the topic in `log.topics`; a second type on the same topic has its own name
    topic           name of the topic in the bag
    type            `sensor_msgs/LaserScan`
    md5sum          md5 sum of the type: 32 characters, or `*`
    latched         number of messages of latching publishers
    callerids       nodes that sent latched messages -> their number; bags do not name other nodes
    definition      text of the type's definition, if the bag has one
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
        """Whether a publisher is latching."""
        return self.latched > 0


class BagExtras:
    """Data of ROS bags; `log.bag`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def connections(self) -> list[Connection]:
        """Connections, in the order of `log.topics`. On the command line: `rovelog info FILE`."""
        rows = zip(self._reader.topics(), _core.bag_connections(self._reader), strict=True)
        return [Connection(topic["name"], *row) for topic, row in rows]
