"""Runs one benchmark. Prints the CPU time in seconds, the peak memory in MB and a count, for `cargo
xtask bench`.
"""

import resource
import sys
import time


def main(works, since=0.0):
    """Does the work named by the first argument on the log named by the second. CPU time counts from `since` on.

    A benchmark returns a text, and data that must stay in memory until the memory has been
    measured.
    """
    counted, _kept = works[sys.argv[1]](sys.argv[2])
    seconds = time.process_time() - since
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{seconds:.4f} s {peak:.0f} MB {counted}")


def repair(rosbag):
    """Makes python3-rosbag read indexed V1.2 bags: its reader takes fewer arguments than the final release passes."""
    reader = rosbag.bag._BagReader102_Indexed
    read = reader.read_messages
    reader.read_messages = lambda self, *args: read(self, *args[:5])
