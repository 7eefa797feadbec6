"""What only a ULog has."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._near import Values


class ParameterChange(NamedTuple):
    """A parameter that was set while the log ran.

    t_ns            the log's time at its place, ns of the log's clock
    name            its name
    value           its new value
    """

    t_ns: int | None
    name: str
    value: int | float


class Parameters(NamedTuple):
    """The parameters of a flight: name -> value, an int or a float of 32 bits.

    initial         in force when the data began
    changed         set while the log ran, in file order
    system_defaults system-wide defaults, where they differ from the value
    setup_defaults  defaults of the airframe, where they differ from the value
    """

    initial: dict[str, int | float]
    changed: list[ParameterChange]
    system_defaults: dict[str, int | float]
    setup_defaults: dict[str, int | float]


class Dropout(NamedTuple):
    """A stretch of time from which records are missing, as the logger itself reports it.

    t_ns            the log's time at its place, ns of the log's clock
    duration_ms     how long it was, ms
    offset          its first byte in the file
    """

    t_ns: int | None
    duration_ms: int
    offset: int


class Event(NamedTuple):
    """What the autopilot told its users.

    t_ns            when, ns of the log's clock
    level           `warning`
    message         the words
    name            the name that the firmware gives it; None where the log carries no definitions
    """

    t_ns: int
    level: str
    message: str
    name: str | None


class ModeChange(NamedTuple):
    """A flight mode that holds from a time on.

    t_ns            from when, ns of the log's clock
    name            `Position`
    number          `vehicle_status.nav_state`
    """

    t_ns: int
    name: str
    number: int


class UlogExtras:
    """What only a ULog has; `log.ulog`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters. On the command line: `rovelog params FILE`."""
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
        """The information messages: the last value of each key."""
        return Values(_core.ulog_infos(self._reader), "information", self._reader.path)

    @cached_property
    def dropouts(self) -> list[Dropout]:
        """Stretches of time from which records are missing. On the command line: `rovelog ulog dropouts FILE`."""
        return [Dropout(*row) for row in _core.ulog_dropouts(self._reader)]

    @cached_property
    def events(self) -> list[Event]:
        """What the autopilot told its users, in the order of time. On the command line: `rovelog events FILE`."""
        return [Event(*row) for row in _core.ulog_events(self._reader)]

    @cached_property
    def modes(self) -> list[ModeChange]:
        """The flight modes, each with the time from which it holds. On the command line: `rovelog events FILE`."""
        return [ModeChange(*row) for row in _core.ulog_modes(self._reader)]
