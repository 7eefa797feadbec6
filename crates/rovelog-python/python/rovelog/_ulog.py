"""Data of ULogs."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._near import Values


class ParameterChange(NamedTuple):
    """A parameter change during the log.

    t_ns            log time of the change, ns on the log clock
    name            name of the parameter
    value           new value
    """

    t_ns: int | None
    name: str
    value: int | float


class Parameters(NamedTuple):
    """Parameters of a flight: name -> value, an int or a 32-bit float.

    initial         values at the start of the data
    changed         changes during the log, in file order
    system_defaults system-wide defaults, if they differ from the value
    setup_defaults  airframe defaults, if they differ from the value
    """

    initial: dict[str, int | float]
    changed: list[ParameterChange]
    system_defaults: dict[str, int | float]
    setup_defaults: dict[str, int | float]


class Dropout(NamedTuple):
    """A time range without records, as reported by the logger.

    t_ns            log time of the dropout, ns on the log clock
    duration_ms     duration, ms
    offset          first byte in the file
    """

    t_ns: int | None
    duration_ms: int
    offset: int


class Event(NamedTuple):
    """A notification of the autopilot.

    t_ns            time, ns on the log clock
    level           `warning`
    message         text
    name            name in the firmware; None if the log has no definitions
    """

    t_ns: int
    level: str
    message: str
    name: str | None


class ModeChange(NamedTuple):
    """The start of a flight mode.

    t_ns            time, ns on the log clock
    name            `Position`
    number          `vehicle_status.nav_state`
    """

    t_ns: int
    name: str
    number: int


class UlogExtras:
    """Data of ULogs; `log.ulog`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters. On the command line: `rovelog params FILE`."""
        initial, changed, system, setup = _core.ulog_parameters(self._reader)
        path = self._reader.path
        return Parameters(
            Values(initial, "parameter", path),
            [ParameterChange(*row) for row in changed],
            Values(system, "default of the parameter", path),
            Values(setup, "default of the parameter", path),
        )

    @cached_property
    def infos(self) -> dict[str, Any]:
        """Info messages: the last value of each key."""
        return Values(_core.ulog_infos(self._reader), "information", self._reader.path)

    @cached_property
    def dropouts(self) -> list[Dropout]:
        """Dropouts. On the command line: `rovelog ulog dropouts FILE`."""
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
