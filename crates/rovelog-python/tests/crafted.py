"""ULogs and bags that tests build byte by byte."""

from __future__ import annotations

import pathlib
import struct
from collections.abc import Iterable

HEADER = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 0)


def message(kind: str, payload: bytes) -> bytes:
    return struct.pack("<HB", len(payload), ord(kind)) + payload


def topic(number: int, name: str, fields: str, rows: Iterable[bytes], instance: int = 0) -> tuple[bytes, bytes]:
    """Returns the definition of a topic, and its subscription with its rows. A row starts with its
    time in us.
    """
    definition = message("F", f"{name}:uint64_t timestamp;{fields}".encode())
    data = message("A", struct.pack("<BH", instance, number) + name.encode())
    return definition, data + b"".join(message("D", struct.pack("<H", number) + row) for row in rows)


def ulog(path: pathlib.Path, *topics: tuple[bytes, bytes], formats: Iterable[str] = (), tail: bytes = b"") -> pathlib.Path:
    """Writes a log with these topics and further formats."""
    nested = b"".join(message("F", text.encode()) for text in formats)
    path.write_bytes(HEADER + nested + b"".join(first for first, _ in topics) + b"".join(data for _, data in topics) + tail)
    return path


def rows(code: str, *values: tuple[object, ...]) -> list[bytes]:
    """Returns rows at 1 ms, 2 ms, ..., packed with a format of `struct`."""
    return [struct.pack("<Q" + code, 1000 * (number + 1), *row) for number, row in enumerate(values)]


def large(path: pathlib.Path, count: int = 60_000) -> pathlib.Path:
    """Writes a log of at least 1 MiB, because smaller files are read instead of mapped."""
    return ulog(path, topic(1, "fast", "float x;float[3] v;", rows("4f", *((1.0, 2.0, 3.0, 4.0),) * count)))


def large_bag(path: pathlib.Path, recorded: pathlib.Path) -> pathlib.Path:
    """Writes a large bag without an index, which repeats the first message of another bag."""
    data = recorded.read_bytes()
    at = data.index(b"\n") + 1
    ends = []
    for _ in range(3):
        head = struct.unpack_from("<I", data, at)[0]
        at += 8 + head + struct.unpack_from("<I", data, at + 4 + head)[0]
        ends.append(at)
    index = data.index(b"index_pos=") + len(b"index_pos=")
    front = data[:index] + bytes(8) + data[index + 8 : ends[1]]
    path.write_bytes(front + data[ends[1] : ends[2]] * ((1 << 21) // (ends[2] - ends[1])))
    return path


def bag(path: pathlib.Path, kind: str, definition: str, payloads: Iterable[bytes]) -> pathlib.Path:
    """Writes a V1.2 bag without an index: messages of one topic, one second apart."""

    def record(op: int, data: bytes, **fields: bytes) -> bytes:
        pairs = [name.encode() + b"=" + value for name, value in {"op": bytes([op]), **fields}.items()]
        head = b"".join(struct.pack("<I", len(pair)) + pair for pair in pairs)
        return struct.pack("<I", len(head)) + head + struct.pack("<I", len(data)) + data

    about = {"topic": b"/t", "md5": b"0" * 32, "type": kind.encode()}
    front = b"#ROSRECORD V1.2\n" + record(3, b"", index_pos=bytes(8)) + record(1, b"", **about, **{"def": definition.encode()})
    stamps = ({"sec": struct.pack("<I", at + 1), "nsec": bytes(4)} for at in range(1 << 30))
    path.write_bytes(front + b"".join(record(2, data, **about, **next(stamps)) for data in payloads))
    return path


VEHICLE = "000100000000363238383439510d0022"
START_US = 1_780_000_000_000_000  # 2026-05-28


def flight(path: pathlib.Path, vehicle: str, lowest: float, start_us: int = START_US, as_text: bool = False) -> pathlib.Path:
    """Writes a flight log with UTC whose battery drops from 16 V to `lowest`. Voltages can be
    stored as texts.
    """
    voltages = [(16.0 - (16.0 - lowest) * step / 9,) for step in range(10)]
    battery = topic(1, "battery_status", "float voltage_v;", rows("f", *voltages))
    if as_text:
        texts = [(f"{voltage:.3f}".encode(),) for (voltage,) in voltages]
        battery = topic(1, "battery_status", "char[8] voltage_v;", rows("8s", *texts))
    fixes = [(start_us + 1000 * step, 3) for step in range(1, 11)]
    key = f"char[{len(vehicle)}] sys_uuid".encode()
    return ulog(
        path,
        battery,
        topic(2, "vehicle_gps_position", "uint64_t time_utc_usec;uint8_t fix_type;", rows("QB", *fixes)),
        tail=message("I", bytes([len(key)]) + key + vehicle.encode()),
    )


def flights(folder: pathlib.Path) -> None:
    """Creates a folder with two flights of VEHICLE in 2026 that lose 1 V and 2.5 V, one of 2025,
    and one of another vehicle.
    """
    folder.mkdir()
    flight(folder / "a.ulg", VEHICLE, 15.0)
    flight(folder / "b.ulg", VEHICLE, 13.5)
    flight(folder / "other.ulg", "0" * 32, 10.0)
    flight(folder / "earlier.ulg", VEHICLE, 12.0, START_US - 366 * 86_400_000_000)
