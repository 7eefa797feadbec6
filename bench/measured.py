"""One measured piece of work per run. Prints CPU seconds, peak MB, what was counted; `xtask` reads it."""

import resource
import sys
import time


def main(works, since=0.0):
    """Does the work that the command line names, on the log it names; CPU time counts from `since` on.

    A work returns what it counted, and what must stay in memory until that is measured.
    """
    counted, _kept = works[sys.argv[1]](sys.argv[2])
    seconds = time.process_time() - since
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{seconds:.4f} s {peak:.0f} MB {counted}")


def repair(rosbag):
    """python3-rosbag's class for indexed V1.2 bags takes fewer arguments than the final releases hand it."""
    reader = rosbag.bag._BagReader102_Indexed
    read = reader.read_messages
    reader.read_messages = lambda self, *args: read(self, *args[:5])
