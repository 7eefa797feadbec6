"""Logs and topics as notebooks show them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from html import escape
from typing import Any

from rovelog._facts import Field, Info
from rovelog._types import TopicFacts

SHOWN = 50
"""Topics and fields that are shown; the rest is counted."""
POINTS = 160
"""Points of a sparkline."""


def log(name: str, info: Info, start: dt.datetime | None, duration: dt.timedelta | None, topics: list[TopicFacts]) -> str:
    """What `rovelog info` shows."""
    rows = [
        ("file", name),
        ("format", f"{info.format_name} {info.version}" + (f" ({info.dialect})" if info.dialect else "")),
        ("size", f"{info.size:,} bytes"),
        ("state", info.state),
        ("clock", f"{info.clock}" + (f"; UTC by {info.utc_rule}" if info.utc_rule else "")),
        ("start", start.isoformat() if start else f"{info.start_ns} ns"),
        ("duration", str(duration)),
        ("records", f"{sum(topic['count'] for topic in topics):,} on {len(topics)} topics"),
        *((key, text) for key, (text, _) in info.details.items() if text),
        ("problems", str(info.problems) if info.problems else "none"),
    ]
    facts = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows)
    recorded = [topic for topic in topics if topic["count"]]
    lines = "".join(
        f"<tr><td>{escape(topic['name'])}</td><td>{topic['count']}</td>"
        f"<td>{_hertz(topic)}</td></tr>"
        for topic in recorded[:SHOWN]
    )
    more = f"<p>and {len(recorded) - SHOWN} more: log.topics</p>" if len(recorded) > SHOWN else ""
    return (
        f"<table>{facts}</table><table><thead><tr><th>topic</th><th>records</th><th>Hz</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>{more}"
    )


def topic(facts: TopicFacts, fields: list[Field], values_of: Callable[[str], Any]) -> str:
    """Its fields, and its first number over time."""
    rate = _hertz(facts)
    head = f"<b>{escape(facts['name'])}</b>: {facts['count']} records{f', {rate} Hz' if rate else ''}"
    lines = "".join(
        f"<tr><td>{escape(field.name)}</td><td>{escape(field.type)}</td><td>{escape(field.unit or '')}</td></tr>"
        for field in fields[:SHOWN]
    )
    more = f"<p>and {len(fields) - SHOWN} more: topic.fields</p>" if len(fields) > SHOWN else ""
    table = f"<table><thead><tr><th>field</th><th>type</th><th>unit</th></tr></thead><tbody>{lines}</tbody></table>"
    number = _first_number(fields)
    curve = "" if number is None or facts["count"] < 2 else _sparkline(number, values_of)
    return f"{head}{curve}{table}{more}"


def _hertz(topic: TopicFacts) -> str:
    return "" if topic["rate_hz"] is None else f"{topic['rate_hz']:.1f}"


def _first_number(fields: list[Field]) -> str | None:
    """The first field that is a measured number: clocks of the device say little."""
    for field in fields:
        if field.type.startswith("float"):
            return f"{field.name}[0]" if "[" in field.type and not field.type.endswith("[0]") else field.name
    return None


def _sparkline(field: str, values_of: Callable[[str], Any]) -> str:
    try:
        import numpy as np
    except ImportError:
        return ""
    values = np.asarray(values_of(field), dtype=float)
    values = values[np.isfinite(values)]
    values = values[:: max(1, len(values) // POINTS)]
    if len(values) < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    span = (high - low) or 1.0
    points = " ".join(f"{i},{29 - 28 * (value - low) / span:.1f}" for i, value in enumerate(values))
    return (
        f'<div><svg width="{len(values)}" height="30"><polyline fill="none" stroke="currentColor" points="{points}"/>'
        f"</svg> {escape(field)}: {low:.6g} to {high:.6g}</div>"
    )
