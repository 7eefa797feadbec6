"""Counts the records that another reader finds in logs with damaged pages, sectors and single bytes.

usage: survivors.py FORMAT KEPT FOLDER...

KEPT has the damaged logs of `campaign --pages`. Their names have the numbers of untouched records, of records that
`rovelog recover` keeps, and of false records. The FOLDERs have the undamaged logs. A record is found if the reader also
returns it for the undamaged log: same topic, time and values. Copies do not count, and at most the untouched records
do. All other records are false, also those of the other log of an interleaved pair. Prints rows of the table in docs/internals/reliability/other-readers.md.
"""

import collections
import contextlib
import io
import pathlib
import signal
import sys
import warnings

# A damaged log may keep a reader busy forever.
SECONDS = 60


def pyulog(path):
    """Yields topic, instance and the bytes of all fields of each row."""
    import numpy as np
    from pyulog import ULog

    with contextlib.redirect_stdout(io.StringIO()):
        log = ULog(str(path))
    for data in log.data_list:
        columns = [np.ascontiguousarray(column) for column in data.data.values()]
        raw = [column.view(f"V{column.dtype.itemsize}").tolist() for column in columns]
        yield from ((data.name, data.multi_id, *row) for row in zip(*raw))


def rocketlogger(path):
    """Yields the values of each row as bytes."""
    import numpy as np
    from rocketlogger.data import RocketLoggerData

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.ascontiguousarray(RocketLoggerData(str(path), join_files=False).get_data())
    yield from (row.tobytes() for row in values)


def rosbag(path):
    """Yields topic, time and payload of each message."""
    import rosbag_python

    with rosbag_python.rosbag.Bag(str(path), allow_unindexed=True) as bag:
        for topic, message, time in bag.read_messages(raw=True):
            yield topic, time.to_nsec(), message[1]


READERS = {"ulog": pyulog, "rld": rocketlogger, "rosbag": rosbag}
NAMES = {"ulog": "pyulog", "rld": "rocketlogger", "rosbag": "python3-rosbag"}


def stop(*_):
    raise TimeoutError


def records(read, path):
    """Counts the records that a reader returns until it ends or fails."""
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
        # The reader cannot read the undamaged log.
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
