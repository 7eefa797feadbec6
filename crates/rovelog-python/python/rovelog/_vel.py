"""Data of VEL logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._facts import Info
from rovelog._table import Table
from rovelog._times import Moment


class Image(NamedTuple):
    """An image as stored in the log.

    t_ns            time, ns on the log clock
    data            bytes, usually a JPEG; see `encoding`
    name            name of the topic, which ends with the number of the camera: `ImageM/0`
    encoding        `jpeg`, `png`, `bmp`, `webp`, `tiff`, `mono8`, `yuyv`, `rgb8` (the order of red and
                    blue is unknown) or `unknown`
    width           pixels, as stated in the message
    height          pixels, as stated in the message
    offset          first byte of its message in the file
    """

    t_ns: int
    data: bytes
    name: str
    encoding: str
    width: int
    height: int
    offset: int


class VelExtras:
    """Data of VEL logs; `log.vel`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    def images(self, start: Moment | None = None, end: Moment | None = None) -> Iterator[Image]:
        """Returns the images of all cameras, in file order, one in memory at a time. `start` and
        `end` as for `Topic.between`.

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
        """Returns the points of the Velodyne: one table per revolution that starts between `start`
        (inclusive) and `end`.

        Columns, one row per point: `t_ns` (int64, ns on the log clock), `x` forward, `y` left, `z`
        up (float32, m, in the frame of the sensor), `intensity` (0 to 255), `ring` (0 is the
        lowest), `time` (float32, s from the start of the revolution), `laser`, `azimuth` (0.01
        degrees, clockwise), `distance` (float32, m), `return` (1 strongest, 2 last, 3 both),
        `revolution` (from 0). `fields` selects columns; `t_ns` is always included. `calibration` is
        the file of an HDL-64E: db.xml, or the YAML or JSON of the ROS driver; by default the
        calibration in the status bytes of the log is used.

        Raises UnreadableError if the model cannot be inferred from the packets, or an HDL-64E has
        no calibration. On the command line: `rovelog extract FILE -o DIR`.
        """
        window = _times.window(start, end, self._info)
        return map(Table, _core.vel_revolutions(self._reader, list(fields) or None, calibration, window))
