"""One measured piece of work per run, with python3-rosbag: rosbag_work.py WORK LOG. Prints CPU seconds, peak MB, what it counted."""

import resource
import sys
import time

import rosbag
import rosbag.bag


def repair():
    """The class for indexed V1.2 bags takes fewer arguments than the final releases hand it."""
    reader = rosbag.bag._BagReader102_Indexed
    read = reader.read_messages
    reader.read_messages = lambda self, *args: read(self, *args[:5])


def count(log, raw):
    messages = 0
    with rosbag.Bag(log) as bag:
        for _topic, _message, _time in bag.read_messages(raw=raw):
            messages += 1
    return f"{messages} messages"


WORKS = {"pyrosbag-raw": lambda log: count(log, True), "pyrosbag-values": lambda log: count(log, False)}

repair()
counted = WORKS[sys.argv[1]](sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(f"{time.process_time():.4f} s {peak:.0f} MB {counted}")
