"""Findings: what went wrong in a log."""

from __future__ import annotations

from typing import Literal, NamedTuple

from rovelog import _core


class Evidence(NamedTuple):
    """A value or a byte range that shows a problem.

    signal          name of the signal, such as `battery_status/0.voltage_v`, or of another source,
                    such as `dropout`
    time_ns         time of the value, ns on the log clock
    value           the value, in the unit of the signal
    limit           limit that the value exceeds or falls below
    bytes           start and end of a byte range in the file
    """

    signal: str
    time_ns: int | None
    value: float | None
    limit: float | None
    bytes: tuple[int, int] | None


class Finding(NamedTuple):
    """A problem of a flight or a recording.

    kind            cause, such as `battery-brownout`; docs/reference/findings.md lists all kinds
    severity        `high`, `medium` or `low`
    start_ns        start of the problem, ns on the log clock
    end_ns          end of the problem; usually the time of the last row that shows it
    sentence        description with numbers and units
    evidence        values and byte ranges; the first is the most important
    """

    kind: str
    severity: Literal["high", "medium", "low"]
    start_ns: int
    end_ns: int
    sentence: str
    evidence: list[Evidence]


def findings(reader: _core.Reader) -> list[Finding]:
    """Returns the findings of a log, sorted by their start."""
    return [Finding(*row[:5], [Evidence(*values) for values in row[5]]) for row in _core.log_findings(reader)]  # type: ignore[arg-type]
