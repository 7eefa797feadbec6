"""The class `Bag` with the API of rosbag 1.15. It reads all versions, and writes V2.0 and V1.2."""

from __future__ import annotations

import contextlib
import heapq
import io
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import IO, Any

from rovelog import _core, _source
from rovelog._bag import BagExtras
from rovelog._core import Duration, Time
from rovelog._errors import NotALogError, UnreadableError, UnsupportedError, warn
from rovelog._source import SCHEME, Source
from rovelog.compat.rosbag import _connections, _index, _info, _messages, _records, _write
from rovelog.compat.rosbag._arguments import (
    canonical,
    canonical_names,
    checked_compression,
    checked_threshold,
    identity,
    nanos,
    time_classes,
)
from rovelog.compat.rosbag._connections import Connection
from rovelog.compat.rosbag._errors import (
    ROSBagEncryptException,
    ROSBagEncryptNotSupportedException,
    ROSBagException,
    ROSBagFormatException,
    ROSBagUnindexedException,
)
from rovelog.compat.rosbag._index import ChunkHeader, ChunkInfo, Compression, ConnectionInfo
from rovelog.compat.rosbag._messages import Message

# Some scripts read and write records themselves, with these functions of rosbag's module.
from rovelog.compat.rosbag._records import *  # noqa: F403
from rovelog.compat.rosbag._records import _OP_FILE_HEADER, _read_header, _read_uint8_field
from rovelog.compat.rosbag._tuples import (
    BagMessage,
    BagMessageWithConnectionHeader,
    TopicTuple,
    TypesAndTopicsTuple,
)

__all__ = [
    "Bag",
    "BagMessage",
    "BagMessageWithConnectionHeader",
    "Compression",
    "Duration",
    "Message",
    "ROSBagEncryptException",
    "ROSBagEncryptNotSupportedException",
    "ROSBagException",
    "ROSBagFormatException",
    "ROSBagUnindexedException",
    "Time",
    "TopicTuple",
    "TypesAndTopicsTuple",
]

CHUNK_BYTES = 768 * 1024
"""Default size of a chunk in bytes before compression."""
VERSION_LINE = re.compile(rb"#ROS(.*) V(\d)\.(\d)")
WRITERS: dict[int, type[_write.Writer]] = {200: _write.Writer, 102: _write.Writer12}
MAX_COMPARED_BYTES = 256 << 20
"""Size in bytes up to which `get_message_count` reads the bag to compare it with its index."""


class Bag:
    """A bag, open for reading, writing or appending."""

    def __init__(
        self,
        f: Source | IO[bytes],
        mode: str = "r",
        compression: str = Compression.NONE,
        chunk_threshold: int = CHUNK_BYTES,
        allow_unindexed: bool = False,
        options: dict[str, Any] | None = None,
        skip_index: bool = False,
        version: int = 200,
    ) -> None:
        """Opens a bag to read (`r`), write (`w`) or append (`a`).

        - `compression`: compression of new chunks
        - `chunk_threshold`: size of new chunks in bytes, before compression
        - `options`: a dict with these two options
        - `allow_unindexed`: accepts a V2.0 bag without an index; see `reindex`
        - `version`: version of a new bag, 200 for V2.0 or 102 for V1.2
        """
        if options is not None and not isinstance(options, dict):
            raise ValueError("options must be of type dict")
        options = {"compression": compression, "chunk_threshold": chunk_threshold, **(options or {})}
        self._compression = checked_compression(options["compression"])
        self._chunk_threshold = checked_threshold(options["chunk_threshold"])
        if not f:
            raise ValueError("filename (or stream) is invalid")
        if mode not in ("r", "w", "a"):
            raise ValueError(f'mode "{mode}" is invalid')
        self._mode = mode
        self._file: IO[bytes] | None = None
        self._filename: str | None = None
        self._open_reader: _core.Reader | None = None
        self._writer: _write.Writer | None = None
        self._index: _index.Index | None = None
        self._file_header_pos: int | None = None
        self._version = version
        self._source: Any = f
        self._is_open = True
        if mode == "r":
            self._start_reading(f, allow_unindexed)
        else:
            self._start_writing(f, allow_unindexed)

    def _start_reading(self, f: Any, allow_unindexed: bool) -> None:
        if isinstance(f, (bytes, bytearray, memoryview)):
            self._file = io.BytesIO(f)
        elif hasattr(f, "read"):
            self._file = f
        else:
            self._filename = os.fspath(f)
        try:
            with self._bytes() as file:
                self._read_version(file)
                if self._version >= 200 and file is not None:
                    try:
                        self._index = _index.Index(file, self._file_header_pos or 0)
                    except ROSBagUnindexedException:
                        if not allow_unindexed:
                            raise
            # If the file is not a bag, opening the reader raises an exception.
            _ = self._reader
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[IO[bytes] | None]:
        """Context manager that returns the file, or None for a remote file."""
        if self._file is not None or SCHEME.match(self._filename or ""):
            yield self._file
        else:
            with open(self._filename or "", "rb") as file:
                yield file

    def _start_writing(self, f: Any, allow_unindexed: bool) -> None:
        if hasattr(f, "write"):
            self._file = f
        else:
            self._filename = os.fspath(f)
            self._file = open(f, "r+b" if self._mode == "a" and os.path.exists(f) else "w+b")
        file = self._file
        assert file is not None
        try:
            if self._mode == "w":
                if self._version not in WRITERS:
                    raise ValueError(f"bags of version {self._version} are not written: 200 or 102")
                self._writer = WRITERS[self._version](file)
                self._writer.start()
                self._file_header_pos = self._writer.file_header_pos
                return
            if not file.seek(0, os.SEEK_END):
                raise ROSBagException("empty file")
            self._read_version(file)
            if self._version < 200:
                raise ROSBagException(f"bag version {self._version} is unsupported for appending")
            index = None
            try:
                index = _index.Index(file, self._file_header_pos or 0)
            except ROSBagUnindexedException:
                if not allow_unindexed:
                    raise
            self._writer = _write.Writer(file)
            self._writer.append(self._file_header_pos or 0, index)
            self._unindexed = index is None
        except BaseException:
            self._writer = None
            self.close()
            raise

    _unindexed = False
    """True if the bag is open for appending and has no index yet."""

    def _read_version(self, file: IO[bytes] | None) -> None:
        if file is None:
            self._version = 200 if self._reader.info()["version"] == "2.0" else 102
            return
        file.seek(0)
        line = file.readline(256)
        if not line:
            raise ROSBagException("empty file")
        found = VERSION_LINE.match(line)
        if found is not None:
            self._version = 100 * int(found[2]) + int(found[3])
            self._file_header_pos = file.tell()
        elif self._mode != "r":
            raise ROSBagException("This does not appear to be a bag file")
        else:
            # Bags before V1.0 and compressed bag files have no version line. The reader detects
            # them.
            _ = self._reader
            self._version = 102

    @property
    def _reader(self) -> _core.Reader:
        """The reader for the current content of the file."""
        if not self._is_open:
            raise ValueError("I/O operation on closed bag")
        if self._open_reader is not None:
            return self._open_reader
        self.__dict__.pop("_known", None)
        try:
            reader = self._new_reader()
        except NotALogError as error:
            raise ROSBagFormatException(f"This does not appear to be a bag file: {error}") from error
        except (UnreadableError, UnsupportedError) as error:
            raise ROSBagFormatException(str(error)) from error
        if reader.info()["format"] != "rosbag":
            raise ROSBagFormatException(f"This does not appear to be a bag file: {reader.path}")
        if self._mode == "r" and (loss := reader.info()["loss"]) is not None:
            warn(f"{loss}: {reader.path} (rovelog check names the places)")
        self._open_reader = reader
        return reader

    def _new_reader(self) -> _core.Reader:
        if self._mode != "r" and self._file is not None:
            self._file.flush()
        if self._filename is not None and not 200 < self._version < 300:
            return _source.open_reader(self._filename)
        with self._bytes() as file:
            if file is None:
                return _source.open_reader(self._source)
            pos = file.tell()
            file.seek(0)
            data = file.read()
            file.seek(pos)
        if 200 < self._version < 300:
            # Later minor versions only add record types, which the reader skips.
            data = f"{_records._VERSION}\n".encode() + data[self._file_header_pos or 0 :]
        return _source.open_reader(data)

    @cached_property
    def _known(self) -> list[Connection]:
        """The connections, in the order of the reader's topics."""
        reader = self._reader
        source = self._writer or self._index
        stored = {} if source is None else _connections.stored_headers(source.connections.values())
        found = []
        for index, (topic, row) in enumerate(zip(reader.topics(), BagExtras(reader).connections, strict=True)):
            kind, md5, definition = row.type, row.md5sum, row.definition or ""
            unread = _messages.undecoded(kind, md5, definition)
            spec = _messages.spec_of(_core.bag_types(reader, index), kind, md5, definition)
            made = unread if spec is None else _messages.message_class(spec)
            headers = stored.get((row.topic, kind, md5)) or _connections.made_headers(row, topic["count"], self._version)
            info = ConnectionInfo(index, row.topic, next(iter(headers.values())))
            found.append(Connection(row.name, info, topic["count"], headers, made, unread))
        return found

    @property
    def _connections(self) -> dict[int, ConnectionInfo]:
        """Number -> connection."""
        source = self._writer or self._index
        return source.connections if source is not None else {found.info.id: found.info for found in self._known}

    @property
    def _chunks(self) -> list[ChunkInfo]:
        """The chunks of a V2.0 bag; empty without an index."""
        source = self._writer or self._index
        return source.chunks if source is not None else []

    @property
    def _chunk_headers(self) -> dict[int, ChunkHeader]:
        source = self._writer or self._index
        return source.chunk_headers if source is not None else {}

    @property
    def _indexed(self) -> bool:
        return self._index is not None or self._writer is not None or self._file_header_is_index

    @property
    def _file_header_is_index(self) -> bool:
        """True if a V1.2 bag has a file header, which only bags with an index have."""
        if self._file_header_pos is None or self._version != 102:
            return False
        with self._bytes() as file:
            if file is None:
                return False
            file.seek(self._file_header_pos)
            try:
                return _read_uint8_field(_read_header(file), "op") == _OP_FILE_HEADER
            except ROSBagException:
                return False

    @property
    def filename(self) -> str | None:
        """Path of the file; None for a stream."""
        return self._filename

    @property
    def version(self) -> int:
        """Version of the bag: 200 for V2.0, 102 for V1.2."""
        return self._version

    @property
    def mode(self) -> str:
        """Mode: `r`, `w` or `a`."""
        return self._mode

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        if not self._is_open:
            raise ValueError("I/O operation on closed bag")
        with self._bytes() as file:
            if file is None:
                return int(self._reader.info()["size"])
            pos = file.tell()
            size = file.seek(0, os.SEEK_END)
            file.seek(pos)
            return size

    @property
    def options(self) -> dict[str, Any]:
        """The options `compression` and `chunk_threshold`."""
        return {"compression": self._compression, "chunk_threshold": self._chunk_threshold}

    @property
    def compression(self) -> str:
        """Compression of new chunks."""
        return self._compression

    @compression.setter
    def compression(self, compression: str) -> None:
        compression = checked_compression(compression)
        self.flush()
        self._compression = compression

    @property
    def chunk_threshold(self) -> int:
        """Size of new chunks in bytes, before compression."""
        return self._chunk_threshold

    @chunk_threshold.setter
    def chunk_threshold(self, chunk_threshold: int) -> None:
        chunk_threshold = checked_threshold(chunk_threshold)
        self.flush()
        self._chunk_threshold = chunk_threshold

    def read_messages(
        self,
        topics: str | Iterable[str] | None = None,
        start_time: Any = None,
        end_time: Any = None,
        connection_filter: Callable[..., bool] | None = None,
        raw: bool = False,
        return_connection_header: bool = False,
    ) -> Iterator[Any]:
        """Returns (topic, message, timestamp) in time order.

        - `start_time`, `end_time`: Times or seconds, both inclusive; zero is no limit
        - `connection_filter`: called with topic, type, MD5 sum, definition and header
        - `raw`: a message is (type, bytes, MD5 sum, position in the file, class)
        """
        self.flush()
        reader, names = self._reader, canonical_names(topics)
        start, end = nanos(start_time), nanos(end_time)
        connections = [
            _connections.selected(found, connection_filter) if names is None or canonical(found.info.topic) in names else None
            for found in self._known
        ]
        return _core.bag_messages(
            reader,
            connections,
            (start, None if end is None else end + 1),
            raw=raw,
            with_header=return_connection_header,
            given=BagMessageWithConnectionHeader if return_connection_header else BagMessage,
            time_classes=time_classes(),
        )

    def flush(self) -> None:
        """Completes the open chunk, so that its messages can be read."""
        if not self._is_open:
            raise ValueError("I/O operation on closed bag")
        if self._writer is not None:
            self._writer.close_chunk()
            self._open_reader = None

    def write(
        self,
        topic: str,
        msg: Any,
        t: Any = None,
        raw: bool = False,
        connection_header: dict[str, Any] | None = None,
    ) -> None:
        """Writes a message with the time `t`, by default now.

        With `raw`, `msg` is a tuple that `read_messages(raw=True)` returned. The position is
        optional.
        """
        if not self._is_open:
            raise ValueError("I/O operation on closed bag")
        if not topic:
            raise ValueError("topic is invalid")
        if not msg:
            raise ValueError("msg is invalid")
        if self._writer is None:
            raise ROSBagException('the bag is open for reading: open it with mode "w" or "a"')
        if self._unindexed:
            raise ROSBagUnindexedException
        if raw and len(msg) not in (4, 5):
            raise ValueError("msg must be of length 4 or 5")
        kind, data, md5 = msg[:3] if raw else (msg._type, _messages.serialized(msg), msg._md5sum)
        stamp = Time(*divmod(time.time_ns(), 10**9)) if t is None else t
        number = self._writer.connection(topic, kind, md5)
        if number is None and connection_header is None:
            made = msg[-1] if raw else msg
            if made is None:
                raise ROSBagException(f"no message class provided for [{kind}]")
            # Without a definition, no reader could decode the messages. A type without fields has an
            # empty definition, and undecoded payloads are copied as they are.
            if not raw and not made._full_text and made.__slots__:
                raise ROSBagException(f"the message has no definition of its type [{kind}]: pass its connection_header")
            connection_header = {"topic": topic, "type": kind, "md5sum": md5, "message_definition": made._full_text}
        self._writer.open_chunk(stamp, self._compression)
        if number is None:
            number = self._writer.connect(topic, connection_header or {})
        if self._writer.message(number, stamp, data, connection_header) > self._chunk_threshold:
            self._writer.close_chunk()

    def reindex(self) -> Iterator[int]:
        """Creates the index of a bag that was opened in mode `a`. Yields the offset of each chunk.

        The file is truncated after the last message before damage. `rovelog recover` also keeps the
        messages after damage.
        """
        if self._writer is None or self._mode != "a":
            return
        writer = self._writer
        writer.connections, writer.chunks, writer.chunk_headers = {}, [], {}
        for info, header, connections in _index.reindex(writer.file, writer.file_header_pos):
            writer.chunks.append(info)
            writer.chunk_headers[info.pos] = header
            for connection in connections:
                writer.connections.setdefault(connection.id, connection)
            yield info.pos
        self._unindexed = False
        self._open_reader = None

    def close(self) -> None:
        """Writes the index of a new bag, and closes the file."""
        if not self._is_open:
            return
        try:
            if self._writer is not None:
                if self._unindexed:
                    for _ in self.reindex():
                        pass
                self._writer.finish()
        finally:
            self._is_open = False
            self._open_reader = None
            if self._file is not None:
                self._file.close()

    def get_compression_info(self) -> _info.CompressionTuple:
        """Returns the most frequent compression, and the size of all chunks in bytes."""
        return _info.compression_of(self._chunk_headers.values(), self._compression)

    def get_message_count(self, topic_filters: str | list[str] | None = None) -> int:
        """Returns the number of messages in the index, for some topics or all.

        Bags of up to 256 MiB are compared with the index, and a `DataLossWarning` reports
        differences.
        """
        if self._mode == "r" and not SCHEME.match(self._filename or "") and self.size <= MAX_COMPARED_BYTES:
            self._reader.compare()
        return sum(count for _, count in self._counts(topic_filters))

    def _counts(self, topics: str | Iterable[str] | None) -> list[tuple[ConnectionInfo, int]]:
        """Returns the connections of some topics, each with its number of messages."""
        names = None if topics is None else canonical_names(topics) or set()
        source = self._writer or self._index
        if source is None:
            both = [(found.info, found.messages) for found in self._known]
        else:
            counts: dict[int, int] = {}
            for chunk in source.chunks:
                for connection, count in chunk.connection_counts.items():
                    counts[connection] = counts.get(connection, 0) + count
            both = [(info, counts.get(info.id, 0)) for info in source.connections.values()]
        return [(info, count) for info, count in both if names is None or canonical(info.topic) in names]

    def get_type_and_topic_info(self, topic_filters: str | Sequence[str] | None = None) -> TypesAndTopicsTuple:
        """Returns all types with their MD5 sums, and information about some topics or all."""
        types: dict[str, str] = {}
        for info in self._connections.values():
            types.setdefault(info.datatype, info.md5sum)
        topics: dict[str, list[tuple[ConnectionInfo, int]]] = {}
        for info, count in self._counts(topic_filters):
            topics.setdefault(info.topic, []).append((info, count))
        times = self._times({info.id for both in topics.values() for info, _ in both})
        return TypesAndTopicsTuple(
            dict(sorted(types.items())),
            {
                name: TopicTuple(
                    both[0][0].datatype,
                    sum(count for _, count in both),
                    len(both),
                    _info.frequency_of(list(heapq.merge(*(times.get(info.id, []) for info, _ in both)))),
                )
                for name, both in sorted(topics.items())
            },
        )

    def _times(self, connections: set[int]) -> dict[int, list[float]]:
        """Returns connection -> times of its messages in seconds."""
        if self._index is not None:
            with self._bytes() as file, contextlib.suppress(ROSBagException):
                # If the index is damaged, the times are read from the messages below.
                return {} if file is None else self._index.times(file)
        if self._writer is not None:
            self.flush()
        reader = self._reader
        # The reader numbers connections on its own. For a bag that is being written, the numbers of
        # the writer are found by topic and type.
        numbers = {identity(info): number for number, info in self._connections.items()}
        names = {found.name: numbers.get(identity(found.info), found.info.id) for found in self._known}
        wanted = [name for name, number in names.items() if number in connections]
        found: dict[int, list[float]] = {}
        for record in reader.messages(wanted, (None, None), raw=True) if wanted else ():
            secs, nsecs = divmod(record.t_ns or 0, 10**9)
            found.setdefault(names[record.topic], []).append(secs + nsecs / 1e9)
        return found

    def get_start_time(self) -> float:
        """Returns the time of the first message in seconds."""
        if self._chunks:
            return float(self._chunks[0].start_time.to_sec())
        # Unlike `info`, messages in time order include those with the time 0, as in rosbag.
        names = [found.name for found in self._known if found.messages] if self._has_messages() else []
        for record in self._reader.messages(names, (None, None), raw=True) if names else ():
            return Time(*divmod(record.t_ns or 0, 10**9)).to_sec()
        raise ROSBagException("Bag contains no message")

    def get_end_time(self) -> float:
        """Returns the time of the last message in seconds."""
        if self._chunks:
            return float(self._chunks[-1].end_time.to_sec())
        end = self._reader.info()["end_ns"] if self._has_messages() else None
        if end is None:
            raise ROSBagException("Bag contains no message")
        return Time(*divmod(end, 10**9)).to_sec()

    def _has_messages(self) -> bool:
        """Completes the open chunk, and returns True if the file contains a message."""
        if self._writer is None:
            return True
        self.flush()
        return bool(self._writer.chunks) or self._writer.version == 102

    def _get_yaml_info(self, key: str | None = None) -> Any:
        """Returns the information about the bag as YAML, or the value of one key."""
        text = _info.yaml_of_bag(self)
        return _info.yaml_value(text, key) if key else text

    def set_encryptor(self, encryptor: str | None = None, param: Any = None) -> None:
        """Raises an exception, because encryption is not supported."""
        if encryptor:
            raise ROSBagEncryptNotSupportedException(f"{encryptor}: encryption is not supported")

    def __str__(self) -> str:
        return _info.text_of_bag(self)

    def __iter__(self) -> Iterator[Any]:
        return self.read_messages()

    def __enter__(self) -> Bag:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
