"""Names that were meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def near(name: str, names: Iterable[str]) -> list[str]:
    """The three names that look most like `name`; those that contain it come first."""
    names = list(names)
    wanted = name.lower()
    inside = [other for other in names if len(wanted) > 2 and wanted in other.lower()]
    alike = difflib.get_close_matches(name, [other.removesuffix("/0") for other in names], 3, 0.5)
    found = inside + [other if other in names else f"{other}/0" for other in alike]
    return list(dict.fromkeys(found))[:3]


def hint(found: list[str], otherwise: str) -> str:
    """A next step in words."""
    return f"did you mean {' or '.join(found)}?" if found else otherwise
