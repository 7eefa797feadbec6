"""Descriptions of a bag in the format of rosbag: `str(bag)`, and the YAML of `rosbag info -y`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from rovelog._optional import require
from rovelog.compat.rosbag._index import ChunkHeader, Compression
from rovelog.compat.rosbag._tuples import TypesAndTopicsTuple


class BagFacts(Protocol):
    """The part of `Bag` that the descriptions need. An import of `bag` would be circular."""

    @property
    def filename(self) -> str | None: ...
    @property
    def version(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def _indexed(self) -> bool: ...
    @property
    def _chunk_headers(self) -> dict[int, ChunkHeader]: ...
    def get_message_count(self) -> int: ...
    def get_start_time(self) -> float: ...
    def get_end_time(self) -> float: ...
    def get_type_and_topic_info(self) -> TypesAndTopicsTuple: ...


class CompressionTuple(NamedTuple):
    """The most frequent compression of chunks, and the size of all chunks in bytes."""

    compression: str
    uncompressed: int
    compressed: int


def compression_of(headers: Iterable[ChunkHeader], otherwise: str) -> CompressionTuple:
    """Returns the compression of chunks. `otherwise` is the compression for a bag without
    chunks.
    """
    counts: dict[str, int] = {}
    uncompressed = compressed = 0
    for header in headers:
        counts[header.compression] = counts.get(header.compression, 0) + 1
        uncompressed += header.uncompressed_size
        compressed += header.compressed_size
    main = max(((count, name) for name, count in counts.items()), default=(0, otherwise))[1]
    return CompressionTuple(main, uncompressed, compressed)


def frequency_of(times: list[float]) -> float | None:
    """Returns the rate in Hz from the median period; None with fewer than two messages."""
    periods = sorted(after - before for before, after in zip(times, times[1:], strict=False))
    if not periods:
        return None
    middle = len(periods) // 2
    median = periods[middle] if len(periods) % 2 else (periods[middle - 1] + periods[middle]) / 2
    return 1.0 / median if median > 0.0 else None


def _scaled(value: float, units: list[str], by: float) -> str:
    """Returns the value with the first unit in which it is less than `by`."""
    for unit in units:
        if value < by:
            return f"{value:.1f} {unit}"
        value /= by
    return "-"


def _size(size: float) -> str:
    return _scaled(size / 1024, ["KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"], 1024)


def _frequency(frequency: float) -> str:
    return _scaled(frequency, ["Hz", "kHz", "MHz", "GHz", "THz", "PHz", "EHz", "ZHz", "YHz"], 1000)


def _clock(seconds: float) -> str:
    fraction = f"{seconds - int(seconds):.2f}"[1:]
    return time.strftime("%b %d %Y %H:%M:%S", time.localtime(seconds)) + fraction


def _duration(seconds: float) -> str:
    minutes, rest = int(seconds / 60), int(seconds % 60)
    if minutes >= 60:
        return f"{minutes // 60}hr {minutes % 60}:{rest:02d}s ({int(seconds)}s)"
    return f"{minutes}:{rest:02d}s ({int(seconds)}s)" if minutes else f"{seconds:.1f}s"


def _version(bag: BagFacts) -> str:
    version = f"{bag.version // 100}.{bag.version % 100}"
    return version if bag._indexed or bag.version >= 200 else f"{version} (unindexed)"


def _compressions(bag: BagFacts, duration: float) -> list[tuple[str, str]]:
    headers = list(bag._chunk_headers.values())
    if not headers:
        return [("compression", "none")]
    parts = []
    for compression in {header.compression for header in headers}:
        some = [header for header in headers if header.compression == compression]
        total = compression_of(some, compression)
        share = f"; {100.0 * total.compressed / total.uncompressed:.2f}%" if compression != Compression.NONE else ""
        parts.append((len(some), compression, f"{compression} [{len(some)}/{len(headers)} chunks{share}]"))
    rows = [("compression", ", ".join(text for _, _, text in sorted(parts, reverse=True)))]
    if all(header.compression == Compression.NONE for header in headers):
        return rows
    _, uncompressed, compressed = compression_of(headers, "")
    sizes = [_size(uncompressed), _size(compressed)]
    width = max(map(len, sizes))
    sizes = [f"{size:>{width}}" for size in sizes]
    if duration > 0:
        rates = [_size(uncompressed / duration), _size(compressed / duration)]
        width = max(map(len, rates))
        sizes = [f"{size} @ {rate:>{width}}/s" for size, rate in zip(sizes, rates, strict=True)]
        sizes[1] += f" ({100.0 * compressed / uncompressed:.2f}%)"
    return [*rows, ("uncompressed", sizes[0]), ("compressed", sizes[1])]


def text_of_bag(bag: BagFacts) -> str:
    """Returns the table that `rosbag info` prints."""
    rows = [("path", bag.filename)] if bag.filename else []
    rows.append(("version", _version(bag)))
    if not bag.get_message_count():
        return _table([*rows, ("size", _size(bag.size))])
    start, end = bag.get_start_time(), bag.get_end_time()
    rows += [
        ("duration", _duration(end - start)),
        ("start", f"{_clock(start)} ({start:.2f})"),
        ("end", f"{_clock(end)} ({end:.2f})"),
        ("size", _size(bag.size)),
        ("messages", str(bag.get_message_count())),
        *_compressions(bag, end - start),
    ]
    types, topics = bag.get_type_and_topic_info()
    width = max(map(len, types))
    lines = [f"{kind:<{width}} [{md5}]" for kind, md5 in types.items()]
    rows += zip(["types"] + [""] * len(lines), lines, strict=False)
    name_width = max(map(len, topics))
    count_width = max(len(str(topic.message_count)) for topic in topics.values())
    frequencies = {name: _frequency(topic.frequency) for name, topic in topics.items() if topic.frequency}
    frequency_width = max(map(len, frequencies.values()), default=0)
    lines = []
    for name, topic in topics.items():
        unit = "msgs" if topic.message_count > 1 else "msg "
        frequency = f" @ {frequencies[name]:>{frequency_width}}" if name in frequencies else " " * (3 + frequency_width)
        line = f"{name:<{name_width}}   {topic.message_count:>{count_width}} {unit}{frequency}"
        line += f" : {topic.msg_type:<{width}}"
        lines.append(line + (f" ({topic.connections} connections)" if topic.connections > 1 else ""))
    rows += zip(["topics"] + [""] * len(lines), lines, strict=False)
    return _table(rows)


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows) + 1
    lines = [f"{name + ':' if name else '':<{width}} {text}" for name, text in rows]
    return "\n".join(lines).rstrip()


def yaml_of_bag(bag: BagFacts) -> str:
    """Returns the YAML that `rosbag info -y` prints."""
    lines = [f"path: {bag.filename}"] if bag.filename else []
    lines.append(f"version: {_version(bag)}")
    if not bag.get_message_count():
        return "\n".join([*lines, f"size: {bag.size}", "indexed: False", ""])
    start, end = bag.get_start_time(), bag.get_end_time()
    lines += [f"duration: {end - start:.6f}", f"start: {start:.6f}", f"end: {end:.6f}", f"size: {bag.size}"]
    lines += [f"messages: {bag.get_message_count()}", f"indexed: {bag._indexed}"]
    compression, uncompressed, compressed = compression_of(bag._chunk_headers.values(), Compression.NONE)
    lines.append(f"compression: {compression}")
    if any(header.compression != Compression.NONE for header in bag._chunk_headers.values()):
        lines += [f"uncompressed: {uncompressed}", f"compressed: {compressed}"]
    types, topics = bag.get_type_and_topic_info()
    lines.append("types:")
    for kind, md5 in types.items():
        lines += [f"    - type: {kind}", f"      md5: {md5}"]
    lines.append("topics:")
    for name, topic in topics.items():
        lines += [f"    - topic: {name}", f"      type: {topic.msg_type}", f"      messages: {topic.message_count}"]
        if topic.connections > 1:
            lines.append(f"      connections: {topic.connections}")
        if topic.frequency is not None:
            lines.append(f"      frequency: {topic.frequency:.4f}")
    return "\n".join([*lines, ""])


def yaml_value(text: str, key: str) -> str | None:
    """Returns the value of a key such as `topics[0].messages` in the YAML; None if there is none.

    This function needs PyYAML.
    """
    value = require("yaml").safe_load(text)
    try:
        for name, index in re.findall(r"(\w+)|\[(\d+)\]", key):
            value = value[name] if name else value[int(index)]
    except (KeyError, IndexError, TypeError):
        print(f'Error getting key "{key}"', file=sys.stderr)
        return None
    return _shown(value)


def _shown(value: Any, depth: int = 0) -> str:
    indent = "  " * depth
    if isinstance(value, list):
        return "".join(f"{indent}- {_shown(item, depth + 1)}\n" for item in value)
    if isinstance(value, dict):
        return f"\n{indent}".join(f"{name}: {item}" for name, item in value.items())
    return f"{indent}{value}"
