"""Compares gaps, jitter and order of times, as `rovelog stats --timing` tells them, with numpy.

usage: health.py ROVELOG CORPUS [REAL]

The times of ULog are pyulog's; of the other formats those of `rovelog cat`, whose values the oracles
of these formats compare with other readers. Everything is exact but the jitter, a sum of floats.
"""

import contextlib
import io
import json
import multiprocessing
import pathlib
import resource
import sys

import numpy as np
from pyulog import ULog

import rovelog_cli

EXTENSIONS = {".ulg", ".rld", ".bag", ".vel"}

# pyulog takes all memory or endless time for some damaged logs, and catches every exception: it runs
# in a process of its own with limits.
MEMORY = 2 << 30
SECONDS = 20
FORK = multiprocessing.get_context("fork")


def of_cat(binary, log):
    """Topic -> times in the order of the file."""
    found = {}
    for record in rovelog_cli.records(binary, log):
        if record["t_ns"] is not None:
            found.setdefault(record["topic"], []).append((record["seq"], int(record["t_ns"])))
    return {topic: np.array([time for _, time in sorted(rows)]) for topic, rows in found.items()}


LONGEST = (1 << 63) - 1


def counts(binary, log):
    """Topic -> number of its messages."""
    document = json.loads(rovelog_cli.run(binary, "topics", "-q", "-f", "json", str(log)))
    return {topic["name"]: int(topic["count"]) for topic in document["topics"]}


class TooMuch(Exception):
    pass


def of_pyulog(log):
    """The same by pyulog; it joins series of one topic whose id was subscribed again."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=pyulog_times, args=(log, theirs), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(SECONDS):
            raise TooMuch
        return ours.recv()
    except EOFError:
        raise TooMuch from None
    finally:
        child.kill()
        child.join()


def pyulog_times(log, answer):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    times = {}
    try:
        # It prints a line for each corruption.
        with open(log, "rb") as file, contextlib.redirect_stdout(io.StringIO()):
            data = ULog(file).data_list
        times = {f"{topic.name}/{topic.multi_id}": topic.data["timestamp"] for topic in data}
    except MemoryError:
        # Without an answer.
        return
    except Exception:  # pylint: disable=broad-except
        pass
    answer.send({name: at.astype(np.int64) * 1000 for name, at in times.items() if at.dtype == np.uint64})


def differences_of(times):
    """Differences in nanoseconds; 64 bits end at 292 years."""
    if len(times) and int(times.max()) - int(times.min()) > LONGEST:
        exact = np.diff(times.astype(object))
        return np.clip(exact, -LONGEST, LONGEST).astype(np.int64)
    return np.diff(times)


def health(times):
    intervals = differences_of(times)
    rising = np.sort(intervals[intervals > 0])
    said = {"count": len(times), "falling": int((intervals < 0).sum()), "repeated": int((intervals == 0).sum())}
    period = int(rising[(len(rising) - 1) // 2]) if len(rising) else None
    regular = 0 if period is None else int(((rising >= period // 2) & (rising <= period + period // 2)).sum())
    steady = len(rising) >= 10 and regular * 5 >= len(rising) * 4
    is_gap = rising > 3 * period if steady else np.zeros(len(rising), bool)
    missing = (rising[is_gap] + period // 2) // period - 1 if steady else np.array([])
    said |= {
        "period_ns": period,
        "steady": steady,
        "shortest_ns": int(rising[0]) if len(rising) else None,
        "longest_ns": int(rising[-1]) if len(rising) else None,
        "gaps": int(is_gap.sum()),
        "missing": int(missing.sum()),
        "jitter_ns": float(rising[~is_gap].astype(np.float64).std()) if len(rising) else None,
    }
    return said


def ours(topic):
    numbers = ["count", "falling", "repeated", "period_ns", "shortest_ns", "longest_ns", "gaps", "missing"]
    said = {key: None if topic[key] is None else int(topic[key]) for key in numbers}
    return said | {"steady": topic["steady"], "jitter_ns": topic["jitter_ns"]}


def equal(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-3
    return a == b


def logs(folders):
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix in EXTENSIONS and path.is_file():
                yield path


def main():
    binary, *folders = sys.argv[1:]
    compared, by_pyulog, gaps, differences, unread, too_much, undecoded = 0, 0, 0, [], 0, 0, 0
    for log in logs(folders):
        try:
            document = json.loads(rovelog_cli.run(binary, "stats", "--timing", "-q", "-f", "json", str(log)))
            times = of_cat(binary, log)
        except rovelog_cli.Refused:
            # No log, or one that is refused; the oracles of the formats judge that.
            unread += 1
            continue
        independent = {}
        if log.suffix == ".ulg":
            try:
                independent = of_pyulog(log)
            except TooMuch:
                too_much += 1
        found = {topic["topic"]: topic for topic in document["health"]["topics"]}
        if set(found) != set(times):
            differences.append(f"{log.name}: topics {sorted(set(found) ^ set(times))}")
        for name in sorted(set(found) & set(times)):
            stamps = times[name]
            own = independent.get(name)
            said = int(found[name]["count"])
            if log.suffix == ".bag" and said > len(stamps) and counts(binary, log).get(name) == said:
                # Messages that cannot be decoded have times; `cat` leaves them out.
                undecoded += 1
                continue
            # Where pyulog reads the same records, its times are the judge.
            if own is not None and len(own) == len(stamps):
                stamps, by_pyulog = own, by_pyulog + 1
            said, judged = ours(found[name]), health(stamps)
            compared += 1
            gaps += judged["gaps"]
            for key, value in judged.items():
                if not equal(said[key], value):
                    differences.append(f"{log.name} {name} {key}: {said[key]}, numpy {value}")
    print(f"{compared} topics compared ({by_pyulog} with pyulog's times), {gaps} gaps, {unread} files refused")
    print(f"{too_much} logs took pyulog more than {SECONDS} s or {MEMORY >> 30} GiB")
    print(f"{undecoded} topics left out: they have messages that cannot be decoded")
    for difference in differences:
        print(f"DIFFERENT: {difference}")
    sys.exit(1 if differences or not compared else 0)


main()
