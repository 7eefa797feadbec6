"""Runs a benchmark with the package rosbags from PyPI: rosbags_work.py WORK LOG."""

import measured
from rosbags.highlevel import AnyReader
from rosbags.rosbag1 import Reader
from rosbags.typesys import Stores, get_typestore
from pathlib import Path


def raw(log):
    messages = 0
    with Reader(log) as bag:
        for _connection, _time, _data in bag.messages():
            messages += 1
    return f"{messages} messages", None


def values(log):
    messages = 0
    with AnyReader([Path(log)], default_typestore=get_typestore(Stores.ROS1_NOETIC)) as bag:
        for connection, _time, data in bag.messages():
            bag.deserialize(data, connection.msgtype)
            messages += 1
    return f"{messages} messages", None


measured.main({"pyrosbags-raw": raw, "pyrosbags-values": values})
