"""The checks of rocketlogger 2.1.3 on the headers of a recording: what contradicts itself or another part is an error."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

MAGIC = b"%RLD"
LEAD_IN = struct.Struct("<4sHHIIQH6sqqIHH")
CHANNEL_BYTES = 28


class LeadIn(NamedTuple):
    """The beginning of a file, by the names that the original's errors use."""

    magic: bytes
    file_version: int
    header_length: int
    data_block_size: int
    data_block_count: int
    sample_count: int
    sample_rate: int
    mac_address: bytes
    start_sec: int
    start_nsec: int
    comment_length: int
    channel_binary_count: int
    channel_analog_count: int

    @property
    def start_time(self) -> tuple[int, int]:
        return self.start_sec, self.start_nsec


MATCHING = (
    "file_version",
    "header_length",
    "data_block_size",
    "sample_rate",
    "mac_address",
    "start_time",
    "comment_length",
    "channel_binary_count",
    "channel_analog_count",
)
"""What the parts of a recording have in common."""


def lead_in(path: str) -> LeadIn | None:
    """The beginning of a file; None where it is no file of version 2 or later, or too short."""
    with open(path, "rb") as file:
        head = file.read(LEAD_IN.size)
    found = LeadIn(*LEAD_IN.unpack(head)) if len(head) == LEAD_IN.size else None
    return found if found is not None and found.magic == MAGIC else None


def contradiction(head: LeadIn) -> str | None:
    """How a header contradicts itself."""
    if head.data_block_size == 0 or -(-head.sample_count // head.data_block_size) != head.data_block_count:
        return "inconsistent number of samples taken!"
    return None


def misplaced(head: LeadIn) -> str | None:
    """Returns how the header length of the first file contradicts the header's content."""
    length = LEAD_IN.size + head.comment_length + CHANNEL_BYTES * (head.channel_binary_count + head.channel_analog_count)
    if length == head.header_length:
        return None
    return f"File position {length} does not match header size {head.header_length}"


def difference(first: LeadIn, other: LeadIn) -> str | None:
    """The field in which the header of another part differs from the first one's."""
    value: Any = getattr
    return next((name for name in MATCHING if value(first, name) != value(other, name)), None)
