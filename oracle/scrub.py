"""Scrubs real logs with `rovelog scrub` and reads the copies with pyulog and rosbags.

usage: scrub.py ROVELOG REAL

Nothing but the reported fields may differ, no pair of columns may be near a true position, and
distances between consecutive positions, by geographiclib, must be the same.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np
from geographiclib.geodesic import Geodesic
from pyulog import ULog
from rosbags.rosbag1 import Reader

# Columns with a latitude, those with the longitude, and the number of units per degree.
PAIRS = [("latitude_deg", "longitude_deg"), ("latitude", "longitude"), ("lat", "lon")]
# Two points at which a stored number ends are at most this far apart, in meters.
NEAR = 50_000.0
SAMPLES = 400


def scrub(rovelog, log, out, *options):
    done = subprocess.run(
        [rovelog, "scrub", log, "-o", out, "-f", "json", "-q", *options], capture_output=True, timeout=300
    )
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr.decode().strip())
    return json.loads(done.stdout)


def problems(rovelog, log):
    done = subprocess.run([rovelog, "check", log, "-f", "json", "-q"], capture_output=True, timeout=300)
    return set(json.loads(done.stdout)["counts"])


def degrees(column):
    return column / 1e7 if column.dtype.kind in "iu" else column.astype(float)


def positions(columns):
    """Yields the names and the values of each latitude and longitude."""
    for name in columns:
        for north, east in PAIRS:
            if name.endswith(north) and name[: -len(north)] + east in columns:
                other = name[: -len(north)] + east
                yield name, other, degrees(columns[name]), degrees(columns[other])
                break


def is_set(north, east):
    return np.isfinite(north) & np.isfinite(east) & (np.abs(north) <= 90) & ((north != 0) | (east != 0))


def true_places(tables):
    places = set()
    for columns in tables.values():
        for _, _, north, east in positions(columns):
            good = is_set(north, east)
            places |= set(zip(north[good].round(1), east[good].round(1)))
    return places


def near(columns, places):
    """Yields pairs of columns that are near a true place in most rows, in any unit."""
    units = [lambda x: x, lambda x: x / 1e7, np.degrees, lambda x: np.floor(x / 100) + x % 100 / 60]
    with np.errstate(all="ignore"):
        for unit in units:
            numbers = {name: unit(column.astype(float)) for name, column in columns.items() if column.dtype.kind in "fiu"}
            for lat, lon in places:
                reach = NEAR / 111_000
                norths = [name for name, v in numbers.items() if np.mean(np.abs(v - lat) < reach) > 0.5]
                wide = reach / max(np.cos(np.radians(lat)), 0.05)
                easts = [name for name, v in numbers.items() if np.mean(np.abs(v - lon) < wide) > 0.5]
                yield from ((a, b) for a in norths for b in easts if a != b)


def distances(north, east):
    return np.array([
        Geodesic.WGS84.Inverse(*start, *end)["s12"]
        for start, end in zip(zip(north, east), zip(north[1:], east[1:]))
    ])


def compare(old, new, moved):
    """Yields faults of the tables of a copy."""
    places = true_places(old)
    if old.keys() != new.keys():
        yield f"topics differ: {old.keys() ^ new.keys()}"
    for topic in old.keys() & new.keys():
        pairs = list(positions(old[topic]))
        changed = {name for pair in pairs for name in pair[:2]}
        for name, column in old[topic].items():
            same = column.tobytes() == new[topic][name].tobytes()
            if not same and name not in changed and (topic, name) not in moved:
                yield f"{topic}.{name} has changed"
        for a, b in near(new[topic], places):
            yield f"{topic}: {a} and {b} are near a true position"
        after = {name: (north, east) for name, _, north, east in positions(new[topic])}
        for name, _, north, east in pairs:
            good = is_set(north, east)
            rows = np.flatnonzero(good)[:SAMPLES]
            before = distances(north[rows], east[rows])
            moved_to = distances(*(values[rows] for values in after[name]))
            step = 2 * resolution(old[topic][name], north[rows])
            limit = np.maximum(1e-6 * before, 0.01 + step)
            far = before < 50_000  # a receiver without a fix may jump around the Earth
            if np.any((np.abs(before - moved_to) > limit) & far):
                yield f"{topic}.{name}: distances differ by {np.max(np.abs(before - moved_to)[far]):.4f} m"


def resolution(column, north):
    """Returns the distance in meters of two neighboring stored numbers."""
    if column.dtype.kind in "iu":
        return 111_320 * 1e-7
    return 111_320 * float(np.max(np.spacing(column.astype(column.dtype).max() if len(north) else 1.0))) * 2


def ulog(rovelog, log, out, report):
    tables = []
    for path in (log, out):
        found = {}
        for data in ULog(str(path)).data_list:
            found[f"{data.name}/{data.multi_id}"] = data.data
        tables.append(found)
    texts = {(change["group"], change["name"]) for change in report["changes"]}
    yield from compare(*tables, texts)


def bag(rovelog, log, out, report):
    files = []
    for path in (log, out):
        with Reader(path) as reader:
            files.append([(c.topic, time, bytes(raw)) for c, time, raw in reader.messages()])
    old, new = files
    changed = {change["group"] for change in report["changes"]}
    if len(old) != len(new):
        yield f"{len(old)} messages became {len(new)}"
    tables = [{}, {}]
    for (topic, time, a), (_, _, b) in zip(old, new):
        if len(a) != len(b) or (a != b and topic not in changed):
            yield f"a message of {topic} at {time} has changed"
        if topic == "/fix":
            for table, raw in zip(tables, (a, b)):
                at = 16 + struct.unpack_from("<I", raw, 12)[0] + 3
                table.setdefault(topic, []).append(struct.unpack_from("<ddd", raw, at))
    tables = [
        {t: dict(zip(("latitude", "longitude", "altitude"), np.array(rows).T)) for t, rows in table.items()}
        for table in tables
    ]
    yield from compare(*tables, set())


def vel(rovelog, log, out, report):
    """Reads the messages GPSDataM with the structure of the specification."""
    tables = []
    for path in (log, out):
        data = path.read_bytes()
        rows, at = [], 0
        while (at := data.find(struct.pack("<Ii", 0x14A32, 100), at)) >= 0:
            rows.append(struct.unpack_from("<dd", data, at + 16 + 16))
            at += 1
        columns = np.array(rows).reshape(-1, 2).T
        if "nmea" in path.name or (len(rows) and columns[0].max() > 90):
            columns = np.floor(columns / 100) + columns % 100 / 60
        tables.append({"GPSDataM": {"latitude": columns[0], "longitude": columns[1]}})
    yield from compare(*tables, set())


def main(rovelog, real):
    faults = count = unread = 0
    folders = [("ulog", "*.ulg", ulog), ("rosbag20", "*.bag", bag), ("rosbag12", "*.bag", None), ("vel", "*.vel", vel)]
    for folder, pattern, reader in folders:
        for log in sorted(pathlib.Path(real, folder).glob(pattern)):
            with tempfile.TemporaryDirectory() as scratch:
                out = pathlib.Path(scratch, log.name)
                try:
                    report = scrub(rovelog, log, out)
                except RuntimeError as refusal:
                    print(f"{log.name}: refused: {refusal}")
                    continue
                count += 1
                # Unreadable bytes become zeros, which have other names than the damage that was there.
                is_damaged = any(change["action"] == "unreadable" for change in report["changes"])
                new = set() if is_damaged else problems(rovelog, out) - problems(rovelog, log)
                found = [f"check finds {code}" for code in new]
                try:
                    readable = bool(reader) and not is_damaged and list(reader(rovelog, log, log, {"changes": []})) is not None
                except Exception:  # the other reader does not open the original
                    readable = False
                try:
                    found += list(reader(rovelog, log, out, report)) if readable else []
                except Exception as error:
                    found.append(f"cannot be read: {type(error).__name__}: {error}")
                unread += not readable
                for fault in sorted(set(found)):
                    faults += 1
                    print(f"{log.name}: {fault}")
    print(f"{count} logs scrubbed, {unread} without another reader, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
