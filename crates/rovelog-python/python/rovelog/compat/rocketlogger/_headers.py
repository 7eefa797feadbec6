"""Checks of the file headers of a recording.

rocketlogger 2.1.3 rejects headers that are inconsistent with themselves, with another file of the
recording, or with the size of the file. These functions find the same errors.
"""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

MAGIC = b"%RLD"
LEAD_IN = struct.Struct("<4sHHIIQH6sqqIHH")
"""First part of the header; the fields are those of `LeadIn`."""
CHANNEL = struct.Struct("<IiHH16s")
"""A channel in the header: unit, scale, size in bytes, valid link, name."""
VERSIONS = (1, 2, 3, 4)
BLOCK_TIMES_BYTES = 32
BINARY = (3, 4)
"""Unit codes of binary channels."""


class LeadIn(NamedTuple):
    """First part of the header. The names occur in the error messages of rocketlogger."""

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
"""Fields that must be equal in all files of a recording."""


def lead_in(path: str) -> LeadIn | None:
    """Reads the first part of the header. Returns None if the file is no RLD file or is too
    short.
    """
    with open(path, "rb") as file:
        head = file.read(LEAD_IN.size)
    found = LeadIn(*LEAD_IN.unpack(head)) if len(head) == LEAD_IN.size else None
    return found if found is not None and found.magic == MAGIC else None


def contradiction(head: LeadIn) -> str | None:
    """Returns an error message if the number of samples contradicts the number of blocks."""
    if head.data_block_size == 0 or -(-head.sample_count // head.data_block_size) != head.data_block_count:
        return "inconsistent number of samples taken!"
    return None


def misplaced(head: LeadIn) -> str | None:
    """Returns an error message if the stored header length is not the size of the header."""
    length = LEAD_IN.size + head.comment_length + CHANNEL.size * (head.channel_binary_count + head.channel_analog_count)
    if length == head.header_length:
        return None
    return f"File position {length} does not match header size {head.header_length}"


def difference(first: LeadIn, other: LeadIn) -> str | None:
    """Returns the name of the first field that differs between two files of a recording. Returns
    None if all fields are equal.
    """
    value: Any = getattr
    return next((name for name in MATCHING if value(first, name) != value(other, name)), None)


def not_a_log(path: str) -> str | None:
    """Returns the error message of rocketlogger for a file with a wrong magic number. Returns None
    for an RLD file.
    """
    with open(path, "rb") as file:
        magic = int.from_bytes(file.read(4), "little")
    if magic == int.from_bytes(MAGIC, "little"):
        return None
    return f"Invalid RocketLogger data file, file magic mismatch 0x{magic:08x}. ({path})"


class Blocks(NamedTuple):
    """Number of blocks and rows in a file, according to its size."""

    complete: int
    """Number of complete blocks."""
    rows: int
    """Number of complete rows, including those of an incomplete block at the end."""
    expected: bool
    """True if the size of the file follows from its header."""


def blocks(path: str, head: LeadIn) -> Blocks:
    """Computes the number of blocks and rows from the size of a file."""
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
