"""Data of VEL logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from rovelog import _core, _times
from rovelog._metadata import Info
from rovelog._table import Table
from rovelog._times import TimeLike


class Image(NamedTuple):
    """An image as stored in the log.

    t_ns            time, ns on the log clock
    data            encoded image, usually a JPEG; see `encoding`
    name            name of the topic, which ends with the number of the camera: `ImageM/0`
    encoding        `jpeg`, `png`, `bmp`, `webp`, `tiff`, `mono8`, `yuyv`, `rgb8` (the order of red
                    and
                    blue is unknown) or `unknown`
    width           width in pixels, as stated in the message
    height          height in pixels, as stated in the message
    offset          offset of the first byte of the message in the file
    """

    t_ns: int
    data: bytes
    name: str
    encoding: str
    width: int
    height: int
    offset: int


class VelExtras:
    """Data that only VEL logs have; the type of `log.vel`."""

    def __init__(self, reader: _core.Reader, info: Info) -> None:
        self._reader = reader
        self._info = info

    def images(self, start: TimeLike | None = None, end: TimeLike | None = None) -> Iterator[Image]:
        """Returns the images of all cameras, in file order. Only one image is held in memory at a
        time.

        `start` is inclusive, `end` is exclusive; see `Topic.between`.

        On the command line: `rovelog extract FILE -o DIR`.
        """
        return self._images(_core.vel_images(self._reader, _times.window(start, end, self._info)))

    def _images(self, messages: list[tuple[int, str]]) -> Iterator[Image]:
        for offset, name in messages:
            found = _core.vel_image(self._reader, offset)
            if found is not None:
                nanos, data, encoding, width, height = found
                yield Image(nanos, data, name, encoding, width, height, offset)

    def revolutions(
        self,
        *fields: str,
        start: TimeLike | None = None,
        end: TimeLike | None = None,
        calibration: str | os.PathLike[str] | None = None,
    ) -> Iterator[Table]:
        """Returns the points of the Velodyne, one table per revolution.

        Revolutions that start from `start` (inclusive) to `end` (exclusive) are returned. A table
        has one row per point and these columns:

        - `t_ns`: time (int64, ns on the log clock)
        - `x`, `y`, `z`: forward, left and up in the frame of the sensor (float32, m)
        - `intensity`: 0 to 255
        - `ring`: number of the laser from bottom to top, from 0
        - `time`: time since the start of the revolution (float32, s)
        - `laser`: number of the laser as Velodyne counts them
        - `azimuth`: clockwise angle in units of 0.01 degrees
        - `distance`: distance from the sensor (float32, m)
        - `return`: 1 for the strongest return, 2 for the last one, 3 if it is both
        - `revolution`: number of the revolution, from 0

        `fields` selects columns; `t_ns` is always included. `calibration` is the calibration file
        of an HDL-64E: `db.xml`, or the YAML or JSON of the ROS driver. By default, the calibration
        in the status bytes of the log is used.

        Raises UnreadableError if the model cannot be inferred from the packets, or if an HDL-64E
        has no calibration. On the command line: `rovelog extract FILE -o DIR`.
        """
        window = _times.window(start, end, self._info)
        return map(Table, _core.vel_revolutions(self._reader, list(fields) or None, calibration, window))
