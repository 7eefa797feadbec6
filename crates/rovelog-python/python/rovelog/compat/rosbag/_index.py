"""The index of a V2.0 bag.

The index at the end of the file lists the connections, and for each chunk the number of messages
per connection. In addition, each chunk is followed by index records with the times and offsets of
its messages. `reindex` creates both for a bag that was not closed.
"""

from __future__ import annotations

import bz2
import io
import os
import struct
from collections.abc import Iterator
from typing import IO, Any

from rovelog._core import Time
from rovelog.compat.rosbag import _records as records
from rovelog.compat.rosbag._errors import ROSBagEncryptException, ROSBagException, ROSBagUnindexedException

ENCRYPTED = b"rosbag/AesCbcEncryptor"
"""Value of the field `encryptor` in the file header of an encrypted bag."""


class Compression:
    """Names of the compressions of chunks."""

    NONE = "none"
    BZ2 = "bz2"
    LZ4 = "lz4"


class ConnectionInfo:
    """A connection: number, topic, type, MD5 sum, definition, and header as stored in the bag."""

    def __init__(self, id: int, topic: str, header: dict[str, Any]) -> None:
        fields = {name: text_value(header.get(name, "")) for name in ("type", "md5sum", "message_definition")}
        self.id = id
        self.topic = topic
        self.datatype = fields["type"]
        self.md5sum = fields["md5sum"]
        self.msg_def = fields["message_definition"]
        self.header = header

    def __str__(self) -> str:
        return f"{self.id} on {self.topic}: {self.header}"


class ChunkInfo:
    """A chunk: offset in the file, first and last time, and number of messages per connection."""

    def __init__(self, pos: int, start_time: Any, end_time: Any) -> None:
        self.pos = pos
        self.start_time = start_time
        self.end_time = end_time
        self.connection_counts: dict[int, int] = {}

    def count(self, connection: int, time: Any) -> None:
        """Adds a message to the number of messages and to the time range."""
        self.connection_counts[connection] = self.connection_counts.get(connection, 0) + 1
        self.start_time = min(self.start_time, time)
        self.end_time = max(self.end_time, time)


class ChunkHeader:
    """Header of a chunk: compression, sizes in bytes, and offset of the data in the file."""

    def __init__(self, compression: str, compressed_size: int, uncompressed_size: int, data_pos: int = 0) -> None:
        self.compression = compression
        self.compressed_size = compressed_size
        self.uncompressed_size = uncompressed_size
        self.data_pos = data_pos


class Chunk:
    """Records in the decompressed data of a chunk. Reading stops at the first damaged record."""

    def __init__(self, data: bytes) -> None:
        self.connections: list[ConnectionInfo] = []
        self.messages: list[tuple[Time, int, int]] = []
        """Messages: time, number of the connection, offset in the chunk."""
        self.complete = 0
        """Size in bytes of the complete records."""
        file = io.BytesIO(data)
        while True:
            at = file.tell()
            try:
                record = records.read_record(file)
                if record.op == records._OP_CONNECTION:
                    self.connections.append(connection_of(record))
                elif record.op == records._OP_MSG_DATA:
                    connection = records._read_uint32_field(record.header, "conn")
                    self.messages.append((records._read_time_field(record.header, "time"), connection, at))
            except ROSBagException:
                break
            self.complete = record.end

    def info(self, pos: int) -> ChunkInfo | None:
        """Returns the information about the chunk. Returns None if the chunk has no messages."""
        if not self.messages:
            return None
        first = self.messages[0][0]
        info = ChunkInfo(pos, first, first)
        for time, connection, _ in self.messages:
            info.count(connection, time)
        return info

    def index(self) -> dict[int, list[tuple[Time, int]]]:
        """Returns connection -> (time, offset) of its messages, in time order."""
        found: dict[int, list[tuple[Time, int]]] = {}
        for time, connection, offset in self.messages:
            found.setdefault(connection, []).append((time, offset))
        return {connection: sorted(rows, key=lambda row: (row[0].to_nsec(), row[1])) for connection, rows in found.items()}


def text_value(value: Any) -> str:
    """Returns a value of a header as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def connection_of(record: records.Record) -> ConnectionInfo:
    """Returns the connection that a connection record describes."""
    header = {name: text_value(value) for name, value in records.parsed(record.data).items()}
    topic = records._read_str_field(record.header, "topic")
    return ConnectionInfo(records._read_uint32_field(record.header, "conn"), topic, header)


def read_chunk_header(file: IO[bytes]) -> ChunkHeader:
    """Reads the header of a chunk. The file is then positioned at the data of the chunk."""
    header = records._read_header(file, records._OP_CHUNK)
    size = records._unpack_uint32(records._read(file, 4))
    compression = records._read_str_field(header, "compression")
    return ChunkHeader(compression, size, records._read_uint32_field(header, "size"), file.tell())


class UnsupportedCompressionError(ROSBagException):
    """The compression of a chunk is not supported on this machine. Its data may be intact."""


def unpack(compression: str, data: bytes) -> bytes:
    """Decompresses the data of a chunk."""
    if compression == Compression.NONE:
        return data
    if compression == Compression.BZ2:
        return bz2.decompress(data)
    if compression == Compression.LZ4 and (lz4 := lz4_frames()) is not None:
        try:
            unpacked: bytes = lz4.decompress(data)
        except RuntimeError as error:
            raise ROSBagException(str(error)) from error
        return unpacked
    raise UnsupportedCompressionError(f"unsupported compression type: {compression}")


def lz4_frames() -> Any:
    """The package for LZ4 frames, if it is installed."""
    try:
        import lz4.frame
    except ImportError:
        return None
    return lz4.frame


class Index:
    """The index at the end of a V2.0 bag. Raises ROSBagUnindexedException if the index is missing
    or incomplete.
    """

    def __init__(self, file: IO[bytes], file_header_pos: int) -> None:
        self.connections: dict[int, ConnectionInfo] = {}
        self.chunks: list[ChunkInfo] = []
        self.chunk_headers: dict[int, ChunkHeader] = {}
        try:
            file.seek(file_header_pos)
            record = records.read_record(file)
            if record.header.get("encryptor") == ENCRYPTED:
                raise ROSBagEncryptException(f"the bag is encrypted ({text_value(ENCRYPTED)}), which is not supported")
            self.pos = records._read_uint64_field(record.header, "index_pos")
            if self.pos == 0:
                raise ROSBagUnindexedException
            file.seek(self.pos)
            for _ in range(records._read_uint32_field(record.header, "conn_count")):
                connection = connection_of(_expect(file, records._OP_CONNECTION))
                self.connections[connection.id] = connection
            for _ in range(records._read_uint32_field(record.header, "chunk_count")):
                self.chunks.append(_chunk_info(_expect(file, records._OP_CHUNK_INFO)))
            for info in self.chunks:
                file.seek(info.pos)
                self.chunk_headers[info.pos] = read_chunk_header(file)
        except ROSBagEncryptException:
            raise
        except (ROSBagException, OSError, OverflowError, struct.error) as error:
            raise ROSBagUnindexedException from error
        used = {connection for info in self.chunks for connection in info.connection_counts}
        if used - set(self.connections) or (not self.chunks and self.pos > record.end):
            raise ROSBagUnindexedException
        # Some recorders wrote connections without messages. rosbag ignores such connections too.
        self.connections = {number: known for number, known in self.connections.items() if number in used}

    def times(self, file: IO[bytes]) -> dict[int, list[float]]:
        """Returns connection -> times of its messages in seconds, in the order of the index."""
        found: dict[int, list[float]] = {connection: [] for connection in self.connections}
        for info in self.chunks:
            header = self.chunk_headers[info.pos]
            file.seek(header.data_pos + header.compressed_size)
            for _ in info.connection_counts:
                connection, rows = read_chunk_index(file)
                found.setdefault(connection, []).extend(secs + nsecs / 1e9 for secs, nsecs, _ in rows)
        return found


def read_chunk_index(file: IO[bytes]) -> tuple[int, Iterator[tuple[int, int, int]]]:
    """Reads an index record. Returns the number of the connection, and (seconds, nanoseconds,
    offset) of its messages.

    The stored size of the data is ignored, because early recorders wrote a wrong value. The size
    follows from the number of entries.
    """
    header = records._read_header(file, records._OP_INDEX_DATA)
    records._read(file, 4)
    data = records._read(file, records._read_uint32_field(header, "count") * records.INDEX_ENTRY.size)
    return records._read_uint32_field(header, "conn"), records.INDEX_ENTRY.iter_unpack(data)


def _expect(file: IO[bytes], op: int) -> records.Record:
    record = records.read_record(file)
    if record.op != op:
        raise ROSBagException(f"expected {records._OP_CODES[op]}")
    return record


def _chunk_info(record: records.Record) -> ChunkInfo:
    times = (records._read_time_field(record.header, name) for name in ("start_time", "end_time"))
    info = ChunkInfo(records._read_uint64_field(record.header, "chunk_pos"), *times)
    info.connection_counts = dict(records.COUNT.iter_unpack(record.data))
    return info


def reindex(file: IO[bytes], file_header_pos: int) -> Iterator[tuple[ChunkInfo, ChunkHeader, list[ConnectionInfo]]]:
    """Yields the chunks of a bag without an index. Truncates the file after the last complete
    record.

    The recorder writes the size of a chunk when it completes the chunk. If it crashed before, the
    last chunk has the size 0. The complete messages of an uncompressed chunk are kept: this
    function writes the size and the index records of the chunk.
    """
    length = file.seek(0, os.SEEK_END)
    file.seek(file_header_pos)
    end = records.read_record(file).end
    at = end
    while at < length:
        file.seek(at)
        try:
            header = records._read_header(file)
            op = records._read_uint8_field(header, "op")
            file.seek(at)
            if op != records._OP_CHUNK:
                end = at = records.read_record(file).end
                continue
            chunk_header = read_chunk_header(file)
            size = chunk_header.compressed_size
            # A chunk that was not completed has the size 0 and extends to the end of the file.
            data = file.read(size or length)
            if len(data) == size > 0:
                chunk = Chunk(unpack(chunk_header.compression, data))
                after = chunk_header.data_pos + size
            elif chunk_header.compression == Compression.NONE:
                chunk = Chunk(data)
                after = chunk_header.data_pos + chunk.complete
            else:
                break
        except UnsupportedCompressionError:
            # The chunk may be readable on another machine, so the file must not be truncated.
            raise
        except (ROSBagException, OSError, struct.error, EOFError, ValueError):
            break
        info = chunk.info(at)
        if info is None:
            break
        if after != chunk_header.data_pos + size:
            chunk_header = ChunkHeader(Compression.NONE, chunk.complete, chunk.complete, chunk_header.data_pos)
            file.seek(at)
            write_chunk_header(file, chunk_header)
        complete = _end_of_index(file, after, len(chunk.messages))
        if complete is None:
            file.truncate(after)
            file.seek(after)
            write_chunk_index(file, chunk.index())
            length = complete = file.tell()
        end = at = complete
        yield info, chunk_header, chunk.connections
    file.truncate(end)
    file.seek(end)


def _end_of_index(file: IO[bytes], at: int, messages: int) -> int | None:
    """Returns the offset after the index records of a chunk; None if they do not contain all its
    messages.
    """
    file.seek(at)
    found = 0
    while found < messages:
        try:
            _, rows = read_chunk_index(file)
        except ROSBagException:
            return None
        found += sum(1 for _ in rows)
    return file.tell()


def write_chunk_header(file: IO[bytes], header: ChunkHeader) -> None:
    """Writes the header of a chunk and the size of its data."""
    fields: dict[str, str | bytes] = {
        "op": records._pack_uint8(records._OP_CHUNK),
        "compression": header.compression,
        "size": records._pack_uint32(header.uncompressed_size),
    }
    records._write_header(file, fields)
    file.write(records._pack_uint32(header.compressed_size))


def write_chunk_index(file: IO[bytes], index: dict[int, list[tuple[Any, int]]]) -> None:
    """Writes the index records of a chunk, one per connection."""
    for connection, rows in index.items():
        header: dict[str, str | bytes] = {
            "op": records._pack_uint8(records._OP_INDEX_DATA),
            "conn": records._pack_uint32(connection),
            "ver": records._pack_uint32(records._INDEX_VERSION),
            "count": records._pack_uint32(len(rows)),
        }
        data = b"".join(records.INDEX_ENTRY.pack(time.secs, time.nsecs, offset) for time, offset in rows)
        records._write_record(file, header, data)
