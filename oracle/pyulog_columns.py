"""Reads logs with pyulog in the forms that the checks compare."""

import contextlib
import io

import numpy as np
from pyulog import ULog

# Damaged logs from which pyulog reads fewer rows. rovelog must have these rows in the same order.
FEWER = {"px4-ulog-rs__corrupt_unregistered_msg_id.ulg"}


def read(path):
    """Reads a log without printing messages about damage."""
    with contextlib.redirect_stdout(io.StringIO()):
        return ULog(str(path))


def shown(data):
    """Returns the fields of a topic without padding."""
    return [field for field in data.field_data if not field.field_name.split(".")[-1].startswith("_padding")]


def ordered(timestamps):
    """Returns the order of rovelog's rows: by time, where a row with time 0 stays after the row before it."""
    key = np.maximum.accumulate(np.where(timestamps == 0, 0, 1) * np.arange(1, len(timestamps) + 1))
    padded = np.concatenate([[0], timestamps])
    return np.argsort(padded[key], kind="stable")


def rows_of(rows, ours):
    """Returns the indices of pyulog's rows among ours, by their times."""
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
    """Returns a column of texts up to their first NUL. `field` is the name without the index of a byte."""
    names = [name for name in data.data if name == field or name.startswith(f"{field}[")]
    rows = zip(*(data.data[name].astype(np.uint8) for name in names))
    return [bytes(row).split(b"\0")[0].decode("utf-8", "replace") for row in rows]
