"""One measured piece of work per run: python_work.py PACKAGE WORK LOG. The package is the only thing that changes.

Prints wall and CPU time of the script in seconds, imports not counted, the peak memory in MB, what it found. The log's pages in
memory are the file's, so what is mapped is taken off.
"""

import importlib
import pathlib
import sys
import time

import measured

try:
    import numpy as np
except ImportError:
    np = None  # The distribution's Python reads bags without it.


def review(package, log):
    """What a look at a flight needs: summary, parameters, texts, dropouts, attitude as angles, the way it flew."""
    ulog = package.ULog(log)
    seconds = (ulog.last_timestamp - ulog.start_timestamp) / 1e6
    facts = len(ulog.msg_info_dict), len(ulog.initial_parameters), len(ulog.logged_messages), len(ulog.dropouts)
    vehicle = package.px4.PX4ULog(ulog)
    vehicle.add_roll_pitch_yaw(["vehicle_attitude"])
    attitude = ulog.get_dataset("vehicle_attitude").data
    position = ulog.get_dataset("vehicle_local_position").data
    lowest = float(position["z"].min())
    return seconds, facts, vehicle.get_mav_type(), float(np.nanmax(np.abs(attitude["roll"]))), lowest


def dataset(package, log):
    """One dataset of a log: the mean of the gyroscope."""
    data = package.ULog(log, ["sensor_combined"]).get_dataset("sensor_combined").data
    fields = [name for name in data if name.startswith("gyro_rad")]
    return len(data["timestamp"]), [float(np.mean(data[name], dtype=np.float64)) for name in fields]


def info(package, log):
    """What ulog_info prints, but for the table of datasets."""
    ulog = package.ULog(log)
    return ulog.start_timestamp, ulog.last_timestamp, sorted(ulog.msg_info_dict), sum(d.duration for d in ulog.dropouts)


def load(package, log):
    """All datasets in memory."""
    data = package.ULog(log).data_list
    return sum(len(topic.data["timestamp"]) for topic in data), len(data)


def everything(package, log):
    """All datasets, and the largest value of each field."""
    data = package.ULog(log).data_list
    with np.errstate(all="ignore"):
        return len(data), sum(1 for topic in data for values in topic.data.values() if values.max() > 0)


def matrix(package, log):
    """A measurement in SI units: all channels."""
    data = package.RocketLoggerData(log).get_data()
    return data.shape, f"{data[:, -1].sum():.9g}"


def power(package, log):
    """The energy of a measurement, J: voltage times merged current."""
    measured = package.RocketLoggerData(log).merge_channels()
    values = measured.get_data(["V1", "I1"])
    seconds = measured.get_time()
    return f"{(values[:, 0] * values[:, 1]).sum() * seconds[1]:.9g}"


def messages(package, log):
    """All messages of a bag as objects, by their times."""
    if package.__name__ == "rosbag":
        measured.repair(package)
    count, times = 0, 0
    with package.Bag(log) as bag:
        for _topic, message, time in bag.read_messages():
            count += len(message.__slots__)
            times += time.to_nsec()
    return count, times


WORKS = {work.__name__: work for work in (review, dataset, info, load, everything, matrix, power, messages)}


def megabytes():
    status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    return (int(status["VmHWM"].split()[0]) - int(status["RssFile"].split()[0])) / 1000


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    work = WORKS[sys.argv[2]]
    began, used = time.perf_counter(), time.process_time()
    found = work(module, sys.argv[3])
    seconds, used = time.perf_counter() - began, time.process_time() - used
    print(f"{seconds:.4f} {used:.4f} {megabytes():.0f} {found}")
