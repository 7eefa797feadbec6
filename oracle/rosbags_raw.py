"""Compares rovelog with the package rosbags on V2.0 bags.

usage: rosbags_raw.py ROVELOG FOLDER...

rosbags reads each bag and the output of `rovelog bag reindex`. Both must have the same messages with the same topics,
times and bytes, as many as `rovelog info` counts. rosbags follows the index, so it refuses bags without one and most
damaged bags, and leaves out messages that the index does not have. It must read their reindexed bags, with all messages
that it found before.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile

from rosbags.rosbag1 import Reader

# Bags from which rosbags reads more messages than rovelog, with the reason.
INTENDED = {
    "v2.0+connection-conflict.bag": "a connection number has two meanings, and rosbags takes one for both",
    "v2.0+connection-conflict+same-topic.bag": "the same, of one topic",
    "v2.0+damaged-message-length.bag": "rosbags returns the message whose length is damaged, with bytes of the next",
}


def messages(path):
    """Counts the messages of a bag. Returns the error if rosbags refuses it."""
    found = collections.Counter()
    try:
        with Reader(path) as bag:
            for connection, time, data in bag.messages():
                found[connection.topic, connection.msgtype, time, bytes(data)] += 1
    except Exception as error:  # The errors of rosbags have no common class.
        return None, f"{type(error).__name__}: {error}"
    return found, None


def compare(rovelog, path, out):
    made = subprocess.run([rovelog, "bag", "reindex", path, "--force", "-o", out], capture_output=True, text=True)
    if made.returncode not in (0, 3):
        return "refused", made.stderr.strip().splitlines()[0]
    count = subprocess.run([rovelog, "info", path, "--get", "records"], capture_output=True, text=True).stdout.strip()
    theirs, error = messages(path)
    ours, broken = messages(out)
    if broken:
        return "differs", f"it cannot read what was made: {broken}"
    if ours.total() != int(count):
        return "differs", f"{count} records, {ours.total()} in what was made"
    if error:
        return "recovered", f"{count} messages; {error}"
    if theirs < ours:
        return "more", f"{ours.total()} messages, {theirs.total()} of them by the index"
    if theirs != ours:
        return "differs", f"{theirs.total()} and {ours.total()} messages, {(theirs & ours).total()} of them the same"
    return "equal", f"{count} messages"


def main(rovelog, *folders):
    paths = [path for folder in folders for path in sorted(pathlib.Path(folder).rglob("*.bag*"))]
    bags = [path for path in paths if path.is_file() and path.open("rb").read(9) == b"#ROSBAG V"]
    tally = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in bags:
            state, what = compare(rovelog, path, pathlib.Path(folder, "made.bag"))
            if state == "differs" and (why := INTENDED.get(path.name)):
                state, what = "intended", f"{what}: {why}"
            tally[state] += 1
            if state != "equal":
                print(f"{state}: {path.name}: {what}")
    print(f"rosbags: {len(bags)} bags V2.0: " + ", ".join(f"{count} {state}" for state, count in sorted(tally.items())))
    return 1 if tally["differs"] or not tally["equal"] else 0


sys.exit(main(*sys.argv[1:]))
