"""Counts what other readers still find in logs with damaged pages, sectors and single bytes.

usage: survivors.py FORMAT KEPT FOLDER...

KEPT has the damaged logs of `campaign --pages`, whose names say how many records are untouched, how many of them
`rovelog recover` keeps, and how many false ones. FOLDERs have the undamaged logs. A record of a reader is found if it has
the same record in the undamaged log: topic, time, and all values. Copies beyond that, and at most the untouched ones,
do not count. All other records that it hands out are false; those of the other log of an interleaved pair, too. Prints
rows of the Markdown table of docs/internals/reliability.md.
"""

import collections
import contextlib
import io
import pathlib
import signal
import sys
import warnings

# A damaged log may keep a reader busy for ever.
SECONDS = 60


def pyulog(path):
    """Rows by topic, instance and bytes of all fields, the time among them."""
    import numpy as np
    from pyulog import ULog

    with contextlib.redirect_stdout(io.StringIO()):
        log = ULog(str(path))
    for data in log.data_list:
        columns = [np.ascontiguousarray(column) for column in data.data.values()]
        raw = [column.view(f"V{column.dtype.itemsize}").tolist() for column in columns]
        yield from ((data.name, data.multi_id, *row) for row in zip(*raw))


def rocketlogger(path):
    """Rows of values."""
    import numpy as np
    from rocketlogger.data import RocketLoggerData

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.ascontiguousarray(RocketLoggerData(str(path), join_files=False).get_data())
    yield from (row.tobytes() for row in values)


def rosbag(path):
    """Messages by topic, time and bytes."""
    import rosbag_python

    with rosbag_python.rosbag.Bag(str(path), allow_unindexed=True) as bag:
        for topic, message, time in bag.read_messages(raw=True):
            yield topic, time.to_nsec(), message[1]


READERS = {"ulog": pyulog, "rld": rocketlogger, "rosbag": rosbag}
NAMES = {"ulog": "pyulog", "rld": "rocketlogger", "rosbag": "python3-rosbag"}


def stop(*_):
    raise TimeoutError


def records(read, path):
    """What a reader hands out before it fails, if it does."""
    found = collections.Counter()
    signal.alarm(SECONDS)
    try:
        for record in read(path):
            found[record] += 1
    except Exception:  # pylint: disable=broad-except
        pass
    finally:
        signal.alarm(0)
    return found


def share(found, untouched):
    return "100" if found == untouched else f"{100 * found // untouched if untouched else 0}"


def main():
    name, kept, *folders = sys.argv[1:]
    read = READERS[name]
    signal.signal(signal.SIGALRM, stop)
    if name == "rosbag":
        import rosbag_python

        rosbag_python.repair()
    subjects = {path.name: path for folder in folders for path in pathlib.Path(folder).iterdir() if path.is_file()}
    clean, rows = {}, collections.defaultdict(lambda: [0] * 6)
    for path in sorted((pathlib.Path(kept) / name).iterdir()):
        damage, untouched, ours, our_false, _, subject = path.name.split("--", 5)
        untouched, ours, our_false = int(untouched), int(ours), int(our_false)
        if subject not in clean:
            clean[subject] = records(read, subjects[subject])
        # A reader that does not know a log undamaged is not asked.
        if not clean[subject]:
            continue
        theirs = records(read, path)
        good = (theirs & clean[subject]).total()
        row = rows[damage.replace("-", " ")]
        counts = [1, untouched, ours, min(good, untouched), our_false, (theirs - clean[subject]).total()]
        row[:] = [a + b for a, b in zip(row, counts)]
    for damage, (logs, untouched, ours, theirs, our_false, their_false) in rows.items():
        shares = f"{share(ours, untouched)} | {share(theirs, untouched)}"
        print(f"| {NAMES[name]} | {damage} | {logs} | {untouched} | {shares} | {our_false} | {their_false} |")


main()
