"""Types of what passes between the compiled part and the rest."""

from __future__ import annotations

from typing import Optional, TypedDict

FieldFacts = tuple[str, str, str, Optional[str], Optional[list["FieldFacts"]]]
"""Name, type, the log's own type, unit, the fields inside."""
Window = tuple[Optional[int], Optional[int]]
"""From a time until before another, ns of the log's clock; None leaves a side open."""
Part = tuple[Optional[list[str]], Window, list[str]]
"""Fields, or None for all, a window, and signals."""
Lost = tuple[str, Optional[str], str]
"""Topic, field, why it could not be carried."""


class TopicFacts(TypedDict):
    """Result of the scan for a topic."""

    name: str
    type: str
    count: int
    bytes: int | None
    rate_hz: float | None
    first_ns: int | None
    last_ns: int | None
    decodable: bool


class ExportOptions(TypedDict):
    """The options of `convert`."""

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
    """The header of an RLD log, and the rows of all its files."""

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
    """Name, code of the unit, scale, bytes, index of the channel that says whether values are valid, whether it is binary."""


BagMaker = tuple[type, list[tuple[str, "BagMaker | None"]]]
"""A class of messages, and its fields in order: name, and what makes the messages in it."""


class BagConnection(TypedDict):
    """What is told of each message of a connection."""

    topic: str
    kind: str
    md5: str
    maker: BagMaker
    undecoded: type
    header: dict[str, str] | None


LogFile = tuple[str, int, int]
"""A log that was found: path, size, time of the last change in microseconds since 1970."""
