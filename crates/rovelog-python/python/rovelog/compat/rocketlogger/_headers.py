"""The checks of rocketlogger 2.1.3 on the headers of a recording: what contradicts itself or another part is an error."""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

MAGIC = b"%RLD"
LEAD_IN = struct.Struct("<4sHHIIQH6sqqIHH")
CHANNEL = struct.Struct("<IiHH16s")
VERSIONS = (1, 2, 3, 4)
BLOCK_TIMES_BYTES = 32
BINARY = (3, 4)
"""The codes of the units of binary channels."""


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
    length = LEAD_IN.size + head.comment_length + CHANNEL.size * (head.channel_binary_count + head.channel_analog_count)
    if length == head.header_length:
        return None
    return f"File position {length} does not match header size {head.header_length}"


def difference(first: LeadIn, other: LeadIn) -> str | None:
    """The field in which the header of another part differs from the first one's."""
    value: Any = getattr
    return next((name for name in MATCHING if value(first, name) != value(other, name)), None)


def not_a_log(path: str) -> str | None:
    """Returns what the original says about a file that starts with other bytes."""
    with open(path, "rb") as file:
        magic = int.from_bytes(file.read(4), "little")
    if magic == int.from_bytes(MAGIC, "little"):
        return None
    return f"Invalid RocketLogger data file, file magic mismatch 0x{magic:08x}. ({path})"


class Blocks(NamedTuple):
    """What is in a file."""

    complete: int
    """Complete blocks."""
    rows: int
    """Complete rows, those of an incomplete block at the end included."""
    expected: bool
    """Whether the length of the file is the one that its header says."""


def blocks(path: str, head: LeadIn) -> Blocks:
    """Counts the blocks of a file by its length."""
    with open(path, "rb") as file:
        file.seek(LEAD_IN.size + head.comment_length)
        records = file.read(CHANNEL.size * (head.channel_binary_count + head.channel_analog_count))
        length = file.seek(0, os.SEEK_END)
    sizes = [size for unit, _, size, _, _ in CHANNEL.iter_unpack(records) if unit not in BINARY]
    row = 4 * -(-head.channel_binary_count // 32) + sum(sizes)
    block = BLOCK_TIMES_BYTES + head.data_block_size * row
    full, short = divmod(head.sample_count, head.data_block_size)
    expected = head.header_length + full * block + (BLOCK_TIMES_BYTES + short * row if short else 0)
    complete, rest = divmod(max(length - head.header_length, 0), block)
    rows = complete * head.data_block_size + max(rest - BLOCK_TIMES_BYTES, 0) // (row or 1)
    return Blocks(complete, rows, length == expected)
