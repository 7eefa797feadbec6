"""Drop-in replacement for rosbag: `from rovelog.compat.rosbag import Bag`. ROS is not needed, and no code of the bag is
run.

Reads bags of all versions, indexed, unindexed, crashed or damaged, and writes V2.0 and V1.2.
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
    # Not before it is asked for: `python -m` runs the module of that name itself.
    if name == "rosbagmain":
        from rovelog.compat.rosbag.rosbag_main import rosbagmain

        return rosbagmain
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
