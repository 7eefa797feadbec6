"""Writes a `ULog` with its current data in the order of pyulog: definitions, subscriptions,
messages by time.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

import numpy as np

from rovelog.compat.pyulog._messages import (
    TYPES,
    FieldData,
    MessageDropout,
    MessageFormat,
    MessageLogging,
    MessageLoggingTagged,
)


class Dataset(Protocol):
    """The part of `ULog.Data` that is written."""

    multi_id: int
    msg_id: int
    name: str
    field_data: list[FieldData]

    @property
    def data(self) -> Mapping[str, Any]: ...


class WritableLog(Protocol):
    """The part of `ULog` that is written. An import of `core` would be circular."""

    HEADER_BYTES: bytes
    _file_version: int
    _compat_flags: list[int]
    _incompat_flags: list[int]
    _msg_info_dict_types: dict[str, str]
    _msg_info_multiple_dict_types: dict[str, str]
    _default_parameters: dict[int, dict[str, int | float]]

    @property
    def start_timestamp(self) -> int: ...
    @property
    def message_formats(self) -> Mapping[str, MessageFormat]: ...
    @property
    def msg_info_dict(self) -> Mapping[str, Any]: ...
    @property
    def msg_info_multiple_dict(self) -> Mapping[str, list[list[Any]]]: ...
    @property
    def initial_parameters(self) -> Mapping[str, int | float]: ...
    @property
    def changed_parameters(self) -> Sequence[tuple[int, str, int | float]]: ...
    @property
    def data_list(self) -> Sequence[Dataset]: ...
    @property
    def logged_messages(self) -> Sequence[MessageLogging]: ...
    @property
    def logged_messages_tagged(self) -> Mapping[int, Sequence[MessageLoggingTagged]]: ...
    @property
    def dropouts(self) -> Sequence[MessageDropout]: ...


def message(kind: str, payload: bytes) -> bytes:
    """Returns a message with its header: payload size (2 bytes) and type (1 byte)."""
    return struct.pack("<HB", len(payload), ord(kind)) + payload


def _keyed(kind: str, key: str, value: Any) -> bytes:
    """Returns the payload of an info or parameter message: key length, type and name, value."""
    text = f"{kind} {key}".encode()
    if kind.startswith("char["):
        data = bytes(value, "utf-8")
    elif kind in TYPES:
        data = struct.pack("<" + TYPES[kind][0], value)
    else:
        data = bytes(value)
    return bytes([len(text)]) + text + data


def _parameter(name: str, value: object) -> bytes:
    if isinstance(value, (int, np.integer)):
        return _keyed("int32_t", name, value)
    if isinstance(value, (float, np.floating)):
        return _keyed("float", name, value)
    raise TypeError(f"the parameter {name} must be an integer or a float, not {type(value).__name__}")


def _column(values: Any, field: FieldData, rows: int) -> Any:
    """Returns the values of a field in its type. Raises the exceptions of pyulog for a wrong number
    of values, and for values that the type cannot represent.
    """
    name, kind = field.field_name, field.type_str
    dtype = np.dtype(TYPES[kind][2])
    found = np.asarray(values)
    if found.shape != (rows,):
        raise IndexError(f"{name} has the shape {found.shape}, but the dataset has {rows} rows")
    if found.dtype.kind not in ("biuf" if dtype.kind == "f" or kind == "bool" else "biu"):
        raise struct.error(f"{name} has the type {found.dtype}, which cannot be stored as {kind}")
    if kind == "bool" and found.dtype != dtype:
        return found != 0
    with np.errstate(over="ignore"):
        column = found.astype(dtype)
    if dtype.kind == "f":
        if np.any(np.isinf(column) & np.isfinite(found)):
            raise OverflowError(f"{name} has values that are too large for {kind}")
    elif np.any(column != found):
        raise struct.error(f"{name} has values that are out of range for {kind}")
    return column


def write(log: WritableLog, out: IO[bytes]) -> None:
    """Writes the header, the definitions, the subscriptions, and then all messages with a time, in
    time order.
    """
    out.write(log.HEADER_BYTES + bytes([log._file_version]) + struct.pack("<Q", log.start_timestamp))
    # Bit 0 of the incompatible flags says that data were appended after the end. All data are
    # written in time order here, so the bit is cleared and the offsets of appended data (the last
    # 24 bytes) are 0.
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
                # The first byte is 1 if the message continues the value of the message before it.
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


def _timed(log: WritableLog) -> list[tuple[int, bytes]]:
    """Returns pairs of time and bytes for all messages with a time, which are rows, texts, dropouts
    and parameter changes.
    """
    found: list[tuple[int, bytes]] = []
    for data in sorted(log.data_list, key=lambda data: data.msg_id):
        dtype = np.dtype([(field.field_name, TYPES[field.type_str][2]) for field in data.field_data]).newbyteorder("<")
        rows = np.empty(len(data.data["timestamp"]), dtype=dtype)
        for field in data.field_data:
            rows[field.field_name] = _column(data.data[field.field_name], field, len(rows))
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
