"""Runs a benchmark with python3-rosbag: rosbag_work.py WORK LOG."""

import measured
import rosbag
import rosbag.bag


def count(log, raw):
    messages = 0
    with rosbag.Bag(log) as bag:
        for _topic, _message, _time in bag.read_messages(raw=raw):
            messages += 1
    return f"{messages} messages", None


def info(log):
    with rosbag.Bag(log) as bag:
        return f"{len(str(bag))} characters of text", None


WORKS = {
    "pyrosbag-raw": lambda log: count(log, True),
    "pyrosbag-values": lambda log: count(log, False),
    "pyrosbag-info": info,
}

measured.repair(rosbag)
measured.main(WORKS)
