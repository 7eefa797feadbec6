"""Runs a benchmark with pyulog: ulog_work.py WORK LOG."""

import contextlib
import io
import sys

import measured


def load(log, names=None):
    from pyulog import ULog

    data = ULog(log, names).data_list
    return f"{sum(len(topic.data['timestamp']) for topic in data)} rows", data


def info(log):
    from pyulog.info import main

    sys.argv = ["ulog_info", log]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main()
    return f"{len(out.getvalue().splitlines())} lines", None


WORKS = {"pyulog-kept": load, "pyulog-one-kept": lambda log: load(log, ["sensor_combined"]), "pyulog-info": info}

measured.main(WORKS)
