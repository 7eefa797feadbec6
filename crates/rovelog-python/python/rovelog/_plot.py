"""A plot of signals, which notebooks show as a picture."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from rovelog._output import write_file


class Plot:
    """A plot of signals over time, which notebooks show as a picture.

    svg    text of the picture in SVG format
    """

    __slots__ = ("_sources", "svg")

    svg: str
    _sources: Iterable[str]

    def __init__(self, svg: str, sources: Iterable[str]) -> None:
        self.svg = svg
        self._sources = sources

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<rovelog.Plot, {len(self.svg)} characters of SVG>"

    def save(self, out: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the picture to the SVG file `out`. An existing file is replaced only if `force` is
        true.

        Raises WriteError if the file cannot be written.
        """

        def write(path: str) -> dict[str, Any]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg)
            return {}

        write_file(out, self._sources, force, write)
