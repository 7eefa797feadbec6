"""Writers of bags: V2.0 with chunks, as rosbag writes it, and V1.2, as the old recorder wrote
it.
"""

from __future__ import annotations

import bz2
import os
import struct
from typing import IO, Any

from rovelog.compat.rosbag import _records as records
from rovelog.compat.rosbag._errors import ROSBagException
from rovelog.compat.rosbag._index import (
    ChunkHeader,
    ChunkInfo,
    Compression,
    ConnectionInfo,
    Index,
    lz4_frames,
    write_chunk_header,
    write_chunk_index,
)

INDEX_ENTRY_12 = struct.Struct("<IIQ")
"""Entry in the index of a V1.2 bag: seconds, nanoseconds, offset in the file."""
FILE_HEADER_BYTES_12 = 4096


class _CompressedOutput:
    """Output for the data of a chunk that compresses them while they are written."""

    def __init__(self, file: IO[bytes], compressor: Any) -> None:
        self._file = file
        self._compressor = compressor
        self.size = 0
        """Size of the written data in bytes, before compression."""

    def write(self, data: bytes) -> int:
        self._file.write(self._compressor.compress(data))
        self.size += len(data)
        return len(data)

    def finish(self) -> None:
        self._file.write(self._compressor.flush())


class _Lz4:
    """An LZ4 frame with the interface of the compressors of the standard library."""

    def __init__(self) -> None:
        self._frame = lz4_frames().LZ4FrameCompressor()
        self._start = self._frame.begin()

    def compress(self, data: bytes) -> bytes:
        start, self._start = self._start, b""
        compressed: bytes = start + self._frame.compress(data)
        return compressed

    def flush(self) -> bytes:
        rest: bytes = self._start + self._frame.flush()
        return rest


def compressions() -> list[str]:
    """Returns the compressions that are available. LZ4 needs the package `lz4`."""
    return [Compression.NONE, Compression.BZ2] + ([Compression.LZ4] if lz4_frames() is not None else [])


class Writer:
    """Writer of a V2.0 bag.

    All positions are read from the file, so scripts may write further records between messages.
    """

    version = 200

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.connections: dict[int, ConnectionInfo] = {}
        self.chunks: list[ChunkInfo] = []
        self.chunk_headers: dict[int, ChunkHeader] = {}
        self.file_header_pos = 0
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._chunk: ChunkInfo | None = None
        self._data_pos = 0
        self._compressed: _CompressedOutput | None = None
        self._compression = Compression.NONE
        self._index: dict[int, list[tuple[Any, int]]] = {}

    def start(self) -> None:
        """Writes the version line and the file header of a new bag."""
        self.file.write(f"{records._VERSION}\n".encode())
        self.file_header_pos = self.file.tell()
        self._write_file_header(0)

    def append(self, file_header_pos: int, index: Index | None) -> None:
        """Prepares an existing bag for further messages. Its index is removed until `finish` writes
        it.

        If `index` is None, `reindex` must be called before the first message is written.
        """
        self.file_header_pos = file_header_pos
        if index is not None:
            self.connections, self.chunks, self.chunk_headers = index.connections, index.chunks, index.chunk_headers
            self.file.truncate(index.pos)
        self.file.seek(file_header_pos)
        # `index_pos` is 0 until the bag is closed, so that readers do not use the removed index.
        self._write_file_header(0, 0, 0)
        self.file.seek(0, os.SEEK_END)

    def connection(self, topic: str, kind: str, md5: str) -> int | None:
        """Returns the number of the connection with this topic and type. Returns None if there is
        no such connection.
        """
        if len(self._numbers) != len(self.connections):
            rows = self.connections.items()
            self._numbers = {(known.topic, known.datatype, known.md5sum): number for number, known in rows}
        return self._numbers.get((topic, kind, md5))

    def connect(self, topic: str, header: dict[str, Any]) -> int:
        """Writes a new connection and returns its number."""
        number = max(self.connections, default=-1) + 1
        self.connections[number] = connection = ConnectionInfo(number, topic, header)
        self._write_connection(self._out(), connection)
        return number

    def open_chunk(self, time: Any, compression: str) -> None:
        """Starts a chunk if none is open."""
        if self._chunk is not None:
            return
        self.file.seek(0, os.SEEK_END)
        self._chunk = ChunkInfo(self.file.tell(), time, time)
        self._compression = compression
        write_chunk_header(self.file, ChunkHeader(compression, 0, 0))
        self._data_pos = self.file.tell()
        if compression == Compression.BZ2:
            self._compressed = _CompressedOutput(self.file, bz2.BZ2Compressor())
        elif compression == Compression.LZ4:
            self._compressed = _CompressedOutput(self.file, _Lz4())

    def message(self, connection: int, time: Any, data: bytes, publisher: dict[str, Any] | None) -> int:
        """Writes a message to the open chunk. Returns the size of the chunk.

        `publisher` is the connection header of the message, if the caller has passed one. Only V1.2
        bags store the publisher of each message.
        """
        assert self._chunk is not None
        # An invalid time raises an exception here, before the index is changed.
        header: dict[str, str | bytes] = {
            "op": records._pack_uint8(records._OP_MSG_DATA),
            "conn": records._pack_uint32(connection),
            "time": records._pack_time(time),
        }
        self._index.setdefault(connection, []).append((time, self._size()))
        self._chunk.count(connection, time)
        records._write_record(self._out(), header, data)
        return self._size()

    def _out(self) -> Any:
        """Returns the output for the records of the open chunk."""
        return self.file if self._compressed is None else self._compressed

    def _size(self) -> int:
        """Returns the size of the open chunk in bytes, before compression."""
        return self.file.tell() - self._data_pos if self._compressed is None else self._compressed.size

    def close_chunk(self) -> None:
        """Completes the open chunk and writes its index."""
        if self._chunk is None:
            return
        size = self._size()
        if self._compressed is not None:
            self._compressed.finish()
            self._compressed = None
        end = self.file.tell()
        header = ChunkHeader(self._compression, end - self._data_pos, size, self._data_pos)
        self.file.seek(self._chunk.pos)
        write_chunk_header(self.file, header)
        self.file.seek(end)
        rows = {number: sorted(found, key=lambda row: row[0].to_nsec()) for number, found in self._index.items()}
        write_chunk_index(self.file, rows)
        self.chunks.append(self._chunk)
        self.chunk_headers[self._chunk.pos] = header
        self._chunk = None
        self._index = {}

    def finish(self) -> None:
        """Writes the index of the bag."""
        self.close_chunk()
        self.file.seek(0, os.SEEK_END)
        pos = self.file.tell()
        for connection in self.connections.values():
            self._write_connection(self.file, connection)
        for info in self.chunks:
            header: dict[str, str | bytes] = {
                "op": records._pack_uint8(records._OP_CHUNK_INFO),
                "ver": records._pack_uint32(records._CHUNK_INDEX_VERSION),
                "chunk_pos": records._pack_uint64(info.pos),
                "start_time": records._pack_time(info.start_time),
                "end_time": records._pack_time(info.end_time),
                "count": records._pack_uint32(len(info.connection_counts)),
            }
            counts = b"".join(records.COUNT.pack(*row) for row in info.connection_counts.items())
            records._write_record(self.file, header, counts)
        self.file.seek(self.file_header_pos)
        self._write_file_header(pos, len(self.connections), len(self.chunks))

    def _write_file_header(self, index_pos: int, connections: int = 0, chunks: int = 0) -> None:
        header: dict[str, str | bytes] = {
            "op": records._pack_uint8(records._OP_FILE_HEADER),
            "index_pos": records._pack_uint64(index_pos),
            "conn_count": records._pack_uint32(connections),
            "chunk_count": records._pack_uint32(chunks),
        }
        records._write_record(self.file, header, padded_size=records._FILE_HEADER_LENGTH)

    @staticmethod
    def _write_connection(out: Any, connection: ConnectionInfo) -> None:
        header: dict[str, str | bytes] = {
            "op": records._pack_uint8(records._OP_CONNECTION),
            "topic": connection.topic,
            "conn": records._pack_uint32(connection.id),
        }
        records._write_header(out, header)
        records._write_header(out, connection.header)


class Writer12(Writer):
    """Writer of a V1.2 bag: definitions and messages, followed by the index."""

    version = 102

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._rows: dict[int, list[tuple[Any, int]]] = {}

    def start(self) -> None:
        self.file.write(b"#ROSRECORD V1.2\n")
        self.file_header_pos = self.file.tell()
        self._write_file_header(0)

    def append(self, file_header_pos: int, index: Index | None) -> None:
        raise ROSBagException("bag version 102 is unsupported for appending")

    def connect(self, topic: str, header: dict[str, Any]) -> int:
        number = max(self.connections, default=-1) + 1
        self.connections[number] = found = ConnectionInfo(number, topic, header)
        self._rows[number] = []
        fields: dict[str, str | bytes] = {
            "def": found.msg_def,
            "md5": found.md5sum,
            "op": records._pack_uint8(records._OP_MSG_DEF),
            "topic": topic,
            "type": found.datatype,
        }
        # The first index entry of a topic refers to the definition before its first message.
        self._definition_at = self.file.tell()
        records._write_record(self.file, fields)
        return number

    def open_chunk(self, time: Any, compression: str) -> None:
        if compression != Compression.NONE:
            raise ROSBagException("bags of V1.2 are not compressed")
        self.file.seek(0, os.SEEK_END)

    def message(self, connection: int, time: Any, data: bytes, publisher: dict[str, Any] | None) -> int:
        found = self.connections[connection]
        at = self.file.tell() if self._rows[connection] else self._definition_at
        self._rows[connection].append((time, at))
        header: dict[str, str | bytes] = {}
        publisher = found.header if publisher is None else publisher
        latching, callerid = publisher.get("latching"), publisher.get("callerid")
        if latching in ("1", b"1") and callerid:
            header = {"callerid": callerid, "latching": "1"}
        header |= {
            "md5": found.md5sum,
            "nsec": records._pack_uint32(time.nsecs),
            "op": records._pack_uint8(records._OP_MSG_DATA),
            "sec": records._pack_uint32(time.secs),
            "topic": found.topic,
            "type": found.datatype,
        }
        records._write_record(self.file, header, data)
        return 0

    def finish(self) -> None:
        self.file.seek(0, os.SEEK_END)
        pos = self.file.tell()
        for connection in sorted(self.connections.values(), key=lambda known: known.topic):
            rows = self._rows[connection.id]
            header: dict[str, str | bytes] = {
                "count": records._pack_uint32(len(rows)),
                "op": records._pack_uint8(records._OP_INDEX_DATA),
                "topic": connection.topic,
                "type": connection.datatype,
                "ver": records._pack_uint32(0),
            }
            data = b"".join(INDEX_ENTRY_12.pack(time.secs, time.nsecs, at) for time, at in rows)
            records._write_record(self.file, header, data)
        self.file.seek(self.file_header_pos)
        self._write_file_header(pos)

    def _write_file_header(self, index_pos: int, connections: int = 0, chunks: int = 0) -> None:
        header: dict[str, str | bytes] = {
            "index_pos": records._pack_uint64(index_pos),
            "op": records._pack_uint8(records._OP_FILE_HEADER),
        }
        records._write_record(self.file, header, padded_size=FILE_HEADER_BYTES_12)
