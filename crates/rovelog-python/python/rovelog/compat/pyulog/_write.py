"""Writes a `ULog` with its data as it is now, in the order that pyulog writes: definitions, subscriptions, then by time."""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rovelog.compat.pyulog._messages import TYPES

if TYPE_CHECKING:
    from rovelog.compat.pyulog.core import ULog


def message(kind: str, payload: bytes) -> bytes:
    """A message with its header."""
    return struct.pack("<HB", len(payload), ord(kind)) + payload


def _keyed(kind: str, key: str, value: Any) -> bytes:
    text = f"{kind} {key}".encode()
    if kind.startswith("char["):
        data = bytes(value, "utf-8")
    elif kind in TYPES:
        data = struct.pack("<" + TYPES[kind][0], value)
    else:
        data = bytes(value)
    return bytes([len(text)]) + text + data


def _parameter(name: str, value: float) -> bytes:
    return _keyed("int32_t" if isinstance(value, int) else "float", name, value)


def write(log: ULog, out: IO[bytes]) -> None:
    """Header, definitions, subscriptions, and all that has a time in its order; nothing is marked as appended."""
    out.write(log.HEADER_BYTES + bytes([log._file_version]) + struct.pack("<Q", log.start_timestamp))
    incompat = bytes([log._incompat_flags[0] & 0xFE, *log._incompat_flags[1:]])
    out.write(message("B", bytes(log._compat_flags) + incompat + bytes(24)))
    for format in log.message_formats.values():
        fields = "".join(f"{kind}{f'[{n}]' if n else ''} {name};" for kind, n, name in format.fields)
        out.write(message("F", f"{format.name}:{fields}".encode()))
    for key, value in log.msg_info_dict.items():
        out.write(message("I", _keyed(log._msg_info_dict_types[key], key, value)))
    for key, lists in log.msg_info_multiple_dict.items():
        for values in lists:
            for index, value in enumerate(values):
                out.write(message("M", bytes([index > 0]) + _keyed(log._msg_info_multiple_dict_types[key], key, value)))
    for name, value in log.initial_parameters.items():
        out.write(message("P", _parameter(name, value)))
    for bits, defaults in log._default_parameters.items():
        for name, value in defaults.items():
            out.write(message("Q", bytes([bits + 1]) + _parameter(name, value)))
    for data in sorted(log.data_list, key=lambda data: data.msg_id):
        out.write(message("A", struct.pack("<BH", data.multi_id, data.msg_id) + data.name.encode()))
    for _, part in sorted(_timed(log), key=lambda item: item[0]):
        out.write(part)


def _timed(log: ULog) -> list[tuple[int, bytes]]:
    """Everything that has a time, with it."""
    found: list[tuple[int, bytes]] = []
    for data in sorted(log.data_list, key=lambda data: data.msg_id):
        dtype = np.dtype([(field.field_name, TYPES[field.type_str][2]) for field in data.field_data]).newbyteorder("<")
        rows = np.empty(len(data.data["timestamp"]), dtype=dtype)
        for name in rows.dtype.names or ():
            rows[name] = data.data[name]
        size = rows.dtype.itemsize
        head = struct.pack("<HBH", size + 2, ord("D"), data.msg_id)
        packed = rows.tobytes()
        times = rows["timestamp"].tolist()
        found += [(time, head + packed[at * size : (at + 1) * size]) for at, time in enumerate(times)]
    for text in log.logged_messages:
        payload = struct.pack("<BQ", text.log_level, text.timestamp) + text.message.encode()
        found.append((text.timestamp, message("L", payload)))
    for texts in log.logged_messages_tagged.values():
        for line in texts:
            payload = struct.pack("<BHQ", line.log_level, line.tag, line.timestamp) + line.message.encode()
            found.append((line.timestamp, message("C", payload)))
    found += [(dropout.timestamp, message("O", struct.pack("<H", dropout.duration))) for dropout in log.dropouts]
    found += [(time, message("P", _parameter(name, value))) for time, name, value in log.changed_parameters]
    return found
