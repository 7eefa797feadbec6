"""Records of bags: a header with named fields, followed by data.

The functions have the names of rosbag's module, because scripts call them. The formats are
described in the ROS wiki, see "Bags/Format/2.0" and "Bags/Format/1.2".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from rovelog._core import Time
from rovelog.compat.rosbag._errors import ROSBagException, ROSBagFormatException

__all__ = [
    "_CHUNK_INDEX_VERSION",
    "_FILE_HEADER_LENGTH",
    "_INDEX_VERSION",
    "_OP_CHUNK",
    "_OP_CHUNK_INFO",
    "_OP_CODES",
    "_OP_CONNECTION",
    "_OP_FILE_HEADER",
    "_OP_INDEX_DATA",
    "_OP_MSG_DATA",
    "_OP_MSG_DEF",
    "_VERSION",
    "_pack_time",
    "_pack_uint8",
    "_pack_uint32",
    "_pack_uint64",
    "_read",
    "_read_header",
    "_read_record_data",
    "_read_sized",
    "_read_str_field",
    "_read_time_field",
    "_read_uint8_field",
    "_read_uint32_field",
    "_read_uint64_field",
    "_unpack_time",
    "_unpack_uint8",
    "_unpack_uint32",
    "_unpack_uint64",
    "_write_header",
    "_write_record",
    "_write_sized",
]
"""Names that `rosbag.bag` also has."""

_OP_MSG_DEF = 1
_OP_MSG_DATA = 2
_OP_FILE_HEADER = 3
_OP_INDEX_DATA = 4
_OP_CHUNK = 5
_OP_CHUNK_INFO = 6
_OP_CONNECTION = 7
_OP_CODES = {
    _OP_MSG_DEF: "MSG_DEF",
    _OP_MSG_DATA: "MSG_DATA",
    _OP_FILE_HEADER: "FILE_HEADER",
    _OP_INDEX_DATA: "INDEX_DATA",
    _OP_CHUNK: "CHUNK",
    _OP_CHUNK_INFO: "CHUNK_INFO",
    _OP_CONNECTION: "CONNECTION",
}
_VERSION = "#ROSBAG V2.0"
_FILE_HEADER_LENGTH = 4096
_INDEX_VERSION = 1
_CHUNK_INDEX_VERSION = 1

INDEX_ENTRY = struct.Struct("<III")
"""Entry in an index record of a V2.0 bag: seconds, nanoseconds, offset in the chunk."""
COUNT = struct.Struct("<II")
"""Entry in a chunk info record: number of the connection, number of messages."""


class Record(NamedTuple):
    """A record in a bag."""

    op: int
    header: dict[str, bytes]
    data: bytes
    end: int
    """Offset of the next record in the file."""


def _pack_uint8(v: int) -> bytes:
    return struct.pack("<B", v)


def _pack_uint32(v: int) -> bytes:
    return struct.pack("<I", v)


def _pack_uint64(v: int) -> bytes:
    return struct.pack("<Q", v)


def _pack_time(v: Any) -> bytes:
    return struct.pack("<II", v.secs, v.nsecs)


def _unpack_uint8(v: bytes) -> int:
    return int(struct.unpack("<B", v)[0])


def _unpack_uint32(v: bytes) -> int:
    return int(struct.unpack("<I", v)[0])


def _unpack_uint64(v: bytes) -> int:
    return int(struct.unpack("<Q", v)[0])


def _unpack_time(v: bytes) -> Time:
    return Time(*struct.unpack("<II", v))


def _read(f: IO[bytes], size: int) -> bytes:
    data = f.read(size)
    if len(data) != size:
        raise ROSBagException(f"expecting {size} bytes, read {len(data)}")
    return data


def _read_sized(f: IO[bytes]) -> bytes:
    size = f.read(4)
    if len(size) != 4:
        raise ROSBagFormatException(f"a size has 4 bytes, read {len(size)}")
    return _read(f, _unpack_uint32(size))


def _write_sized(f: IO[bytes], v: str | bytes) -> None:
    data = v if isinstance(v, bytes) else v.encode()
    f.write(_pack_uint32(len(data)) + data)


def _header_bytes(header: Mapping[str, str | bytes]) -> bytes:
    fields = ((name.encode(), value if isinstance(value, bytes) else value.encode()) for name, value in header.items())
    return b"".join(_pack_uint32(len(name) + 1 + len(value)) + name + b"=" + value for name, value in fields)


def _write_header(f: IO[bytes], header: Mapping[str, str | bytes]) -> bytes:
    data = _header_bytes(header)
    _write_sized(f, data)
    return data


def _write_record(f: IO[bytes], header: Mapping[str, str | bytes], data: str | bytes = "", padded_size: int | None = None) -> None:
    """Writes a record. With `padded_size`, the data are spaces, and header and data have this total
    size in bytes.
    """
    written = _write_header(f, header)
    if padded_size is not None:
        data = " " * max(padded_size - len(written), 0)
    _write_sized(f, data)


def parsed(data: bytes) -> dict[str, bytes]:
    """Parses the fields of a header."""
    fields, at = {}, 0
    while at < len(data):
        if at + 4 > len(data):
            raise ROSBagFormatException("Error reading header field")
        size = _unpack_uint32(data[at : at + 4])
        field = data[at + 4 : at + 4 + size]
        name, found, value = field.partition(b"=")
        if len(field) < size or not found:
            raise ROSBagFormatException(f"Error reading header field: expected {size} bytes, read {len(field)}")
        fields[name.decode("utf-8", "replace")] = value
        at += 4 + size
    return fields


def _read_header(f: IO[bytes], req_op: int | None = None) -> dict[str, bytes]:
    try:
        header = parsed(_read_sized(f))
    except ROSBagException as error:
        raise ROSBagFormatException(f"Error reading header: {error}") from error
    if req_op is not None and (op := _read_uint8_field(header, "op")) != req_op:
        raise ROSBagFormatException(f"Expected op code: {_OP_CODES[req_op]}, got {_OP_CODES.get(op, op)}")
    return header


def _read_record_data(f: IO[bytes]) -> bytes:
    try:
        return _read_sized(f)
    except ROSBagException as error:
        raise ROSBagFormatException(f"Error reading record data: {error}") from error


def _field(header: Mapping[str, bytes], field: str, form: str) -> Any:
    if field not in header:
        raise ROSBagFormatException(f'expected "{field}" field in record')
    try:
        return struct.unpack(form, header[field])
    except struct.error as error:
        raise ROSBagFormatException(f'error reading field "{field}": {error}') from error


def _read_uint8_field(header: Mapping[str, bytes], field: str) -> int:
    return int(_field(header, field, "<B")[0])


def _read_uint32_field(header: Mapping[str, bytes], field: str) -> int:
    return int(_field(header, field, "<I")[0])


def _read_uint64_field(header: Mapping[str, bytes], field: str) -> int:
    return int(_field(header, field, "<Q")[0])


def _read_time_field(header: Mapping[str, bytes], field: str) -> Time:
    return Time(*_field(header, field, "<II"))


def _read_str_field(header: Mapping[str, bytes], field: str) -> str:
    if field not in header:
        raise ROSBagFormatException(f'expected "{field}" field in record')
    return header[field].decode("utf-8", "replace")


def read_record(f: IO[bytes]) -> Record:
    """Reads the record at the current position of the file."""
    header = _read_header(f)
    data = _read_record_data(f)
    return Record(_read_uint8_field(header, "op"), header, data, f.tell())
