"""Runs a benchmark with rocketlogger: rld_work.py WORK LOG."""

import time

import measured
import numpy as np
from rocketlogger.data import RocketLoggerData


def load(log):
    data = RocketLoggerData(log, memory_mapped=True)
    return f"{data.get_header()['sample_count']} rows", data


def header(log):
    data = RocketLoggerData(log, header_only=True)
    return f"{data.get_header()['sample_count']} rows", data


def one(log):
    data = RocketLoggerData(log, memory_mapped=True)
    return f"{len(data.get_data(['V1']))} rows", data


def f64(log):
    data = RocketLoggerData(log, memory_mapped=True)
    values = data.get_data()
    return f"{values.shape} values", (data, values)


def energy(log, statistics=True):
    data = RocketLoggerData(log, memory_mapped=True)
    data.merge_channels()
    found = []
    if statistics:
        for name in ("V1", "V2", "V3", "V4", "I1", "I2"):
            column = data.get_data([name])
            found.append((column.min(), column.max(), column.mean(), column.std()))
    period = 1.00352 / 64000
    joules = [float(np.sum(data.get_data([v]) * data.get_data([i])) * period) for v, i in (("V1", "I1"), ("V2", "I2"))]
    return f"{joules} J, {len(found)} columns", data


WORKS = {
    "py-rocketlogger-load": load,
    "py-rocketlogger-header": header,
    "py-rocketlogger-one": one,
    "py-rocketlogger-f64": f64,
    "py-rocketlogger-energy": energy,
    "py-rocketlogger-energy-only": lambda log: energy(log, False),
}

# The time for starting Python and for imports does not count.
measured.main(WORKS, since=time.process_time())
