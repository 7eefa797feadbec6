"""Types shared by several modules of the package.

Most of them describe values that the compiled part passes to Python. Modules that would otherwise
import each other share their types here, so this module imports only `_metadata`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional, Protocol, TypedDict

from rovelog._metadata import Field

FieldFacts = tuple[str, str, str, Optional[str], Optional[list["FieldFacts"]]]
"""A field of a topic: name, type, type as written in the log, unit, nested fields."""
Window = tuple[Optional[int], Optional[int]]
"""A time range in ns on the log clock: start (inclusive) and end (exclusive). None means no
limit.
"""
Part = tuple[Optional[list[str]], Window, list[str]]
"""A part of a topic: names of the fields (None selects all), time range, signals to compute."""
Lost = tuple[str, Optional[str], str]
"""Data that could not be exported: topic, field, reason."""


class TopicFacts(TypedDict):
    """Metadata of a topic, collected by the scan of the log."""

    name: str
    type: str
    count: int
    bytes: int | None
    rate_hz: float | None
    first_ns: int | None
    last_ns: int | None
    decodable: bool


class TopicColumns(Protocol):
    """The part of `Topic` that LazyFrames and datasets need.

    `_topic` imports `_lazyframe` and `_dataset`. Both use this protocol instead of `Topic`, because
    an import of `_topic` would be circular.
    """

    _fields: list[str] | None
    """Names of the selected fields; None selects all."""

    @property
    def name(self) -> str: ...
    @property
    def first_ns(self) -> int | None: ...
    @property
    def last_ns(self) -> int | None: ...
    @property
    def fields(self) -> list[Field]: ...
    def select(self, *fields: str) -> TopicColumns: ...
    def between(self, start: int | None = None, end: int | None = None) -> TopicColumns: ...
    def batches(self) -> Iterator[Any]: ...
    def _within(self, window: Window) -> TopicColumns: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ExportOptions(TypedDict):
    """Options of `convert`, as the compiled part expects them."""

    typed: bool
    keep_ned: bool
    raw: bool
    full: bool
    ros2: bool
    modernize: bool
    compression: str
    calibration: str | None
    model: str | None
    flatten: bool
    names: str
    dialect: str
    delimiter: str
    time_unit: str
    profile: str | None
    blobs: bool


class RldHeader(TypedDict):
    """Header of an RLD log. `rows` is the number of rows in all files of a split log."""

    file_magic: int
    file_version: int
    header_length: int
    data_block_size: int
    sample_rate: int
    mac_address: bytes
    comment_length: int
    start_sec: int
    start_nsec: int
    comment: bytes
    rows: int
    channels: list[tuple[str, int, int, int, int | None, bool]]
    """For each channel: name, unit code, scale, size in bytes, index of the channel with its
    validity bits, and whether the channel is binary.
    """


BagMaker = tuple[type, list[tuple[str, "BagMaker | None"]]]
"""A message class and its fields in order. Each field has a name, and a maker if it is a
message.
"""


class BagType(TypedDict):
    """A message type in a bag."""

    name: str
    md5: str
    text: str
    """Text of this type, without the texts of nested types."""
    fields: list[tuple[str, str, int | None]]
    """Fields: name, type, and if the field is a message, the index of its type in the list."""
    constants: list[tuple[str, str, str]]
    """Constants: type, name, and value as written in the text."""


BagPublisher = tuple[bool, Optional[str]]
"""Publisher of messages in a bag: whether it is latching, and the name of its node if known."""


class BagConnection(TypedDict):
    """Facts about a connection, which are returned together with every message of this connection.
    """

    topic: str
    kind: str
    md5: str
    maker: BagMaker
    undecoded: type
    """Class for messages that the definition cannot decode. They contain the payload as bytes."""
    headers: dict[BagPublisher, dict[str, Any] | None]
    """Connection header for each publisher. None if its messages are skipped."""
    header: dict[str, Any] | None
    """Connection header for other publishers. None if their messages are skipped."""


LogFile = tuple[str, int, int]
"""A log file: path, size in bytes, time of the last change in microseconds since 1970."""
