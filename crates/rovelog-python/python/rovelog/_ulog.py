"""Data of ULogs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._suggest import NamedValues


class ParameterChange(NamedTuple):
    """A change of a parameter during the log.

    t_ns            time of the change, ns on the log clock
    name            name of the parameter
    value           new value
    """

    t_ns: int | None
    name: str
    value: int | float


class Parameters(NamedTuple):
    """Parameters of a flight. A value is an int or a 32-bit float.

    initial         name -> value at the start of the data
    changed         changes during the log, in file order
    system_defaults name -> system-wide default, for parameters whose value differs from it
    setup_defaults  name -> default of the airframe, for parameters whose value differs from it
    """

    initial: dict[str, int | float]
    changed: list[ParameterChange]
    system_defaults: dict[str, int | float]
    setup_defaults: dict[str, int | float]


class Dropout(NamedTuple):
    """A time range without records, as reported by the logger.

    t_ns            time of the dropout, ns on the log clock
    duration_ms     duration in ms
    offset          offset of the first byte of the dropout message in the file
    """

    t_ns: int | None
    duration_ms: int
    offset: int


class Event(NamedTuple):
    """A notification of the autopilot.

    t_ns            time of the notification, ns on the log clock
    level           severity: `warning`
    message         text of the notification
    name            name of the event in the firmware; None if the log contains no event definitions
    """

    t_ns: int
    level: str
    message: str
    name: str | None


class ModeChange(NamedTuple):
    """The start of a flight mode.

    t_ns            time at which the mode starts, ns on the log clock
    name            name of the mode: `Position`
    number          number of the mode, as in `vehicle_status.nav_state`
    """

    t_ns: int
    name: str
    number: int


class UlogExtras:
    """Data that only ULogs have; the type of `log.ulog`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters at the start, their changes, and defaults. On the command line: `rovelog
        params FILE`.
        """
        initial, changed, system, setup = _core.ulog_parameters(self._reader)
        path = self._reader.path
        return Parameters(
            NamedValues(initial, "parameter", path),
            [ParameterChange(*row) for row in changed],
            NamedValues(system, "default of the parameter", path),
            NamedValues(setup, "default of the parameter", path),
        )

    @cached_property
    def infos(self) -> dict[str, Any]:
        """Info messages: key -> last value."""
        return NamedValues(_core.ulog_infos(self._reader), "information", self._reader.path)

    @cached_property
    def dropouts(self) -> list[Dropout]:
        """Dropouts, in file order. On the command line: `rovelog ulog dropouts FILE`."""
        return [Dropout(*row) for row in _core.ulog_dropouts(self._reader)]

    @cached_property
    def events(self) -> list[Event]:
        """Notifications of the autopilot, in time order. On the command line: `rovelog events
        FILE`.
        """
        return [Event(*row) for row in _core.ulog_events(self._reader)]

    @cached_property
    def modes(self) -> list[ModeChange]:
        """Flight modes with their start times. On the command line: `rovelog events FILE`."""
        return [ModeChange(*row) for row in _core.ulog_modes(self._reader)]
