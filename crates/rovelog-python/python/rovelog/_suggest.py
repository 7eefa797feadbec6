"""Suggestions of similar names for errors about unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from rovelog._errors import FieldNotFound, NameNotFound


def short_name(name: str) -> str:
    """Returns the name of a topic without the instance number 0: `battery_status/0` ->
    `battery_status`.

    Names that start with a slash are ROS names. They do not change, because `/imu/0` and `/imu` are
    different topics.
    """
    return name if name.startswith("/") else name.removesuffix("/0")


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Returns up to three of `names` that are similar to `name`. Names that contain `name` come
    first.
    """
    names = list(names)
    wanted = name.lower()
    # One or two letters occur in most names. So names that contain such a short text do not count
    # as similar.
    containing = [other for other in names if len(wanted) > 2 and wanted in other.lower()]
    # The comparison ignores the suffix `/0`, which would lower the score of every short name.
    alike = difflib.get_close_matches(name, [short_name(other) for other in names], 3, 0.5)
    found = containing + [other if other in names else f"{other}/0" for other in alike]
    return list(dict.fromkeys(found))[:3]


def did_you_mean(found: list[str], otherwise: str) -> str:
    """Returns the question `did you mean a or b?`. Returns `otherwise` if no name is similar."""
    return f"did you mean {' or '.join(found)}?" if found else otherwise


def field_not_found(topic: str, name: str, names: Iterable[str], path: str | None = None) -> FieldNotFound:
    """Returns the error for a field that the topic does not have. `names` are the names of its
    fields.
    """
    found = similar_names(name, names)
    what = f"topic {topic} has no field {name}"
    return FieldNotFound(what, suggestions=found, path=path, next=did_you_mean(found, "see the fields of the topic"))


class NamedValues(dict[str, Any]):
    """A dict whose error for a missing key suggests similar keys."""

    def __init__(self, values: dict[str, Any], what: str, path: str | None) -> None:
        super().__init__(values)
        self._described_as = (what, path)
        """Description of a value and path of the log, for the error message."""

    def __missing__(self, name: str) -> Any:
        what, path = self._described_as
        found = similar_names(str(name), self)
        raise NameNotFound(
            f"the log has no {what} {name}",
            suggestions=found,
            path=path,
            next=did_you_mean(found, "list() gives all names"),
        )

    # The pickle of a dict subclass calls the constructor without arguments by default.
    def __reduce__(self) -> tuple[Any, ...]:
        return (NamedValues, (dict(self), *self._described_as))
