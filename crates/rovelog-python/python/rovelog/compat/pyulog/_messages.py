"""Messages of a ULog that are not rows, with the API of pyulog.

The layouts are those of the ULog file format specification.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np

TYPES: dict[str, tuple[str, int, Any]] = {
    "int8_t": ("b", 1, np.int8),
    "uint8_t": ("B", 1, np.uint8),
    "int16_t": ("h", 2, np.int16),
    "uint16_t": ("H", 2, np.uint16),
    "int32_t": ("i", 4, np.int32),
    "uint32_t": ("I", 4, np.uint32),
    "int64_t": ("q", 8, np.int64),
    "uint64_t": ("Q", 8, np.uint64),
    "float": ("f", 4, np.float32),
    "double": ("d", 8, np.float64),
    "bool": ("?", 1, np.int8),
    "char": ("c", 1, np.int8),
}
"""Type -> code of `struct`, size in bytes, numpy type. Booleans and characters are int8 in
pyulog.
"""
LEVELS = ("EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG")
TYPE = re.compile(r"([^\[\]]+)(?:\[(\d+)\])?")
"""A type with an optional array length: `float[4]`."""
T = TypeVar("T")


class _Comparable:
    """Base class of messages, which are equal if they have the same values."""

    _compared: tuple[str, ...] = ()
    """Names of the attributes that are compared."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Comparable) or self._compared != other._compared:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._compared)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._compared)
        return f"{type(self).__name__}({values})"


class FieldData(_Comparable):
    """A flat field of a dataset."""

    _compared = ("field_name", "type_str")

    def __init__(self, field_name: str, type_str: str) -> None:
        self.field_name = field_name
        self.type_str = type_str


class MessageFormat(_Comparable):
    """A format: its name, and its fields as (type, number of elements or 0, name)."""

    _compared = ("name", "fields")

    def __init__(self, data: bytes, header: object = None, errors: str = "ignore") -> None:
        """Parses a payload such as `name:float[4] q;uint64_t timestamp;`."""
        self.name: str
        self.name, _, fields = data.decode("utf-8", errors).rstrip("\0").partition(":")
        self.name = self.name.strip()
        self.fields: list[tuple[str, int, str]] = []
        for field in filter(None, map(str.strip, fields.split(";"))):
            kind, _, field_name = re.sub(r"\s+", " ", field, count=1).partition(" ")
            match = TYPE.fullmatch(kind)
            if match is None:
                raise ValueError(f"`{kind}` is not a type")
            self.fields.append((match[1], int(match[2] or 0), field_name))


class _Text(_Comparable):
    log_level: int
    timestamp: int
    message: str

    def _read(self, log_level: int, timestamp: int, message: bytes, errors: str) -> None:
        self.log_level, self.timestamp, self.message = log_level, timestamp, message.decode("utf-8", errors)

    def log_level_str(self) -> str:
        """Returns the name of the level: `WARNING`."""
        number = self.log_level - ord("0")
        return LEVELS[number] if 0 <= number < len(LEVELS) else "UNKNOWN"


class MessageLogging(_Text):
    """A console message. `log_level` is an ASCII digit as in the file, and `timestamp` is in us."""

    _compared = ("log_level", "timestamp", "message")

    def __init__(self, data: bytes, header: object = None, errors: str = "ignore") -> None:
        log_level, timestamp = struct.unpack_from("<BQ", data)
        self._read(log_level, timestamp, data[9:], errors)


class MessageLoggingTagged(_Text):
    """A console message with `tag`, the number of the process that printed it."""

    _compared = ("log_level", "tag", "timestamp", "message")
    tag: int

    def __init__(self, data: bytes, header: object = None, errors: str = "ignore") -> None:
        log_level, self.tag, timestamp = struct.unpack_from("<BHQ", data)
        self._read(log_level, timestamp, data[11:], errors)


class MessageDropout(_Comparable):
    """A dropout with `duration` in ms. `timestamp` is the largest timestamp of the rows before it,
    in us.
    """

    _compared = ("duration", "timestamp")

    def __init__(self, data: bytes, header: object, timestamp: int) -> None:
        self.duration: int = int.from_bytes(data, "little")
        self.timestamp = timestamp


class MessageInfo:
    """An info message or a parameter: `type`, `key`, `value`."""

    def __init__(
        self, data: bytes, header: object = None, is_info_multiple: bool = False, errors: str = "ignore"
    ) -> None:
        if is_info_multiple:
            self.is_continued = data[0]
            data = data[1:]
        key_end = 1 + data[0]
        self.type, _, self.key = data[1:key_end].decode("utf-8", errors).partition(" ")
        value = data[key_end:]
        self.value: Any = value
        if self.type.startswith("char["):
            self.value = value.decode("utf-8", errors)
        elif self.type in TYPES:
            (self.value,) = struct.unpack("<" + TYPES[self.type][0], value)


def flatten(name: str, formats: Mapping[str, MessageFormat], prefix: str = "") -> list[FieldData]:
    """Returns the flat fields of a format, such as `q[0]` and `esc[3].esc_rpm`.

    Raises KeyError for an undefined type.
    """
    found = []
    for kind, elements, field in formats[name].fields:
        paths = [f"{prefix}{field}[{index}]" for index in range(elements)] if elements else [f"{prefix}{field}"]
        for path in paths:
            found += [FieldData(path, kind)] if kind in TYPES else flatten(kind, formats, f"{path}.")
    return found


class OtherMessages:
    """All messages of a log that are not rows.

    `found` contains (type, payload, True if in the data section, largest timestamp of the rows
    before).

    As in pyulog, a message that cannot be parsed is skipped.
    """

    def __init__(self, found: list[tuple[int, bytes, bool, int]], errors: str) -> None:
        self._errors = errors
        self._skipped = False
        self._by_kind: dict[str, list[tuple[bytes, bool, int]]] = {}
        for kind, payload, in_data, last in found:
            self._by_kind.setdefault(chr(kind), []).append((payload, in_data, last))
        if errors == "strict":
            # Decodes all texts when the log is opened, so that a text that is not UTF-8 raises an
            # exception then.
            _ = self.texts, self.tagged, self._infos, self._multi_infos

    def _of(self, kind: str) -> list[tuple[bytes, bool, int]]:
        return self._by_kind.get(kind, [])

    def _parsed(self, kind: str, parse: Callable[[bytes], T]) -> list[tuple[T, bool, int]]:
        """Parses the messages of a kind. Returns (message, True if in the data section, largest
        timestamp of the rows before).
        """
        parsed = []
        for payload, in_data, last in self._of(kind):
            try:
                parsed.append((parse(payload), in_data, last))
            except UnicodeDecodeError:
                raise
            except (ValueError, struct.error):
                self._skipped = True
        return parsed

    @property
    def skipped(self) -> bool:
        """True if a message could not be parsed."""
        _ = self.formats, self._infos, self._multi_infos, self._parameters, self._defaults
        return self._skipped

    def _info(self, data: bytes) -> MessageInfo:
        return MessageInfo(data, errors=self._errors)

    @cached_property
    def formats(self) -> dict[str, MessageFormat]:
        found = self._parsed("F", lambda payload: MessageFormat(payload, errors=self._errors))
        return {format.name: format for format, _, _ in found}

    @cached_property
    def _infos(self) -> list[MessageInfo]:
        return [info for info, _, _ in self._parsed("I", self._info)]

    @property
    def infos(self) -> dict[str, Any]:
        return {info.key: info.value for info in self._infos}

    @property
    def info_types(self) -> dict[str, str]:
        return {info.key: info.type for info in self._infos}

    @cached_property
    def _multi_infos(self) -> list[MessageInfo]:
        found = self._parsed("M", lambda payload: MessageInfo(payload, None, True, self._errors))
        return [info for info, _, _ in found]

    @property
    def multi_infos(self) -> dict[str, list[list[Any]]]:
        found: dict[str, list[list[Any]]] = {}
        for info in self._multi_infos:
            lists = found.setdefault(info.key, [])
            if info.is_continued and lists:
                lists[-1].append(info.value)
            else:
                lists.append([info.value])
        return found

    @property
    def multi_info_types(self) -> dict[str, str]:
        return {info.key: info.type for info in reversed(self._multi_infos)}

    @cached_property
    def _parameters(self) -> list[tuple[MessageInfo, bool, int]]:
        return self._parsed("P", self._info)

    @property
    def parameters(self) -> dict[str, int | float]:
        return {info.key: info.value for info, in_data, _ in self._parameters if not in_data}

    @property
    def changed_parameters(self) -> list[tuple[int, str, int | float]]:
        return [(last, info.key, info.value) for info, in_data, last in self._parameters if in_data]

    @cached_property
    def _defaults(self) -> list[tuple[int, MessageInfo]]:
        found = self._parsed("Q", lambda payload: (payload[0], self._info(payload[1:])))
        return [default for default, _, _ in found]

    @property
    def defaults(self) -> dict[int, dict[str, int | float]]:
        """Dict from the kind of a default to the default values. As in pyulog, the number of a kind
        is the value of its bit minus one.
        """
        found: dict[int, dict[str, int | float]] = {}
        for kinds, info in self._defaults:
            for bit in range(8):
                if kinds & 1 << bit:
                    found.setdefault((1 << bit) - 1, {})[info.key] = info.value
        return found

    @cached_property
    def texts(self) -> list[MessageLogging]:
        return [MessageLogging(payload, errors=self._errors) for payload, _, _ in self._of("L")]

    @cached_property
    def tagged(self) -> dict[int, list[MessageLoggingTagged]]:
        found: dict[int, list[MessageLoggingTagged]] = {}
        for payload, _, _ in self._of("C"):
            text = MessageLoggingTagged(payload, errors=self._errors)
            found.setdefault(text.tag, []).append(text)
        return found

    @property
    def dropouts(self) -> list[MessageDropout]:
        return [MessageDropout(payload, None, last) for payload, _, last in self._of("O")]

    @property
    def syncs(self) -> int:
        return sum(in_data for _, in_data, _ in self._of("S"))
