"""Conversion of times to nanoseconds on the log clock. The forms of texts are those of -S and -E on
the command line, without the time of day; integers are of the log clock, not of a time base.
"""

from __future__ import annotations

import datetime as dt

from rovelog import _core
from rovelog._errors import NoUtcError, RovelogError
from rovelog._facts import Info
from rovelog._types import Window

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

Moment = int | str | dt.datetime | dt.timedelta
"""A time: integer ns of the log's clock; `+10s` from the start of the data; `-30s` from its end; `112.5s` of the log's clock;
RFC 3339 or a datetime with a zone; a timedelta from the start of the data."""


def duration_ns(text: str) -> int:
    """`1m30s`, `1.5s`, `250ms`: exact ns. Units are ns, us, µs, ms, s, m, min and h."""
    nanos = _core.duration_ns(text)
    if nanos is None:
        raise ValueError(f"`{text}` is no duration: write 10s, 250ms, 1m30s")
    return nanos


def span_ns(span: str | int | dt.timedelta) -> int:
    """A length of time in ns: `10ms`, ns, or a timedelta."""
    if isinstance(span, str):
        return duration_ns(span)
    return of_timedelta(span) if isinstance(span, dt.timedelta) else span


def of_timedelta(delta: dt.timedelta) -> int:
    """Exact ns."""
    return (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def to_datetime(unix_ns: int) -> dt.datetime:
    """UTC, floored to microseconds, which is as fine as a datetime gets."""
    return EPOCH + dt.timedelta(microseconds=unix_ns // 1000)


def window(start: Moment | None, end: Moment | None, info: Info) -> Window:
    """From one time until before another; None leaves a side open."""
    return (_held(resolve(start, info)), _held(resolve(end, info, is_end=True)))


def _held(time: int | None) -> int | None:
    if time is not None and not -(2**63) <= time < 2**63:
        raise ValueError(f"{time} ns is no time of a log: 64 bits do not hold it")
    return time


def in_both(a: Window, b: Window) -> Window:
    """The window of the times that are in two windows."""
    starts, ends = ([at for at in side if at is not None] for side in zip(a, b, strict=True))
    return max(starts, default=None), min(ends, default=None)


def resolve(moment: Moment | None, info: Info, *, is_end: bool = False) -> int | None:
    """Ns of the log's clock. A UTC that occurs twice starts a window at its first time and ends it at its last."""
    if moment is None or (isinstance(moment, int) and not isinstance(moment, bool)):
        return moment
    if isinstance(moment, dt.timedelta):
        return _end(info.data_start_ns, "start") + of_timedelta(moment)
    if isinstance(moment, dt.datetime):
        return _from_utc(moment, info, is_end)
    if not isinstance(moment, str):
        raise TypeError(f"a time is an int, a str, a datetime or a timedelta, not {type(moment).__name__}")
    text = moment.strip()
    if text.startswith("+"):
        return _end(info.data_start_ns, "start") + duration_ns(text[1:])
    if text.startswith("-"):
        return _end(info.data_end_ns, "end") - duration_ns(text[1:])
    nanos = _core.duration_ns(text)
    if nanos is not None:
        return nanos
    if text.isdigit():
        return int(text)
    utc = _core.utc_ns(text)
    if utc is not None:
        return _log_time(utc, info, is_end)
    try:
        return _from_utc(dt.datetime.fromisoformat(text.replace("Z", "+00:00")), info, is_end)
    except ValueError as error:
        if isinstance(error, NoUtcError):
            raise
        why = f"`{moment}` is no time: write +10s, -30s, 112.5s, 2026-05-20T12:01:05Z, or nanoseconds"
        raise ValueError(why) from error


def unix_ns(moment: int | str | dt.datetime) -> int:
    """Unix ns of a time in UTC: ns, RFC 3339, or a datetime with a zone."""
    if isinstance(moment, str):
        utc = _core.utc_ns(moment.strip())
        if utc is not None:
            return utc
        try:
            moment = dt.datetime.fromisoformat(moment.strip().replace("Z", "+00:00"))
        except ValueError as error:
            raise ValueError(f"`{moment}` is no UTC: write 2026-05-20T12:01:05Z") from error
    if isinstance(moment, dt.datetime):
        if moment.tzinfo is None:
            raise ValueError("a time without a zone is not UTC: write 2026-05-20T12:01:05Z")
        return of_timedelta(moment - EPOCH)
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise TypeError(f"UTC is an int, a str or a datetime, not {type(moment).__name__}")
    return moment


def _end(nanos: int | None, which: str) -> int:
    if nanos is None:
        raise RovelogError(f"the log has no {which} in time", next="name the time in nanoseconds of the log's clock")
    return nanos


def _from_utc(moment: dt.datetime, info: Info, is_end: bool) -> int:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: add tzinfo=timezone.utc")
    return _log_time(of_timedelta(moment - EPOCH), info, is_end)


def unix_of(t_ns: int, info: Info) -> int | None:
    """Unix ns of a time on the log's clock; None without UTC."""
    return None if info.utc_offset_ns is None else _core.unix_of(info.utc_offset_ns, info.utc_knots, t_ns)


def _log_time(unix: int, info: Info, is_end: bool) -> int:
    if info.utc_offset_ns is None:
        raise NoUtcError(
            "this log does not tell the offset of its clock to UTC",
            format=info.format,
            next="name times of the log's own clock, or from its start: +10s",
        )
    found = _core.log_time_of(info.utc_offset_ns, info.utc_knots, unix, is_end)
    if found is None:
        raise ValueError(f"{unix} ns is no time of a log: 64 bits do not hold it")
    return found
