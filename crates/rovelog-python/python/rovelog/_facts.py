"""What a log says about itself, as small immutable records."""

from __future__ import annotations

from typing import Any, NamedTuple


class Info(NamedTuple):
    """The summary of a log. Times are integers, nanoseconds of the log's own clock."""

    format: str
    """Id of the format: `ulog`."""
    format_name: str
    """Name of the format: `ULog`."""
    version: str
    """Version of the format."""
    dialect: str | None
    """What wrote it, where that is evident: `px4`."""
    size: int
    """Bytes of the file."""
    state: str
    """`complete`, `truncated` or `damaged`."""
    clock: str | None
    """What times count from: `unix`, `boot` or `log_start`."""
    start_ns: int | None
    """The beginning, ns of the log's clock."""
    end_ns: int | None
    """The end, ns of the log's clock."""
    utc_offset_ns: int | None
    """Unix time minus log time, ns; None where nothing in the log tells."""
    utc_rule: str | None
    """How that was found: `gps`."""
    utc_evidence: str | None
    """What it rests on, in words."""
    records: int
    """Records on all topics."""
    problems: int
    """How many things were noticed in the bytes."""
    lost_bytes: int
    """Bytes that could not be read."""
    lost: list[tuple[int, int]]
    """Their ranges."""
    details: dict[str, tuple[str | None, Any]]
    """What only this format has: key -> (line for people, value)."""

    @property
    def duration_ns(self) -> int | None:
        """From start to end, ns."""
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns


class Field(NamedTuple):
    """A field of a topic."""

    name: str
    """Its name."""
    type: str
    """Its type, in Arrow's words: `float32[4]`, `uint64`, `text`."""
    source_type: str
    """Its type as the log spells it: `float[4]`."""
    unit: str | None
    """Its unit, where the format gives one."""
    fields: list[Field] | None
    """The fields inside, where it has some."""


class Problem(NamedTuple):
    """Something that was noticed in the bytes of a log."""

    code: str
    """Stable, for machines: `E-ULOG-002`."""
    name: str
    """Stable, for people: `cut`."""
    severity: str
    """`note`, `repaired` or `data_lost`."""
    start: int
    """First byte it is about."""
    end: int
    """The byte behind the last."""
    message: str
    """The particulars."""
    meaning: str
    """What this kind of problem means."""

    @property
    def fix(self) -> str:
        """What can be done about it."""
        if self.severity == "data_lost":
            return "rovelog.recover(log, out) writes a sound log of all that is left"
        return "nothing: no data is missing"


class Text(NamedTuple):
    """A line of the log's console."""

    t_ns: int | None
    """When, ns of the log's clock."""
    level: int
    """0 emergency to 7 debug, as in syslog."""
    level_name: str
    """`warning`."""
    source: str | None
    """Who printed it."""
    text: str
    offset: int
    """Its first byte in the file."""


class Dropout(NamedTuple):
    """A stretch of time from which records are missing, as the logger itself reports it."""

    t_ns: int | None
    """The log's time at its place, ns."""
    duration_ms: int
    offset: int
    """Its first byte in the file."""


class ParameterChange(NamedTuple):
    """A parameter that was set while the log ran."""

    t_ns: int | None
    """The log's time at its place, ns."""
    name: str
    value: int | float


class ModeChange(NamedTuple):
    """A flight mode that holds from a time on."""

    t_ns: int
    """From when, ns of the log's clock."""
    name: str
    """`Position`."""
    number: int
    """`vehicle_status.nav_state`."""


class Event(NamedTuple):
    """What the autopilot told its users."""

    t_ns: int
    """When, ns of the log's clock."""
    level: str
    """`warning`."""
    message: str
    name: str | None
    """The name that the firmware gives it; None where the log carries no definitions."""
