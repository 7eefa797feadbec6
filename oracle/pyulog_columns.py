"""What pyulog reads, in the shapes that the oracles compare."""

import contextlib
import io

import numpy as np
from pyulog import ULog

# A damaged log of which pyulog reads fewer rows: all that it has must be in ours, in the same order.
FEWER = {"px4-ulog-rs__corrupt_unregistered_msg_id.ulg"}


def read(path):
    """The log, without what pyulog has to say of damage."""
    with contextlib.redirect_stdout(io.StringIO()):
        return ULog(str(path))


def shown(data):
    """The fields of a topic without padding."""
    return [field for field in data.field_data if not field.field_name.split(".")[-1].startswith("_padding")]


def ordered(timestamps):
    """The order of our rows: by time, a time of 0 stays behind the row before it."""
    key = np.maximum.accumulate(np.where(timestamps == 0, 0, 1) * np.arange(1, len(timestamps) + 1))
    padded = np.concatenate([[0], timestamps])
    return np.argsort(padded[key], kind="stable")


def rows_of(rows, ours):
    """The places of pyulog's rows among ours, by their times."""
    if len(rows) == len(ours):
        return np.arange(len(ours))
    at, places = 0, []
    for time in rows:
        while ours[at] != time:
            at += 1
        places.append(at)
        at += 1
    return np.array(places)


def texts_of(data, field):
    """A column of texts, up to the first NUL; `field` is its name without the number of a byte."""
    names = [name for name in data.data if name == field or name.startswith(f"{field}[")]
    rows = zip(*(data.data[name].astype(np.uint8) for name in names))
    return [bytes(row).split(b"\0")[0].decode("utf-8", "replace") for row in rows]
