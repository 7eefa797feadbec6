"""What only a VEL log has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._facts import Info
from rovelog._table import Table
from rovelog._times import Moment


class Image(NamedTuple):
    """An image as it lies in the log.

    t_ns            when, ns of the log's clock
    data            its bytes: a JPEG, as a rule; see `encoding`
    name            its topic, which ends with the number of the camera: `ImageM/0`
    encoding        `jpeg`, `mono8`, `yuyv`, `rgb8` (whether red or blue comes first is not known) or `unknown`
    width           pixels, as the message says
    height          pixels, as the message says
    offset          the first byte of its message in the file
    """

    t_ns: int
    data: bytes
    name: str
    encoding: str
    width: int
    height: int
    offset: int


class VelExtras:
    """What only a VEL log has; `log.vel`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    def images(self, start: Moment | None = None, end: Moment | None = None) -> Iterator[Image]:
        """The images of all cameras, in file order, one in memory at a time. `start` and `end` as `Topic.between`.

        On the command line: `rovelog extract FILE -o DIR`.
        """
        return self._images(_core.vel_images(self._reader, _times.window(start, end, self._info)))

    def _images(self, places: list[tuple[int, str]]) -> Iterator[Image]:
        for offset, name in places:
            found = _core.vel_image(self._reader, offset)
            if found is not None:
                nanos, data, encoding, width, height = found
                yield Image(nanos, data, name, encoding, width, height, offset)

    def revolutions(
        self,
        *fields: str,
        start: Moment | None = None,
        end: Moment | None = None,
        calibration: str | os.PathLike[str] | None = None,
    ) -> Iterator[Table]:
        """The points of the Velodyne, a table for each revolution that begins from `start` until before `end`.

        Columns, a row for each point: `t_ns` (int64, ns of the log's clock), `x` forward, `y` left, `z` up (float32, m, the
        sensor's frame), `intensity` (0 to 255), `ring` (0 the lowest), `time` (float32, s from the start of the revolution),
        `laser`, `azimuth` (0.01 degrees, clockwise), `distance` (float32, m), `return` (1 strongest, 2 last, 3 both),
        `revolution` (from 0). `fields` leaves out all but `t_ns` and these. `calibration` is the file of an HDL-64E: db.xml,
        or the YAML or JSON of the ROS driver; without it, that in the log's status bytes is taken.

        Raises UnreadableError where the packets do not tell the model, or an HDL-64E has no calibration.
        On the command line: `rovelog extract FILE -o DIR`.
        """
        window = _times.window(start, end, self._info)
        return map(Table, _core.vel_revolutions(self._reader, list(fields) or None, calibration, window))
