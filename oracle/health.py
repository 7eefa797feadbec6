"""Compares the gaps, jitter and order of times that `rovelog stats --timing` prints with numpy.

usage: health.py ROVELOG CORPUS [REAL]

Times of ULogs come from pyulog, those of other formats from `rovelog cat`, whose values the checks of these formats
compare with other readers. All figures are exact except the jitter, a sum of floats.
"""

import bisect
import contextlib
import io
import json
import multiprocessing
import pathlib
import resource
import subprocess
import sys

import numpy as np
from pyulog import ULog

import rovelog_cli

EXTENSIONS = {".ulg", ".rld", ".bag", ".vel"}

# pyulog uses all memory or endless time for some damaged logs, and catches every exception, so it runs in a process of
# its own with limits.
MEMORY = 2 << 30
SECONDS = 20
FORK = multiprocessing.get_context("fork")


LONGEST = (1 << 63) - 1

# As in docs/guide/command-line.md: a gap is longer than GAP periods, and the WITNESSES fastest topics may confirm it.
GAP = 3
WITNESSES = 32


def of_cat(binary, log):
    """Returns topic -> times in file order, and (offset, time) of all records."""
    found, places = {}, []
    for record in rovelog_cli.records(binary, log):
        if record["t_ns"] is not None:
            found.setdefault(record["topic"], []).append((record["seq"], int(record["t_ns"])))
            places.append((int(record["offset"]), int(record["t_ns"])))
    return {topic: np.array([time for _, time in sorted(rows)]) for topic, rows in found.items()}, places


def interruptions(binary, log, places):
    """Returns the time spans in which the log itself reports missing records."""
    spans = []
    if log.suffix == ".ulg":
        dropouts = json.loads(rovelog_cli.run(binary, "ulog", "dropouts", "-q", "-f", "json", str(log)))["dropouts"]
        starts = [(int(dropout["t_ns"]), dropout["milliseconds"]) for dropout in dropouts if dropout["t_ns"] is not None]
        spans += [(start, start + length * 1_000_000) for start, length in starts]
    # Records of `cat` are in time order; those at one offset stay in it.
    places = sorted(places, key=lambda place: place[0])
    offsets = [offset for offset, _ in places]
    for lost in lost_ranges(binary, log):
        behind = bisect.bisect_left(offsets, lost)
        if 0 < behind < len(places):
            spans.append((places[behind - 1][1], places[behind][1]))
    return joined(spans)


def lost_ranges(binary, log):
    """Returns the starts of the ranges of lost bytes."""
    done = subprocess.run([binary, "check", "-q", "-f", "json", str(log)], capture_output=True, check=False, timeout=120)
    return [int(start) for start, _ in json.loads(done.stdout)["lost"]["ranges"]]


def joined(spans):
    """Returns the spans that are not empty as spans that do not overlap, ascending."""
    found = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return found


def explains(spans, start, end, period):
    """Returns True if the spans explain a gap. This is the case if the gap, without the time
    covered by the spans, would be too short for a gap.
    """
    covered = sum(max(0, min(last, end) - max(first, start)) for first, last in spans)
    return covered > 0 and end - start - covered <= GAP * period


def confirm(judged, stops):
    """Adds the confirmed gaps and the records that are missing from them to each topic, in the order of the log."""
    order = {name: place for place, name in enumerate(judged)}
    steady = [name for name in judged if judged[name]["steady"]]
    asked = sorted(steady, key=lambda name: (judged[name]["period_ns"], order[name]))[:WITNESSES]
    spans = {name: joined(judged[name]["places"]) for name in asked}
    for name, topic in judged.items():
        period, topic["confirmed"], topic["missing"] = topic["period_ns"], 0, 0
        for start, end in topic["places"]:
            others = [
                other
                for other in asked
                if other != name
                and end - start > GAP * judged[other]["period_ns"]
                and judged[other]["first"] <= start
                and judged[other]["latest"] >= end
            ]
            sharing = sum(explains(spans[other], start, end, period) for other in others)
            is_common = sharing > 0 and (sharing + 1) * 2 > len(others) + 1
            if explains(stops, start, end, period) or is_common:
                topic["confirmed"] += 1
                topic["missing"] += (end - start + period // 2) // period - 1


def counts(binary, log):
    """Returns topic -> number of messages."""
    document = json.loads(rovelog_cli.run(binary, "topics", "-q", "-f", "json", str(log)))
    return {topic["name"]: int(topic["count"]) for topic in document["topics"]}


class TooMuch(Exception):
    pass


def of_pyulog(log):
    """Returns topic -> times with pyulog, which joins the series of a topic that is subscribed again."""
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
        # pyulog prints a line for each corruption.
        with open(log, "rb") as file, contextlib.redirect_stdout(io.StringIO()):
            data = ULog(file).data_list
        times = {f"{topic.name}/{topic.multi_id}": topic.data["timestamp"] for topic in data}
    except MemoryError:
        # The process ended without a result.
        return
    except Exception:  # pylint: disable=broad-except
        pass
    answer.send({name: at.astype(np.int64) * 1000 for name, at in times.items() if at.dtype == np.uint64})


def differences_of(times):
    """Returns differences in nanoseconds. They may exceed 64 bits (292 years)."""
    if len(times) and int(times.max()) - int(times.min()) > LONGEST:
        exact = np.diff(times.astype(object))
        return np.clip(exact, -LONGEST, LONGEST).astype(np.int64)
    return np.diff(times)


def health(times):
    intervals = differences_of(times)
    rising = np.sort(intervals[intervals > 0])
    said = {"count": len(times), "falling": int((intervals < 0).sum()), "repeated": int((intervals == 0).sum())}
    period = int(rising[(len(rising) - 1) // 2]) if len(rising) else None
    near = (rising >= (period or 0) // 2) & (rising <= (period or 0) + (period or 0) // 2)
    regular = rising[near]
    steady = len(rising) >= 10 and len(regular) * 5 >= len(rising) * 4
    # Exact sums: the time that the regular intervals cover is at least half of all.
    steady = steady and sum(regular.tolist()) * 2 >= sum(rising.tolist())
    is_gap = rising > GAP * period if steady else np.zeros(len(rising), bool)
    at = np.nonzero(intervals > GAP * period)[0].tolist() if steady else []
    said |= {
        "period_ns": period,
        "steady": steady,
        "shortest_ns": int(rising[0]) if len(rising) else None,
        "longest_ns": int(rising[-1]) if len(rising) else None,
        "gaps": int(is_gap.sum()),
        "jitter_ns": float(rising[~is_gap].astype(np.float64).std()) if len(rising) else None,
        "first": int(times[0]),
        "latest": int(times.max()),
        "places": [(int(times[place]), int(times[place + 1])) for place in at],
    }
    return said


def ours(topic):
    numbers = ["count", "falling", "repeated", "period_ns", "shortest_ns", "longest_ns", "gaps", "confirmed", "missing"]
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
    compared, by_pyulog, gaps, confirmed, differences, unread, too_much, undecoded = 0, 0, 0, 0, [], 0, 0, 0
    for log in logs(folders):
        try:
            document = json.loads(rovelog_cli.run(binary, "stats", "--timing", "-q", "-f", "json", str(log)))
            times, places = of_cat(binary, log)
            stops = interruptions(binary, log, places)
        except rovelog_cli.Refused:
            # Whether rovelog may reject a log is checked elsewhere, in the check of its format.
            unread += 1
            continue
        independent = {}
        if log.suffix == ".ulg":
            try:
                independent = of_pyulog(log)
            except TooMuch:
                too_much += 1
        found = {topic["topic"]: topic for topic in document["health"]["topics"]}
        if log.suffix == ".bag":
            # `cat` skips messages that cannot be decoded, here all of a topic.
            for name in set(found) - set(times):
                if counts(binary, log).get(name) == int(found[name]["count"]):
                    undecoded += 1
                    del found[name]
        if set(found) != set(times):
            differences.append(f"{log.name}: topics {sorted(set(found) ^ set(times))}")
        judged = {}
        # The topics are judged in the order of the log.
        for name in (name for name in found if name in times):
            stamps = times[name]
            own = independent.get(name)
            said = int(found[name]["count"])
            if log.suffix == ".bag" and said > len(stamps) and counts(binary, log).get(name) == said:
                # `cat` skips messages that cannot be decoded, although these messages have times.
                undecoded += 1
                continue
            # If pyulog reads the same records, its times are used.
            if own is not None and len(own) == len(stamps):
                stamps, by_pyulog = own, by_pyulog + 1
            judged[name] = health(stamps)
        confirm(judged, stops)
        for name, topic in judged.items():
            said = ours(found[name])
            compared += 1
            gaps, confirmed = gaps + topic["gaps"], confirmed + topic["confirmed"]
            for key, value in said.items():
                if not equal(value, topic[key]):
                    differences.append(f"{log.name} {name} {key}: {value}, numpy {topic[key]}")
    print(f"{compared} topics compared ({by_pyulog} with pyulog's times), {gaps} gaps, {confirmed} confirmed, {unread} files refused")
    print(f"{too_much} logs took pyulog more than {SECONDS} s or {MEMORY >> 30} GiB")
    print(f"{undecoded} topics left out: they have messages that cannot be decoded")
    for difference in differences:
        print(f"DIFFERENT: {difference}")
    sys.exit(1 if differences or not compared else 0)


main()
