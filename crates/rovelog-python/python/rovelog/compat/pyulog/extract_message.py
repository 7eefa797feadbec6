"""Rows of a topic as dicts, with the API of pyulog."""

from __future__ import annotations

from typing import Any

from rovelog.compat.pyulog.core import ULog
from rovelog.compat.pyulog.ulog2csv import first_at


def extract_message(
    ulog_file_name: str,
    message: str,
    time_s: int | None = None,
    time_e: int | None = None,
    disable_str_exceptions: bool = False,
) -> list[dict[str, Any]]:
    """Returns the rows of the topic `message` as dicts, with `timestamp` as the first key.

    `time_s` and `time_e` limit the rows, in seconds on the log clock.

    Raises an AttributeError if the log has no such topic.
    """
    if not isinstance(message, str):
        raise AttributeError("Must provide a message to pull from ULog file")
    ulog = ULog(ulog_file_name, [message], disable_str_exceptions)
    try:
        data = ulog.get_dataset(message)
    except IndexError as error:
        raise AttributeError("Provided message is not in the ULog file") from error
    names = [field.field_name for field in data.field_data]
    names.remove("timestamp")
    names.insert(0, "timestamp")
    times = data.data["timestamp"]
    rows = slice(first_at(times, time_s, 0), first_at(times, time_e, len(times)))
    columns = [data.data[name][rows] for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
