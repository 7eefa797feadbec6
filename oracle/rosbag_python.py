"""Compares python3-rosbag and rovelog on V1.2 and V2.0 bags, value by value, and opens recovered bags.

usage: rosbag_python.py ROVELOG VIEW CORPUS [REAL]

VIEW is the program of bench/rosbag_view.cpp, or - if librosbag-storage is not installed. A difference must be in
`intended_rosbag.py`, and an entry there without its difference fails too. Needs the interpreter of the distribution.
"""

import base64
import collections
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

import rosbag
import rosbag.bag

import rovelog_cli
from intended_rosbag import ANY, INTENDED, REASONS


def repair():
    """Makes python3-rosbag read indexed V1.2 bags: its reader takes fewer arguments than the final release passes."""
    reader = rosbag.bag._BagReader102_Indexed
    read = reader.read_messages
    reader.read_messages = lambda self, *args: read(self, *args[:5])


def same(kind, theirs, ours):
    """Returns True if a value is equal to the value in the JSON output of rovelog. Floats are
    compared bit for bit.
    """
    base, _, array = kind.partition("[")
    if array:
        if base in ("uint8", "char"):
            # If the text is not base64, the value has another type. Python decodes all messages of
            # a topic with the first definition that it finds.
            return base64.b64encode(bytes(theirs)).decode() == ours
        return len(theirs) == len(ours) and all(same(base, a, b) for a, b in zip(theirs, ours))
    if base in ("time", "duration"):
        return (theirs.secs, theirs.nsecs) == (ours["sec"], ours["nsec"])
    if base in ("float32", "float64"):
        ours = float(ours)
        if math.isnan(theirs) or math.isnan(ours):
            return math.isnan(theirs) and math.isnan(ours)
        code = "<f" if base == "float32" else "<d"
        return struct.pack(code, theirs) == struct.pack(code, ours)
    if base == "string":
        # The value may also have another type than text, for the same reason as above.
        return theirs == ours or isinstance(ours, str) and theirs == rovelog_cli.unescaped(ours).decode("utf-8", "rosmsg")
    if base == "bool":
        return bool(theirs) == ours
    if hasattr(theirs, "_slot_types"):
        slots = list(zip(theirs.__slots__, theirs._slot_types))
        return len(slots) == len(ours) and all(same(kind, getattr(theirs, name), ours[name]) for name, kind in slots)
    return theirs == int(ours)


def read(path):
    """Returns the messages by topic and time, and the error if there is one."""
    found, end = collections.defaultdict(list), "ok"
    try:
        with rosbag.Bag(str(path)) as bag:
            for topic, message, time in bag.read_messages():
                found[topic, time.secs * 10**9 + time.nsecs].append(message)
    except Exception as error:  # pylint: disable=broad-except
        end = type(error).__name__
    return found, end


def verdict(binary, path):
    """Returns `same`, or how python3-rosbag differs."""
    theirs, end = read(path)
    ours = collections.defaultdict(list)
    total = 0
    for record in rovelog_cli.records(binary, path):
        ours[record["topic"].split("#")[0], int(record["t_ns"])].append(record["data"])
        total += 1
    count = sum(map(len, theirs.values()))
    for key, messages in theirs.items():
        if len(messages) > len(ours[key]):
            return f"{end}, messages that we do not have"
        for message, data in zip(messages, ours[key]):
            if not same("message", message, data):
                return f"{end}, other values"
    if count == total:
        return "same" if end == "ok" else f"{end}, all messages"
    return f"{end}, {'none' if count == 0 else 'fewer'} of the messages"


def view(program, path):
    """Returns the number of messages that librosbag reads, or the start of its error."""
    done = subprocess.run([program, "cpp-view", str(path)], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return int(done.stdout.split()[4])
    said = (done.stdout + done.stderr).strip()
    if not said:
        return f"signal {-done.returncode}"
    why = said.splitlines()[0].split(": ", 1)[-1]
    return re.split(r"[:'0-9]| for | of ", why.strip())[0].strip()


def after_recovery(binary, program, path, folder):
    """Returns the errors of the readers of ROS for a recovered bag."""
    out = folder / "recovered.bag"
    out.unlink(missing_ok=True)
    report = json.loads(rovelog_cli.run(binary, "recover", "-q", "-f", "json", str(path), "-o", str(out)))
    records = int(report["records"])
    messages, end = 0, "ok"
    try:
        with rosbag.Bag(str(out)) as bag:
            messages = sum(1 for _ in bag.read_messages(raw=True))
    except Exception as error:  # pylint: disable=broad-except
        end = type(error).__name__
    if (messages, end) != (records, "ok"):
        return f"recovered: python {messages} of {records}, {end}"
    if program and view(program, out) != records:
        return f"recovered: librosbag {view(program, out)} of {records}"
    return None


def main():
    binary, program, *folders = sys.argv[1:]
    program = None if program == "-" else program
    repair()
    found, bags, wrong = {}, 0, []
    places = [pathlib.Path(folders[0]) / "rosbag"]
    places += [pathlib.Path(folder) / name for folder in folders[1:] for name in ("rosbag12", "rosbag20")]
    with tempfile.TemporaryDirectory() as temporary:
        for place in places:
            for path in sorted(place.glob("*.bag*")):
                if not path.read_bytes().startswith((b"#ROSRECORD V1.2", b"#ROSBAG V2.0")):
                    continue
                bags += 1
                notes = [verdict(binary, path)]
                if program:
                    records = json.loads(rovelog_cli.run(binary, "info", "-f", "json", str(path)))["records"]
                    seen = view(program, path)
                    notes.append("same" if seen == int(records) else f"librosbag: {seen}")
                notes.append(after_recovery(binary, program, path, pathlib.Path(temporary)) or "same")
                notes = [note for note in notes if note != "same"]
                if notes:
                    found[path.name.removesuffix(".bag")] = notes
    for name, notes in found.items():
        for note in notes:
            if not any((names == ANY or name in names) and note in allowed for allowed, names, _ in INTENDED):
                wrong.append(f"{name}: {note}")
    for allowed, names, reason in INTENDED:
        assert reason in REASONS, reason
        for name in () if names == ANY else names:
            if program and folders[1:] and not set(found.get(name, [])) & set(allowed):
                wrong.append(f"{name}: expected to differ ({REASONS[reason]}), and does not")
    print(f"{bags} bags, {len(found)} with intended differences")
    if wrong:
        print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
