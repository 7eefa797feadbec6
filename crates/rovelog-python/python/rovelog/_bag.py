"""What only a ROS bag has."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from rovelog import _core


class Connection(NamedTuple):
    """All messages of one topic with one type and md5 sum.

    name            the topic in `log.topics`; a second type on the same topic has a name of its own there
    topic           the topic as it stands in the bag
    type            `sensor_msgs/LaserScan`
    md5sum          the md5 sum of the type: 32 characters, or `*`
    latched         how many of its messages are of a latching publisher
    callerids       the nodes that sent latched messages -> how many; the bags tell them of no others
    definition      the text of the type's definition, where the bag has one
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
    """What only a ROS bag has; `log.bag`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def connections(self) -> list[Connection]:
        """The connections, in the order of `log.topics`. On the command line: `rovelog info FILE`."""
        rows = zip(self._reader.topics(), _core.bag_connections(self._reader), strict=True)
        return [Connection(topic["name"], *row) for topic, row in rows]
