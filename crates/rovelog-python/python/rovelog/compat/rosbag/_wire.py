"""Serialization of messages by the types of their fields."""

from __future__ import annotations

import re
import struct
from typing import Any

from rovelog._core import Duration, Time

CODES = {
    "bool": "?",
    "int8": "b",
    "byte": "b",
    "uint8": "B",
    "char": "B",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
"""ROS type -> code of `struct`."""
STAMPS = {"time": (Time, "<II"), "duration": (Duration, "<ii")}
"""ROS type -> class, and codes of seconds and nanoseconds."""
BYTES = ("uint8", "char")
"""Types whose arrays are `bytes`."""
ARRAY = re.compile(r"(.*)\[(\d*)\]")


def default(kind: str, nested: Any) -> Any:
    """Returns the default value of a field. `nested` is the message class if the field is a
    message.
    """
    array = ARRAY.fullmatch(kind)
    if array is None:
        if kind in CODES:
            return False if kind == "bool" else 0.0 if kind.startswith("float") else 0
        return "" if kind == "string" else STAMPS[kind][0]() if kind in STAMPS else nested()
    count = int(array[2] or 0)
    return bytes(count) if array[1] in BYTES else [default(array[1], nested) for _ in range(count)]


def pack(kind: str, value: Any) -> bytes:
    """Serializes a field."""
    array = ARRAY.fullmatch(kind)
    if array is not None:
        return _pack_array(array[1], array[2], value)
    if kind in CODES:
        return struct.pack("<" + CODES[kind], value)
    if kind == "string":
        data = value if isinstance(value, bytes) else value.encode()
        return struct.pack("<I", len(data)) + data
    if kind in STAMPS:
        return struct.pack(STAMPS[kind][1], value.secs, value.nsecs)
    return b"".join(pack(inner, getattr(value, name)) for name, inner in zip(value.__slots__, value._slot_types, strict=True))


def _pack_array(kind: str, fixed: str, values: Any) -> bytes:
    if fixed and len(values) != int(fixed):
        raise ValueError(f"{kind}[{fixed}] has {len(values)} elements")
    head = b"" if fixed else struct.pack("<I", len(values))
    if kind in BYTES and isinstance(values, (bytes, bytearray, memoryview)):
        return head + bytes(values)
    if kind in CODES:
        return head + struct.pack(f"<{len(values)}{CODES[kind]}", *values)
    return head + b"".join(pack(kind, value) for value in values)


class Unpacker:
    """Reader of consecutive fields of a serialized message."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _unpack(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def field(self, kind: str, nested: Any) -> Any:
        """Reads the next field. `nested` is the message class if the field is a message."""
        array = ARRAY.fullmatch(kind)
        if array is not None:
            count = int(array[2]) if array[2] else self._unpack("<I")[0]
            if array[1] in BYTES:
                return self._unpack(f"<{count}s")[0]
            if array[1] == "bool":
                return list(self._unpack(f"<{count}?"))
            if array[1] in CODES:
                return self._unpack(f"<{count}{CODES[array[1]]}")
            return [self.field(array[1], nested) for _ in range(count)]
        if kind in CODES:
            return self._unpack("<" + CODES[kind])[0]
        if kind == "string":
            data = self._unpack(f"<{self._unpack('<I')[0]}s")[0]
            try:
                return data.decode()
            except UnicodeDecodeError:
                return data
        if kind in STAMPS:
            stamp, form = STAMPS[kind]
            time = stamp()
            # `set` keeps the stored values. The constructor would normalize the nanoseconds, and
            # the message would be written with other bytes.
            time.set(*self._unpack(form))
            return time
        message = nested.__new__(nested)
        self.message(message)
        return message

    def message(self, message: Any) -> None:
        """Reads all fields of a message."""
        for name, kind, nested in message._parts:
            setattr(message, name, self.field(kind, nested))
