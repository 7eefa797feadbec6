"""Messages of a ULog other than rows, with the API of pyulog. Sources: ULog file format, public names of pyulog."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

SIZES = {
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
    "uint64_t": 8,
    "float": 4,
    "double": 8,
    "bool": 1,
    "char": 1,
}
CODES = dict(zip(SIZES, "bBhHiIqQfd?c", strict=True))
# Truth values and chars are int8 in pyulog.
DTYPES = dict(zip(SIZES, ["<" + code for code in "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 i1 i1".split()], strict=True))
LEVELS = ("EMERGENCY", "ALERT", "CRITICAL", "ERROR", "WARNING", "NOTICE", "INFO", "DEBUG")
TYPE = re.compile(r"(\w+)(?:\[(\d+)\])?")


class Field(NamedTuple):
    """A flat field of a dataset."""

    field_name: str
    type_str: str

    @property
    def dtype(self) -> str:
        """Numpy's name of its type."""
        return DTYPES[self.type_str]


class MessageFormat(NamedTuple):
    """A format: its name, and its fields as (type, number of elements or 0, name)."""

    name: str
    fields: list[tuple[str, int, str]]

    @classmethod
    def parse(cls, text: str) -> MessageFormat:
        """From `name:float[4] q;uint64_t timestamp;`."""
        name, _, fields = text.partition(":")
        found = []
        for field in filter(None, fields.split(";")):
            kind, _, field_name = field.partition(" ")
            match = TYPE.fullmatch(kind)
            if match is None:
                raise KeyError(kind)
            found.append((match[1], int(match[2] or 0), field_name))
        return cls(name, found)


class _Text:
    log_level: int

    def log_level_str(self) -> str:
        """`WARNING`."""
        number = self.log_level - ord("0")
        return LEVELS[number] if 0 <= number < len(LEVELS) else "UNKNOWN"


class _Logging(NamedTuple):
    log_level: int
    timestamp: int
    message: str


class MessageLogging(_Logging, _Text):
    """A text: `log_level` as stored in the file (an ASCII digit), `timestamp` in us, `message`."""


class _LoggingTagged(NamedTuple):
    log_level: int
    tag: int
    timestamp: int
    message: str


class MessageLoggingTagged(_LoggingTagged, _Text):
    """A text with the number of what printed it."""


class MessageDropout(NamedTuple):
    """A dropout: `duration` in ms; `timestamp` in us, the largest of the rows before it."""

    duration: int
    timestamp: int


class Info(NamedTuple):
    """An information message or parameter."""

    type: str
    key: str
    value: Any


def flatten(name: str, formats: Mapping[str, MessageFormat], prefix: str = "") -> list[Field]:
    """The flat fields of a format: `q[0]`, `esc[3].esc_rpm`. KeyError where a type is not defined."""
    found = []
    for kind, elements, field in formats[name].fields:
        paths = [f"{prefix}{field}[{index}]" for index in range(elements)] if elements else [f"{prefix}{field}"]
        for path in paths:
            found += [Field(path, kind)] if kind in SIZES else flatten(kind, formats, f"{path}.")
    return found


class OtherMessages:
    """All messages but rows; `found` has (type, payload, whether it is in the data section, time of the previous rows)."""

    def __init__(self, found: list[tuple[int, bytes, bool, int]], errors: str) -> None:
        self._errors = errors
        self._by_kind: dict[str, list[tuple[bytes, bool, int]]] = {}
        for kind, payload, in_data, last in found:
            self._by_kind.setdefault(chr(kind), []).append((payload, in_data, last))
        if errors == "strict":
            # All texts are looked at, so that a bad one raises.
            _ = self.texts, self.tagged, self.infos, self.multi_infos

    def _of(self, kind: str) -> list[tuple[bytes, bool, int]]:
        return self._by_kind.get(kind, [])

    def _text(self, data: bytes) -> str:
        return data.decode("utf-8", self._errors)

    def _info(self, data: bytes) -> Info:
        key_end = 1 + data[0]
        kind, _, key = self._text(data[1:key_end]).partition(" ")
        value = data[key_end:]
        if kind.startswith("char["):
            return Info(kind, key, self._text(value))
        if kind in CODES:
            return Info(kind, key, struct.unpack("<" + CODES[kind], value)[0])
        return Info(kind, key, value)

    @cached_property
    def formats(self) -> dict[str, MessageFormat]:
        found = [MessageFormat.parse(self._text(payload)) for payload, _, _ in self._of("F")]
        return {format.name: format for format in found}

    @cached_property
    def all_infos(self) -> list[Info]:
        return [self._info(payload) for payload, _, _ in self._of("I")]

    @cached_property
    def infos(self) -> dict[str, Any]:
        return {info.key: info.value for info in self.all_infos}

    @cached_property
    def all_multi_infos(self) -> list[tuple[bool, Info]]:
        return [(payload[0] != 0, self._info(payload[1:])) for payload, _, _ in self._of("M")]

    @cached_property
    def multi_infos(self) -> dict[str, list[list[Any]]]:
        found: dict[str, list[list[Any]]] = {}
        for continued, info in self.all_multi_infos:
            lists = found.setdefault(info.key, [])
            if continued and lists:
                lists[-1].append(info.value)
            else:
                lists.append([info.value])
        return found

    @cached_property
    def parameters(self) -> dict[str, int | float]:
        found = [self._info(payload) for payload, in_data, _ in self._of("P") if not in_data]
        return {info.key: info.value for info in found}

    @cached_property
    def changed_parameters(self) -> list[tuple[int, str, int | float]]:
        found = [(last, self._info(payload)) for payload, in_data, last in self._of("P") if in_data]
        return [(last, info.key, info.value) for last, info in found]

    @cached_property
    def defaults(self) -> dict[int, dict[str, int | float]]:
        """By kind, as pyulog numbers them: the bit's value less one."""
        found: dict[int, dict[str, int | float]] = {}
        for payload, _, _ in self._of("Q"):
            info = self._info(payload[1:])
            for bit in range(8):
                if payload[0] & 1 << bit:
                    found.setdefault((1 << bit) - 1, {})[info.key] = info.value
        return found

    @cached_property
    def texts(self) -> list[MessageLogging]:
        return [
            MessageLogging(payload[0], int.from_bytes(payload[1:9], "little"), self._text(payload[9:]))
            for payload, _, _ in self._of("L")
        ]

    @cached_property
    def tagged(self) -> dict[int, list[MessageLoggingTagged]]:
        found: dict[int, list[MessageLoggingTagged]] = {}
        for payload, _, _ in self._of("C"):
            level, tag, time = struct.unpack_from("<BHQ", payload)
            found.setdefault(tag, []).append(MessageLoggingTagged(level, tag, time, self._text(payload[11:])))
        return found

    @cached_property
    def dropouts(self) -> list[MessageDropout]:
        return [MessageDropout(int.from_bytes(payload, "little"), last) for payload, _, last in self._of("O")]
