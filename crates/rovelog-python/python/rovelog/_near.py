"""Names that were meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from rovelog._errors import FieldNotFound, NameNotFound


def short(name: str) -> str:
    """The name of a topic without the instance 0. `/imu/0` of ROS is a path, not an instance of `/imu`."""
    return name if name.startswith("/") else name.removesuffix("/0")


def near(name: str, names: Iterable[str]) -> list[str]:
    """The three names that look most like `name`; those that contain it come first."""
    names = list(names)
    wanted = name.lower()
    inside = [other for other in names if len(wanted) > 2 and wanted in other.lower()]
    alike = difflib.get_close_matches(name, [short(other) for other in names], 3, 0.5)
    found = inside + [other if other in names else f"{other}/0" for other in alike]
    return list(dict.fromkeys(found))[:3]


def hint(found: list[str], otherwise: str) -> str:
    """A next step in words."""
    return f"did you mean {' or '.join(found)}?" if found else otherwise


def no_field(topic: str, name: str, names: Iterable[str], path: str | None = None) -> FieldNotFound:
    """The error for a field that a topic does not have."""
    found = near(name, names)
    what = f"topic {topic} has no field {name}"
    return FieldNotFound(what, suggestions=found, path=path, next=hint(found, "see the fields of the topic"))


class Values(dict[str, Any]):
    """Values by name, whose error for a missing name says what was meant."""

    def __init__(self, values: dict[str, Any], what: str, path: str | None) -> None:
        super().__init__(values)
        self._of = (what, path)

    def __missing__(self, name: str) -> Any:
        what, path = self._of
        found = near(str(name), self)
        raise NameNotFound(
            f"the log has no {what} {name}", suggestions=found, path=path, next=hint(found, "list() gives all names")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (Values, (dict(self), *self._of))
