"""Does one piece of work with an original package or its drop-in: python_work.py PACKAGE WORK LOG.

Prints wall and CPU seconds without imports, the peak memory in MB without mapped files, and the result.
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
    """Reviews a flight: summary, parameters, texts, dropouts, attitude as angles, position."""
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
    """Reads one dataset of a log, and computes the mean of the gyroscope."""
    data = package.ULog(log, ["sensor_combined"]).get_dataset("sensor_combined").data
    fields = [name for name in data if name.startswith("gyro_rad")]
    return len(data["timestamp"]), [float(np.mean(data[name], dtype=np.float64)) for name in fields]


def info(package, log):
    """Reads what ulog_info prints, except the table of datasets."""
    ulog = package.ULog(log)
    return ulog.start_timestamp, ulog.last_timestamp, sorted(ulog.msg_info_dict), sum(d.duration for d in ulog.dropouts)


def load(package, log):
    """Loads all datasets."""
    data = package.ULog(log).data_list
    return sum(len(topic.data["timestamp"]) for topic in data), len(data)


def everything(package, log):
    """Loads all datasets, and computes the largest value of each field."""
    data = package.ULog(log).data_list
    with np.errstate(all="ignore"):
        return len(data), sum(1 for topic in data for values in topic.data.values() if values.max() > 0)


def matrix(package, log):
    """Loads all channels of a measurement in SI units."""
    data = package.RocketLoggerData(log).get_data()
    return data.shape, f"{data[:, -1].sum():.9g}"


def power(package, log):
    """Computes the energy of a measurement in J: voltage times merged current."""
    measured = package.RocketLoggerData(log).merge_channels()
    values = measured.get_data(["V1", "I1"])
    seconds = measured.get_time()
    return f"{(values[:, 0] * values[:, 1]).sum() * seconds[1]:.9g}"


def messages(package, log):
    """Reads all messages of a bag as objects, in time order."""
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
