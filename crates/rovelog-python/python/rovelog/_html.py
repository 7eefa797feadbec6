"""Logs and topics as notebooks show them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rovelog._facts import Field
    from rovelog._log import Log, Topic

SHOWN = 50
"""Topics and fields that are shown; the rest is counted."""
POINTS = 160
"""Points of a sparkline."""


def log(log: Log) -> str:
    """What `rovelog info` shows."""
    info = log.info
    start = log.start
    rows = [
        ("file", log.name),
        ("format", f"{info.format_name} {info.version}" + (f" ({info.dialect})" if info.dialect else "")),
        ("size", f"{info.size:,} bytes"),
        ("state", info.state),
        ("clock", f"{info.clock}" + (f"; UTC by {info.utc_rule}" if info.utc_rule else "")),
        ("start", start.isoformat() if start else f"{info.start_ns} ns"),
        ("duration", str(log.duration)),
        ("records", f"{info.records:,} on {len(log.topics)} topics"),
        *((key, text) for key, (text, _) in info.details.items() if text),
        ("problems", str(info.problems) if info.problems else "none"),
    ]
    facts = "".join(f"<tr><th>{escape(key)}</th><td>{escape(text)}</td></tr>" for key, text in rows)
    topics = [topic for topic in log.topics.values() if topic.count]
    lines = "".join(
        f"<tr><td>{escape(topic.name)}</td><td>{topic.count}</td>"
        f"<td>{'' if topic.rate_hz is None else f'{topic.rate_hz:.1f}'}</td></tr>"
        for topic in topics[:SHOWN]
    )
    more = f"<p>and {len(topics) - SHOWN} more: log.topics</p>" if len(topics) > SHOWN else ""
    return (
        f"<table>{facts}</table><table><thead><tr><th>topic</th><th>records</th><th>Hz</th></tr></thead>"
        f"<tbody>{lines}</tbody></table>{more}"
    )


def topic(topic: Topic) -> str:
    """Its fields, and its first number over time."""
    rate = "" if topic.rate_hz is None else f", {topic.rate_hz:.1f} Hz"
    head = f"<b>{escape(topic.name)}</b>: {topic.count} records{rate}"
    lines = "".join(
        f"<tr><td>{escape(field.name)}</td><td>{escape(field.type)}</td><td>{escape(field.unit or '')}</td></tr>"
        for field in topic.fields[:SHOWN]
    )
    more = f"<p>and {len(topic.fields) - SHOWN} more: topic.fields</p>" if len(topic.fields) > SHOWN else ""
    table = f"<table><thead><tr><th>field</th><th>type</th><th>unit</th></tr></thead><tbody>{lines}</tbody></table>"
    return f"{head}{_sparkline(topic)}{table}{more}"


def _first_number(fields: list[Field]) -> str | None:
    """The first field that is a measured number: clocks of the device say little."""
    for field in fields:
        if field.type.startswith("float"):
            return f"{field.name}[0]" if "[" in field.type and not field.type.endswith("[0]") else field.name
    return None


def _sparkline(topic: Topic) -> str:
    name = _first_number(topic.fields)
    if name is None or topic.count < 2:
        return ""
    try:
        import numpy as np
    except ImportError:
        return ""
    values = np.asarray(topic.select(name).numpy()[name], dtype=float)
    values = values[np.isfinite(values)]
    values = values[:: max(1, len(values) // POINTS)]
    if len(values) < 2:
        return ""
    low, high = float(values.min()), float(values.max())
    span = (high - low) or 1.0
    points = " ".join(f"{i},{29 - 28 * (value - low) / span:.1f}" for i, value in enumerate(values))
    return (
        f'<div><svg width="{len(values)}" height="30"><polyline fill="none" stroke="currentColor" points="{points}"/>'
        f"</svg> {escape(name)}: {low:.6g} to {high:.6g}</div>"
    )
