"""Drop-in replacement for rosbag: `from rovelog.compat.rosbag import Bag`.

It needs no ROS installation, and never runs code from a bag. It reads bags of all versions, with or
without an index, including damaged bags. It writes V2.0 and V1.2 bags.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rovelog.compat.rosbag import bag
from rovelog.compat.rosbag._errors import ROSBagException, ROSBagFormatException, ROSBagUnindexedException
from rovelog.compat.rosbag._index import Compression
from rovelog.compat.rosbag._messages import Message
from rovelog.compat.rosbag.bag import Bag, BagMessage, Duration, Time

if TYPE_CHECKING:
    from rovelog.compat.rosbag.rosbag_main import rosbagmain

__all__ = [
    "Bag",
    "BagMessage",
    "Compression",
    "Duration",
    "Message",
    "ROSBagException",
    "ROSBagFormatException",
    "ROSBagUnindexedException",
    "Time",
    "bag",
    "rosbagmain",
]


def __getattr__(name: str) -> Any:
    # `python -m rovelog.compat.rosbag.rosbag_main` warns if the module was imported before it runs.
    if name == "rosbagmain":
        from rovelog.compat.rosbag.rosbag_main import rosbagmain

        return rosbagmain
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
