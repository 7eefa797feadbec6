"""One measured piece of work per run, with pyulog: pyulog_work.py WORK LOG. Prints CPU seconds, peak MB, what it counted."""

import contextlib
import io
import resource
import sys
import time


def load(log, names=None):
    from pyulog import ULog

    data = ULog(log, names).data_list
    return f"{sum(len(topic.data['timestamp']) for topic in data)} rows"


def info(log):
    from pyulog.info import main

    sys.argv = ["ulog_info", log]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main()
    return f"{len(out.getvalue().splitlines())} lines"


WORKS = {"pyulog-kept": load, "pyulog-one-kept": lambda log: load(log, ["sensor_combined"]), "pyulog-info": info}

counted = WORKS[sys.argv[1]](sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(f"{time.process_time():.4f} s {peak:.0f} MB {counted}")
