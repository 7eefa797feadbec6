"""HTML views of logs and topics for notebooks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from html import escape
from typing import Any

from rovelog._metadata import Field, Info
from rovelog._types import TopicFacts

MAX_ROWS = 50
"""Maximum number of topics or fields in a table. The view states how many more there are."""
SPARKLINE_POINTS = 160
"""Approximate number of points in a sparkline."""


def log(name: str, info: Info, start: dt.datetime | None, duration: dt.timedelta | None, topics: list[TopicFacts]) -> str:
    """Returns the HTML view of a log. It contains the facts that `rovelog info` prints, and a table
    of topics.
    """
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
        for topic in recorded[:MAX_ROWS]
    )
    more = f"<p>and {len(recorded) - MAX_ROWS} more: log.topics</p>" if len(recorded) > MAX_ROWS else ""
    return (
        f"<table>{facts}</table><table><thead><tr><th>topic</th><th>records</th><th>Hz</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>{more}"
    )


def topic(facts: TopicFacts, fields: list[Field], values_of: Callable[[str], Any]) -> str:
    """Returns the HTML view of a topic. It contains a table of fields, and a sparkline of the first
    floating-point field.
    """
    rate = _hertz(facts)
    head = f"<b>{escape(facts['name'])}</b>: {facts['count']} records{f', {rate} Hz' if rate else ''}"
    lines = "".join(
        f"<tr><td>{escape(field.name)}</td><td>{escape(field.type)}</td><td>{escape(field.unit or '')}</td></tr>"
        for field in fields[:MAX_ROWS]
    )
    more = f"<p>and {len(fields) - MAX_ROWS} more: topic.fields</p>" if len(fields) > MAX_ROWS else ""
    table = f"<table><thead><tr><th>field</th><th>type</th><th>unit</th></tr></thead><tbody>{lines}</tbody></table>"
    field = _first_float(fields)
    curve = "" if field is None or facts["count"] < 2 else _sparkline(field, values_of)
    return f"{head}{curve}{table}{more}"


def _hertz(topic: TopicFacts) -> str:
    return "" if topic["rate_hz"] is None else f"{topic['rate_hz']:.1f}"


def _first_float(fields: list[Field]) -> str | None:
    """Returns the first floating-point field. Integer fields are not used, because they are often
    counters or times, which look like straight lines.
    """
    for field in fields:
        if field.type.startswith("float"):
            return f"{field.name}[0]" if "[" in field.type and not field.type.endswith("[0]") else field.name
    return None


def _sparkline(field: str, values_of: Callable[[str], Any]) -> str:
    """Returns a sparkline as SVG. Returns an empty string if numpy is not installed, or if there
    are fewer than two finite values.
    """
    try:
        import numpy as np
    except ImportError:
        return ""
    values = np.asarray(values_of(field), dtype=float)
    values = values[np.isfinite(values)]
    values = values[:: max(1, len(values) // SPARKLINE_POINTS)]
    if len(values) < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    # A constant signal has no span. Any positive value avoids a division by zero.
    span = (high - low) or 1.0
    points = " ".join(f"{i},{29 - 28 * (value - low) / span:.1f}" for i, value in enumerate(values))
    return (
        f'<div><svg width="{len(values)}" height="30"><polyline fill="none" stroke="currentColor" points="{points}"/>'
        f"</svg> {escape(field)}: {low:.6g} to {high:.6g}</div>"
    )
