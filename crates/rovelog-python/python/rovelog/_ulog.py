"""What only a ULog has."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from rovelog import _core
from rovelog._facts import Dropout, Event, ModeChange, ParameterChange


class Parameters(NamedTuple):
    """The parameters of a flight; a value is an int, or a float of 32 bits."""

    initial: dict[str, int | float]
    """In force when the data began."""
    changed: list[ParameterChange]
    """Set while the log ran, in file order."""
    system_defaults: dict[str, int | float]
    """System-wide defaults, where they differ from the value."""
    setup_defaults: dict[str, int | float]
    """Defaults of the airframe, where they differ from the value."""


class UlogExtras:
    """What only a ULog has; `log.ulog`."""

    def __init__(self, reader: _core.Reader) -> None:
        self._reader = reader

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters. On the command line: `rovelog params FILE`."""
        facts = _core.ulog_parameters(self._reader)
        changed = [ParameterChange(*row) for row in facts["changed"]]
        return Parameters(facts["initial"], changed, facts["system_defaults"], facts["setup_defaults"])

    @cached_property
    def infos(self) -> dict[str, Any]:
        """The information messages: the last value of each key."""
        return _core.ulog_infos(self._reader)

    @cached_property
    def dropouts(self) -> list[Dropout]:
        """Stretches of time from which records are missing, as the logger reports them."""
        return [Dropout(*row) for row in _core.ulog_dropouts(self._reader)]

    @cached_property
    def events(self) -> list[Event]:
        """What the autopilot told its users, in the order of time. On the command line: `rovelog events FILE`."""
        return [Event(*row) for row in _core.ulog_events(self._reader)]

    @cached_property
    def modes(self) -> list[ModeChange]:
        """The flight modes, each with the time from which it holds."""
        return [ModeChange(*row) for row in _core.ulog_modes(self._reader)]
