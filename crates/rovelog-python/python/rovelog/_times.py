"""Conversion of times to nanoseconds on the log clock.

Strings have the same forms as the options `-S` and `-E` of the command line, except a time of day.
Integers are always times on the log clock, even if `open` was called with a `time_base`.

For example, for a log whose data runs from 5 s to 65 s on the log clock, `"+10s"` is 15 000 000 000
and `"-30s"` is 35 000 000 000.
"""

from __future__ import annotations

import datetime as dt
import numbers
import operator

from rovelog import _core
from rovelog._errors import NoUtcError, RovelogError
from rovelog._metadata import Info
from rovelog._types import Window

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

TimeLike = int | str | dt.datetime | dt.timedelta
"""A time in one of these forms:

- an integer: ns on the log clock
- `"+10s"`: after the start of the data
- `"-30s"`: before the end of the data
- `"112.5s"`: on the log clock
- an RFC 3339 string, or a datetime with a time zone
- a timedelta: after the start of the data
"""


def duration_ns(text: str) -> int:
    """Returns a duration such as `1m30s`, `1.5s` or `250ms` in ns, exactly.

    The units are ns, us, µs, ms, s, m, min and h.
    """
    nanos = _core.duration_ns(text)
    if nanos is None:
        raise ValueError(f"`{text}` is not a duration; write, for example, 10s, 250ms or 1m30s")
    return nanos


def span_ns(span: str | int | dt.timedelta) -> int:
    """Returns a duration in ns. `span` is a string such as `10ms`, an integer in ns, or a
    timedelta.
    """
    if isinstance(span, str):
        return duration_ns(span)
    if isinstance(span, dt.timedelta):
        return timedelta_ns(span)
    nanos = _integer(span)
    if nanos is None:
        raise TypeError(f"a duration must be an int, a str or a timedelta, not {type(span).__name__}")
    return nanos


def timedelta_ns(delta: dt.timedelta) -> int:
    """Returns a timedelta in ns, exactly. `total_seconds` is a float, which rounds long
    durations.
    """
    # A pandas.Timedelta is also a timedelta, and has nanoseconds.
    nanos: int = getattr(delta, "nanoseconds", 0)
    return (delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000 + nanos


def _integer(value: object) -> int | None:
    """Converts an integer, such as an `int` or a `numpy.int64`, to an `int`. Returns None for all
    other types.
    """
    # `bool` is a subclass of `int`, but True is not a time.
    return operator.index(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else None


def to_datetime(unix_ns: int) -> dt.datetime:
    """Returns a Unix time in UTC, floored to microseconds, the resolution of a datetime."""
    return EPOCH + dt.timedelta(microseconds=unix_ns // 1000)


def window(start: TimeLike | None, end: TimeLike | None, info: Info) -> Window:
    """Returns the window from `start` (inclusive) to `end` (exclusive); None means no limit."""
    return (_check_range(resolve(start, info)), _check_range(resolve(end, info, is_end=True)))


def _check_range(time: int | None) -> int | None:
    if time is not None and not -(2**63) <= time < 2**63:
        raise ValueError(f"{time} ns is not a valid time, because it does not fit into 64 bits")
    return time


def intersect(a: Window, b: Window) -> Window:
    """Returns the window of all times that are in both windows."""
    starts, ends = ([at for at in side if at is not None] for side in zip(a, b, strict=True))
    return max(starts, default=None), min(ends, default=None)


def resolve(time: TimeLike | None, info: Info, *, is_end: bool = False) -> int | None:
    """Returns a time in ns on the log clock.

    If the clock was set back during the log, a UTC time can occur twice. The start of a window is
    then the first occurrence and the end is the last one, so that the window contains both.
    """
    if time is None:
        return None
    integer = _integer(time)
    if integer is not None:
        return integer
    if isinstance(time, dt.timedelta):
        return _limit(info.data_start_ns, "start") + timedelta_ns(time)
    if isinstance(time, dt.datetime):
        return _from_datetime(time, info, is_end)
    if not isinstance(time, str):
        raise TypeError(f"a time must be an int, a str, a datetime or a timedelta, not {type(time).__name__}")
    text = time.strip()
    if text.startswith("+"):
        return _limit(info.data_start_ns, "start") + duration_ns(text[1:])
    if text.startswith("-"):
        return _limit(info.data_end_ns, "end") - duration_ns(text[1:])
    nanos = _core.duration_ns(text)
    if nanos is not None:
        return nanos
    if text.isdigit():
        return int(text)
    # The parser in Rust accepts nine decimals. `fromisoformat` would drop all decimals after the
    # sixth, but it accepts additional forms, such as a space between date and time.
    utc = _core.utc_ns(text)
    if utc is not None:
        return _to_log_clock(utc, info, is_end)
    try:
        # Before Python 3.11, `fromisoformat` rejects the suffix `Z`.
        return _from_datetime(dt.datetime.fromisoformat(text.replace("Z", "+00:00")), info, is_end)
    except ValueError as error:
        # NoUtcError is a subclass of ValueError. It does not mean that the text is invalid, so it
        # is raised again.
        if isinstance(error, NoUtcError):
            raise
        why = f"`{time}` is not a valid time; write +10s, -30s, 112.5s, 2026-05-20T12:01:05Z, or nanoseconds"
        raise ValueError(why) from error


def unix_ns(time: int | str | dt.datetime) -> int:
    """Converts a UTC time to nanoseconds of Unix time. `time` is an integer in Unix ns, an RFC 3339
    string, or a datetime with a time zone.
    """
    if isinstance(time, str):
        utc = _core.utc_ns(time.strip())
        if utc is not None:
            return utc
        try:
            time = dt.datetime.fromisoformat(time.strip().replace("Z", "+00:00"))
        except ValueError as error:
            raise ValueError(f"`{time}` is not a UTC time; write, for example, 2026-05-20T12:01:05Z") from error
    if isinstance(time, dt.datetime):
        if time.tzinfo is None:
            raise ValueError("a time without a time zone is not UTC; write, for example, 2026-05-20T12:01:05Z")
        return timedelta_ns(time - EPOCH)
    integer = _integer(time)
    if integer is None:
        raise TypeError(f"a UTC time must be an int, a str or a datetime, not {type(time).__name__}")
    return integer


def _limit(nanos: int | None, which: str) -> int:
    """Returns the start or the end of the data. Raises RovelogError if the log has no times."""
    if nanos is None:
        raise RovelogError(f"the log has no {which} time", next="give the time in nanoseconds on the log clock")
    return nanos


def _from_datetime(time: dt.datetime, info: Info, is_end: bool) -> int:
    if time.tzinfo is None:
        raise ValueError(f"{time} has no time zone; add tzinfo=timezone.utc")
    return _to_log_clock(timedelta_ns(time - EPOCH), info, is_end)


def unix_of(t_ns: int, info: Info) -> int | None:
    """Converts a time on the log clock to Unix ns. Returns None if the log has no UTC."""
    return None if info.utc_offset_ns is None else _core.unix_of(info.utc_offset_ns, info.utc_knots, t_ns)


def _to_log_clock(unix: int, info: Info, is_end: bool) -> int:
    if info.utc_offset_ns is None:
        raise NoUtcError(
            "the offset of the log clock from UTC is unknown",
            format=info.format,
            next="give times on the log clock, or times after the start such as +10s",
        )
    found = _core.log_time_of(info.utc_offset_ns, info.utc_knots, unix, is_end)
    if found is None:
        raise ValueError(f"{unix} ns is not a valid time, because it does not fit into 64 bits")
    return found
